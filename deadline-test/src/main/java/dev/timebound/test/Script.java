package dev.timebound.test;

import com.google.bigtable.v2.ReadRowsResponse.CellChunk;
import com.google.protobuf.Any;
import com.google.protobuf.MessageLite;
import com.google.protobuf.util.Durations;
import com.google.rpc.RetryInfo;
import io.grpc.Metadata;
import io.grpc.Status;
import io.netty.handler.codec.http2.Http2Error;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/**
 * What a {@link ScriptedBigtable} does with one call, step by step. Immutable: every method returns
 * the script with one step more, so a script may be kept, shared and answered to many calls.
 *
 * <pre>{@code
 * Script.start().rows("a", "b").hold(gate).reset(Http2Error.INTERNAL_ERROR)  // a reset once the test opens the gate
 * Script.start().headers().silence()                                         // headers, and nothing after them
 * Script.start().status(Status.UNAVAILABLE)                                  // trailers only
 * }</pre>
 *
 * <p>The first message sends the response headers where {@link #headers()} did not. A message is a
 * step that ends when all of it has left: a client that does not read holds its script up where
 * HTTP/2's flow control does. A script that runs out leaves the stream open and silent. Steps after
 * one that ends the stream do not happen. A client that resets the stream ends the script, save
 * {@link #whenReset(Script)}.
 */
public final class Script {
  /**
   * One step. Runs on the server's event loop and calls {@code next}, there, when the next step may
   * run.
   */
  interface Step {
    void run(ScriptRunner runner, Runnable next);
  }

  private static final Script EMPTY = new Script(List.of());
  private static final Metadata.Key<byte[]> DETAILS =
      Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER);

  private final List<Step> steps;

  private Script(List<Step> steps) {
    this.steps = steps;
  }

  /**
   * The script without a step: the call is taken and nothing is ever said. Every script starts from
   * it.
   */
  public static Script start() {
    return EMPTY;
  }

  // ---- what is sent

  /** The response headers, now. */
  public Script headers() {
    return headers(new Metadata());
  }

  /** The response headers, now, with these besides. */
  public Script headers(Metadata metadata) {
    return now(runner -> runner.headers(metadata));
  }

  /** One message. */
  public Script message(MessageLite message) {
    return messages(List.of(message));
  }

  /**
   * These messages, one after the other, each taken when the one before it has left; the source may
   * be endless.
   */
  public <T extends MessageLite> Script messages(Iterable<T> messages) {
    return then((runner, next) -> runner.messages(messages.iterator(), next));
  }

  /** One message of these rows, each of one cell whose value is the key. */
  public Script rows(String... keys) {
    return message(Rows.message(keys));
  }

  /** One message of these chunks, as they are. */
  public Script chunks(CellChunk... chunks) {
    return message(Rows.message(Arrays.asList(chunks)));
  }

  /** A scan marker. */
  public Script marker(String key) {
    return message(Rows.marker(key));
  }

  /** Bytes as one gRPC message, whether they can be parsed or not. */
  public Script rawMessage(byte[] body) {
    byte[] copy = body.clone();
    return then((runner, next) -> runner.rawMessage(copy, next));
  }

  // ---- time

  /** Goes on once the gate is open. */
  public Script hold(Gate gate) {
    return then((runner, next) -> gate.whenOpen(runner.executor(), next));
  }

  /** Goes on after that time, on the real clock; for demos, a test holds at a {@link Gate}. */
  public Script pause(Duration time) {
    return then((runner, next) -> runner.after(time, next));
  }

  /** Nothing more; the stream stays open. It is what a script does that runs out, said aloud. */
  public Script silence() {
    return then((runner, next) -> {});
  }

  // ---- how it ends

  /** Ends with status OK. */
  public Script ok() {
    return status(Status.OK);
  }

  /**
   * Ends with that status: in trailers, or, where nothing was sent, in headers that are trailers
   * too (trailers-only).
   */
  public Script status(Status status) {
    return status(status, new Metadata());
  }

  /** Ends with that status and these trailers. */
  public Script status(Status status, Metadata trailers) {
    return now(runner -> runner.status(status, trailers));
  }

  /**
   * Ends with that status and a {@code RetryInfo} in its details, which asks the client to wait
   * that long.
   */
  public Script statusWithRetryInfo(Status status, Duration delay) {
    return statusWithRetryInfo(status, delay, new Metadata());
  }

  /** As {@link #statusWithRetryInfo(Status, Duration)}, with these trailers besides. */
  public Script statusWithRetryInfo(Status status, Duration delay, Metadata trailers) {
    Metadata all = new Metadata();
    all.merge(trailers);
    RetryInfo info =
        RetryInfo.newBuilder().setRetryDelay(Durations.fromNanos(delay.toNanos())).build();
    com.google.rpc.Status.Builder details =
        com.google.rpc.Status.newBuilder().setCode(status.getCode().value());
    if (status.getDescription() != null) {
      details.setMessage(status.getDescription());
    }
    all.put(DETAILS, details.addDetails(Any.pack(info)).build().toByteArray());
    return status(status, all);
  }

  /** Ends with RST_STREAM of that error. */
  public Script reset(Http2Error error) {
    return reset(error.code());
  }

  /** Ends with RST_STREAM of that code, known or not. */
  public Script reset(long code) {
    return now(runner -> runner.reset(code));
  }

  /**
   * Answers as an HTTP proxy does that knows no gRPC: a bare status, a page of text. Only where
   * nothing was sent before.
   */
  public Script httpStatus(int status) {
    return now(runner -> runner.httpStatus(status));
  }

  /**
   * GOAWAY of NO_ERROR that keeps this stream and all older ones: the connection takes no new call.
   * The script goes on.
   */
  public Script goAway() {
    return now(ScriptRunner::goAway);
  }

  /**
   * GOAWAY of that code that disowns this stream, before its headers or after: the client may take
   * it for never processed.
   */
  public Script goAwayRefusing(Http2Error error) {
    return now(runner -> runner.goAwayRefusing(error.code()));
  }

  /** Closes the connection in order (TCP FIN), with all its streams. */
  public Script closeConnection() {
    return now(runner -> runner.connection().close());
  }

  /** Resets the connection (TCP RST), with all its streams. */
  public Script resetConnection() {
    return now(runner -> runner.connection().reset());
  }

  /**
   * From here on, a reset of the stream by the client starts that script, which is sent all the
   * same, as a server does whose frames were under way: headers, messages and trailers leave
   * without flow control.
   */
  public Script whenReset(Script late) {
    return now(runner -> runner.whenReset(late));
  }

  List<Step> steps() {
    return steps;
  }

  private Script now(Consumer<ScriptRunner> action) {
    return then(
        (runner, next) -> {
          action.accept(runner);
          next.run();
        });
  }

  private Script then(Step step) {
    List<Step> all = new ArrayList<>(steps);
    all.add(step);
    return new Script(List.copyOf(all));
  }
}
