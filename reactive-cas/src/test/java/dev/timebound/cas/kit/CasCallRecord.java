package dev.timebound.cas.kit;

import com.google.protobuf.MessageLite;
import dev.timebound.cas.Digest;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ByteStreams.WriteRequest;
import io.grpc.Context;
import io.grpc.Metadata;
import io.grpc.ServerStreamTracer;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** What is known of a call, written by whoever serves it, one at a time, read anywhere. */
final class CasCallRecord extends ServerStreamTracer implements CasCall {
  static final Context.Key<CasCallRecord> KEY = Context.key("scripted-cas-call");
  static final Metadata.Key<String> TIMEOUT =
      Metadata.Key.of("grpc-timeout", Metadata.ASCII_STRING_MARSHALLER);

  private final int number;
  private final CasMethod method;
  private final CasLink.Arrival arrival;
  private final Metadata headers;
  private final AtomicReference<End> end = new AtomicReference<>(End.OPEN);
  private volatile @Nullable Status status;
  private volatile @Nullable MessageLite request;
  private volatile String resourceName = "";
  private volatile String instanceName = "";
  private volatile List<Digest> digests = List.of();
  private volatile long offset;
  private volatile long limit;
  private volatile Counts counts = new Counts(0, 0, 0, 0, 0);

  private record Counts(
      int requests, long requestBytes, long dataBytes, int messagesSent, long dataBytesSent) {}

  CasCallRecord(int number, CasMethod method, CasLink.Arrival arrival, Metadata headers) {
    this.number = number;
    this.method = method;
    this.arrival = arrival;
    this.headers = headers;
  }

  // ---- by gRPC's server

  @Override
  public Context filterContext(Context context) {
    return context.withValue(KEY, this);
  }

  @Override
  public void streamClosed(Status closed) {
    // a reset or a lost connection was told before, frame by frame
    if (end.get() == End.OPEN) {
      status = closed;
    }
    ended(End.COMPLETE);
  }

  // ---- by the service

  void about(String resource, String instance, List<Digest> blobs) {
    resourceName = resource;
    instanceName = instance;
    digests = List.copyOf(blobs);
  }

  void came(MessageLite message, int data) {
    if (request == null) {
      request = message;
      if (message instanceof ReadRequest read) {
        offset = read.getReadOffset();
        limit = read.getReadLimit();
      } else if (message instanceof WriteRequest write) {
        offset = write.getWriteOffset();
      }
    }
    Counts c = counts;
    counts =
        new Counts(
            c.requests + 1,
            c.requestBytes + message.getSerializedSize(),
            c.dataBytes + data,
            c.messagesSent,
            c.dataBytesSent);
  }

  void sent(int data) {
    Counts c = counts;
    counts =
        new Counts(
            c.requests, c.requestBytes, c.dataBytes, c.messagesSent + 1, c.dataBytesSent + data);
  }

  /** The first end stands. */
  void ended(End how) {
    if (end.compareAndSet(End.OPEN, how)) {
      link().ended(this);
    }
  }

  CasLink link() {
    return arrival.link();
  }

  int streamId() {
    return arrival.streamId();
  }

  // ---- by tests

  @Override
  public int number() {
    return number;
  }

  @Override
  public CasMethod method() {
    return method;
  }

  @Override
  public CasConnection connection() {
    return arrival.link();
  }

  @Override
  public Metadata headers() {
    return headers;
  }

  @Override
  public @Nullable String header(String name) {
    return headers.get(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER));
  }

  @Override
  public @Nullable Duration timeout() {
    String value = headers.get(TIMEOUT);
    if (value == null) {
      return null;
    }
    TimeUnit unit =
        switch (value.charAt(value.length() - 1)) {
          case 'H' -> TimeUnit.HOURS;
          case 'M' -> TimeUnit.MINUTES;
          case 'S' -> TimeUnit.SECONDS;
          case 'm' -> TimeUnit.MILLISECONDS;
          case 'u' -> TimeUnit.MICROSECONDS;
          case 'n' -> TimeUnit.NANOSECONDS;
          default ->
              throw new IllegalStateException(
                  "grpc-timeout: " + value + " (expected: a unit of HMSmun)");
        };
    return Duration.of(Long.parseLong(value.substring(0, value.length() - 1)), unit.toChronoUnit());
  }

  @Override
  public <T extends MessageLite> T request(Class<T> type) {
    MessageLite first = request;
    if (first == null) {
      throw new IllegalStateException("no request yet: " + this);
    }
    return Objects.requireNonNull(type.cast(first));
  }

  @Override
  public String resourceName() {
    return resourceName;
  }

  @Override
  public String instanceName() {
    return instanceName;
  }

  @Override
  public List<Digest> digests() {
    return digests;
  }

  @Override
  public long offset() {
    return offset;
  }

  @Override
  public long limit() {
    return limit;
  }

  @Override
  public int requests() {
    return counts.requests;
  }

  @Override
  public long requestBytes() {
    return counts.requestBytes;
  }

  @Override
  public long dataBytes() {
    return counts.dataBytes;
  }

  @Override
  public int messagesSent() {
    return counts.messagesSent;
  }

  @Override
  public long dataBytesSent() {
    return counts.dataBytesSent;
  }

  @Override
  public End end() {
    return Objects.requireNonNull(end.get());
  }

  @Override
  public @Nullable Status status() {
    return status;
  }

  @Override
  public End awaitEnd() {
    Wait.until("the call ends", () -> end() != End.OPEN, () -> "it is " + this);
    return end();
  }

  @Override
  public String toString() {
    return method
        + " "
        + number
        + " ("
        + (resourceName.isEmpty() ? digests.size() + " digests" : resourceName)
        + ", connection "
        + link().id()
        + ", "
        + end()
        + (status == null ? "" : " " + status.getCode())
        + ")";
  }
}
