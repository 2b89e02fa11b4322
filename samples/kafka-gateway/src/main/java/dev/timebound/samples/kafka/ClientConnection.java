package dev.timebound.samples.kafka;

import dev.timebound.deadline.DeadlineExceededException;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.DecoderException;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.KafkaStorageException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.protocol.ApiMessage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;
import reactor.netty.NettyInbound;
import reactor.netty.NettyOutbound;

/**
 * Serves one connection as a broker does: one request after the other, the next one begun when the
 * answer before it has been handed to the network. A client that does not read its answers is thus
 * not served, and one that sends faster than it is served is not read from, but for a few requests
 * in advance, which let it be noticed that it went.
 */
final class ClientConnection {
  private static final Logger LOG = LoggerFactory.getLogger(ClientConnection.class);

  private final Apis apis;
  private final int readAhead;
  private final Session session;

  ClientConnection(Apis apis, int readAhead, Session session) {
    this.apis = apis;
    this.readAhead = readAhead;
    this.session = session;
  }

  /**
   * Ends when the client goes, which cancels what is under way for it; and when it sends what is no
   * request, which ends the connection.
   *
   * @param closed completes when the connection is no more
   */
  Mono<Void> serve(NettyInbound in, NettyOutbound out, Mono<Void> closed) {
    return in.receive()
        .asByteArray()
        .map(bytes -> new Frame(bytes, Call.now()))
        .concatMap(frame -> serve(frame, out), readAhead)
        .takeUntilOther(closed)
        .then()
        .onErrorResume(this::end);
  }

  /** One request, which may have to wait for those before it. */
  private record Frame(byte[] bytes, long arrived) {}

  private Mono<Void> serve(Frame frame, NettyOutbound out) {
    Call call = apis.read(session, frame.bytes(), frame.arrived());
    return apis.handle(call)
        .onErrorResume(error -> failed(call, error))
        .flatMap(answer -> out.send(Mono.fromSupplier(() -> encode(call, answer, out))).then());
  }

  private static ByteBuf encode(Call call, ApiMessage answer, NettyOutbound out) {
    return ResponseFrame.of(out.alloc(), call.api(), call.version(), call.correlationId(), answer);
  }

  private Mono<ApiMessage> failed(Call call, Throwable error) {
    if (error instanceof ConnectionEndedException || error instanceof DecoderException) {
      return Mono.error(error);
    }
    if (error instanceof ApiException) {
      LOG.warn("{} of {} is refused: {}", call.api().name, session.peer(), error.toString());
    } else {
      LOG.warn("{} of {} failed", call.api().name, session.peer(), error);
    }
    var answer = call.request().getErrorResponse(0, forClient(error));
    return answer == null
        ? Mono.error(new ConnectionEndedException(call.api().name + " failed, unanswered", error))
        : Mono.just(answer.data());
  }

  /** What is not an error of the protocol is one that the client may try again after. */
  static Throwable forClient(Throwable error) {
    if (error instanceof ApiException) {
      return error;
    }
    return error instanceof DeadlineExceededException
        ? new TimeoutException(error.getMessage())
        : new KafkaStorageException(error.toString());
  }

  private Mono<Void> end(Throwable error) {
    if (error instanceof ConnectionEndedException || error instanceof DecoderException) {
      Throwable cause = error.getCause();
      LOG.warn(
          "Closing the connection of {}: {}{}",
          session.peer(),
          error.getMessage(),
          cause == null ? "" : ": " + cause);
    } else {
      LOG.debug("The connection of {} ended", session.peer(), error);
    }
    return Mono.empty();
  }
}
