package dev.timebound.cas.kit;

import com.google.protobuf.MessageLite;
import dev.timebound.cas.Digest;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A call that came to a {@link ScriptedCas}; what it says is of the moment, from any thread. */
public interface CasCall {
  /** How a call ended. */
  enum End {
    /** It has not. */
    OPEN,
    /** With a status of the server. */
    COMPLETE,
    /** With the client's RST_STREAM: it was cancelled, or its time was over there. */
    RESET_BY_CLIENT,
    /** With RST_STREAM of the server. */
    RESET_BY_SERVER,
    /** Disowned by a GOAWAY of the server. */
    REFUSED,
    /** With its connection. */
    CONNECTION_CLOSED
  }

  /** Its number, from 1, over all methods, in the order in which calls came. */
  int number();

  /** What was called. */
  CasMethod method();

  /** The connection it came on. */
  CasConnection connection();

  /** All headers of the request. */
  Metadata headers();

  /** The value of that header; null where it was not sent. */
  @Nullable String header(String name);

  /** The client's {@code grpc-timeout}; null where none was sent. The server does not heed it. */
  @Nullable Duration timeout();

  /**
   * The request; of a write the first one.
   *
   * @throws IllegalStateException where none has come yet
   */
  <T extends MessageLite> T request(Class<T> type);

  /** The resource name of a read, write or write status; empty for the others. */
  String resourceName();

  /** The store's name that the client gave; empty where it gave none. */
  String instanceName();

  /** The blobs it is about, in the order in which the request names them. */
  List<Digest> digests();

  /** {@code read_offset} of a read, {@code write_offset} of a write's first request; else 0. */
  long offset();

  /** {@code read_limit} of a read; else 0. */
  long limit();

  /** Requests that came: 1, of a write any number. */
  int requests();

  /** Their size as messages of the protocol. */
  long requestBytes();

  /** Bytes of content that a write has brought. */
  long dataBytes();

  /** Messages of a read that were handed to the transport, keep-alives not counted. */
  int messagesSent();

  /** Bytes of content of a read that were handed to the transport. */
  long dataBytesSent();

  /** How it ended. */
  End end();

  /** The status that the server gave it; null where it gave none. */
  @Nullable Status status();

  /** Whether the client gave it up. */
  default boolean cancelled() {
    return end() == End.RESET_BY_CLIENT;
  }

  /** Waits, for 30 s at most, until it has ended, and says how. */
  End awaitEnd();
}
