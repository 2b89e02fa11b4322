package dev.timebound.test;

import com.google.protobuf.MessageLite;
import io.grpc.Metadata;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** What is known of a call. Written on the event loop, read anywhere. */
final class CallRecord implements ScriptedCall {
  private final int number;
  private final int numberOfMethod;
  private final String method;
  private final MessageLite request;
  private final Metadata metadata;
  private final int connection;
  private final int streamId;
  private final long startedAt = System.nanoTime();
  private final AtomicLong pushed = new AtomicLong();
  private volatile End end = End.OPEN;
  private volatile long resetCode = -1;
  private volatile long endedAt;

  CallRecord(
      int number,
      int numberOfMethod,
      String method,
      MessageLite request,
      Metadata metadata,
      int connection,
      int streamId) {
    this.number = number;
    this.numberOfMethod = numberOfMethod;
    this.method = method;
    this.request = request;
    this.metadata = metadata;
    this.connection = connection;
    this.streamId = streamId;
  }

  void pushed(int bytes) {
    pushed.lazySet(pushed.get() + bytes);
  }

  /** The first end stands. */
  boolean ended(End how, long code) {
    if (end != End.OPEN) {
      return false;
    }
    resetCode = code;
    endedAt = System.nanoTime();
    end = how;
    return true;
  }

  @Override
  public int number() {
    return number;
  }

  @Override
  public int numberOfMethod() {
    return numberOfMethod;
  }

  @Override
  public String method() {
    return method;
  }

  @Override
  public <T extends MessageLite> T request(Class<T> type) {
    return type.cast(request);
  }

  @Override
  public Metadata metadata() {
    return metadata;
  }

  @Override
  public @Nullable String header(String name) {
    return metadata.get(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER));
  }

  @Override
  public @Nullable Duration timeout() {
    String value = header("grpc-timeout");
    return value == null ? null : GrpcHeaders.timeout(value);
  }

  @Override
  public int connection() {
    return connection;
  }

  @Override
  public int streamId() {
    return streamId;
  }

  @Override
  public long bytesPushed() {
    return pushed.get();
  }

  @Override
  public End end() {
    return end;
  }

  @Override
  public long resetCode() {
    return resetCode;
  }

  @Override
  public long startedAtNanos() {
    return startedAt;
  }

  @Override
  public long endedAtNanos() {
    return endedAt;
  }

  @Override
  public void awaitEnd(End expected) {
    Await.until(this + " ends by " + expected, () -> end == expected, () -> "its end is " + end);
  }

  @Override
  public void awaitBytesPushed(long bytes) {
    Await.until(
        bytes + " bytes have left for " + this,
        () -> bytesPushed() >= bytes,
        () -> bytesPushed() + " have");
  }

  @Override
  public String toString() {
    return method
        + " #"
        + numberOfMethod
        + " (connection "
        + connection
        + ", stream "
        + streamId
        + ", "
        + end
        + ")";
  }
}
