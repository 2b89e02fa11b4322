package dev.timebound.test;

import com.google.bigtable.v2.ReadRowsRequest;
import com.google.protobuf.MessageLite;
import io.grpc.Metadata;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * One call that reached a {@link ScriptedBigtable}, as it was and as it ended. Reads are of the
 * moment, from any thread.
 */
public interface ScriptedCall {

  /** How a call ended, seen from the server. */
  enum End {
    /** It has not. */
    OPEN,
    /** The last frame has left, whatever its status. */
    COMPLETE,
    /** The client sent RST_STREAM: {@link ScriptedCall#resetCode()}. */
    RESET_BY_CLIENT,
    /** The server sent RST_STREAM: {@link ScriptedCall#resetCode()}. */
    RESET_BY_SERVER,
    /** A GOAWAY disowned it. */
    REFUSED,
    /** The connection went away under it. */
    CONNECTION_CLOSED
  }

  /**
   * Its number among all calls of the server, from 1, in the order in which their requests were
   * complete.
   */
  int number();

  /** Its number among the calls of its method, from 1. */
  int numberOfMethod();

  /** The method's bare name: {@code ReadRows}. */
  String method();

  /**
   * The request.
   *
   * @throws ClassCastException where the method takes another type
   */
  <T extends MessageLite> T request(Class<T> type);

  /** The request of a ReadRows call. */
  default ReadRowsRequest readRows() {
    return request(ReadRowsRequest.class);
  }

  /** The request's metadata, without HTTP/2's own headers. */
  Metadata metadata();

  /** The first ASCII metadata value of that name; null where there is none. */
  @Nullable String header(String name);

  /** The call's {@code grpc-timeout}; null where the client set none. */
  @Nullable Duration timeout();

  /** The number of its connection, from 1, in the order in which they were accepted. */
  int connection();

  /** Its HTTP/2 stream on that connection. */
  int streamId();

  /**
   * Bytes of DATA that have left for it: what flow control let through, length prefixes included.
   */
  long bytesPushed();

  /** How it ended; {@link End#OPEN} where it has not. */
  End end();

  /** The code of the RST_STREAM that ended it; -1 where none did. */
  long resetCode();

  /** When its request was complete, by {@link System#nanoTime()}. */
  long startedAtNanos();

  /** When it ended, by {@link System#nanoTime()}; 0 while it is open. */
  long endedAtNanos();

  /** Waits, for 30 s at most, until it has ended like that. */
  void awaitEnd(End end);

  /** Waits, for 30 s at most, until at least that much has left for it. */
  void awaitBytesPushed(long bytes);
}
