package dev.timebound.cas;

import dev.timebound.cas.CasObservations.Observed;
import dev.timebound.cas.ShardStatuses.Verdict;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.QueryWriteStatusRequest;
import dev.timebound.cas.wire.ByteStreams.QueryWriteStatusResponse;
import dev.timebound.cas.wire.ByteStreams.WriteRequest;
import dev.timebound.cas.wire.ByteStreams.WriteResponse;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.grpc.CallAttempt;
import dev.timebound.grpc.GrpcCalls;
import dev.timebound.health.Claim;
import io.github.resilience4j.core.IntervalFunction;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;
import reactor.util.context.ContextView;
import reactor.util.retry.Retry;

/**
 * One write of one blob, to its home and nowhere else (CAS-26): its attempts, one after the other,
 * each from where the server has come to.
 */
final class BlobWrite {
  private static final IntervalFunction BACKOFF = RingSettings.retryBackoff();
  private static final MethodDescriptor<WriteRequest, WriteResponse> METHOD =
      ByteStreamGrpc.getWriteMethod();

  private final Writes writes;
  private final Digest digest;
  private final Shard home;
  private final Deadline caller;
  private final ContextView context;
  private final UploadSource source;
  private final RingSettings settings;

  /** A new one wherever it is not known what the server has of the one before. */
  private UUID upload;

  /** What the server says it has. */
  private long committed;

  private boolean statusUnknown;

  /** Whether the attempt under way travels compressed, and its bytes so far. */
  private boolean compressed;

  /** The server would not take it compressed. */
  private boolean refused;

  private volatile long travelled;
  private int retried;
  private boolean renewed;

  private volatile int attempts;

  // of the attempt under way, or the one that failed last
  private CallAttempt attempt = CallAttempt.create();
  private ShardCalls.@Nullable Opened opened;
  private @Nullable Throwable lastFailure;

  BlobWrite(
      Writes writes, Digest digest, Publisher<? extends ByteBuffer> content, ContextView context) {
    this.writes = writes;
    this.upload = writes.newUpload();
    this.digest = digest;
    this.settings = writes.settings();
    this.home = writes.shards().home(digest);
    this.context = context;
    this.caller = Deadlines.current(context);
    this.source =
        new UploadSource(
            content, digest, settings.writeChunkSize(), Writes.KEPT, Context.of(context));
  }

  Mono<WriteResult> run() {
    long beganAt = settings.now();
    settings.retryBudget().requested();
    Mono<WriteResult> all =
        Mono.defer(this::attempt)
            .retryWhen(Retry.from(failed -> failed.concatMap(signal -> after(signal.failure()))))
            .onErrorMap(this::told);
    return Mono.from(Deadlines.<WriteResult>of(caller, Writes.OPERATION).apply(all))
        .tap(() -> new End(beganAt));
  }

  private final class End extends CallEnd<WriteResult> {
    private final Observed observed =
        writes.observations().begin(Writes.OPERATION, digest, context);
    private final long beganAt;

    End(long beganAt) {
      super(Writes.OPERATION, caller);
      this.beganAt = beganAt;
    }

    @Override
    void tell(String outcome, @Nullable Throwable failure) {
      source.close();
      long took = settings.now() - beganAt;
      caller.charge(Writes.OPERATION, took);
      writes.meters().writeEnded(outcome, took);
      observed.ended(outcome, failure, attempts, attempts == 0 ? null : home.name(), caller);
    }
  }

  // --- one attempt

  private Mono<WriteResult> attempt() {
    return writes
        .capabilities()
        .serving(home, digest.function())
        .flatMap(
            known -> {
              compressed = !refused && writes.compression().ofWrite(home, known, digest);
              return isBegun() ? again() : send();
            });
  }

  /** A compressed upload cannot go on: what the server has of it does not tell where that ended. */
  private Mono<WriteResult> again() {
    return compressed
        ? goOn(QueryWriteStatusResponse.getDefaultInstance())
        : status().flatMap(this::goOn);
  }

  /** Whether the server may have something of it. */
  private boolean isBegun() {
    return committed > 0 || attempt.messagesSent() > 0;
  }

  /** How far the upload has come; empty where that cannot be known. */
  private Mono<QueryWriteStatusResponse> status() {
    if (statusUnknown) {
      return Mono.just(QueryWriteStatusResponse.getDefaultInstance());
    }
    QueryWriteStatusRequest request =
        QueryWriteStatusRequest.newBuilder().setResourceName(resourceName()).build();
    return Mono.defer(
            () -> {
              Claim<Shard> claim = writes.shards().claims(List.of(home)).next();
              return claim == null
                  ? Mono.error(ShardCapabilities.left(home))
                  : writes
                      .calls()
                      .unary(claim, ByteStreamGrpc.getQueryWriteStatusMethod(), request, 1);
            })
        .onErrorResume(
            e -> !isWorthARetry(e) && ShardStatuses.of(e) != Verdict.CALLER,
            e -> {
              statusUnknown = ShardCapabilities.isUnimplemented(e);
              return Mono.just(QueryWriteStatusResponse.getDefaultInstance());
            });
  }

  private Mono<WriteResult> goOn(QueryWriteStatusResponse status) {
    if (status.getComplete()) {
      return Mono.just(new WriteResult(digest, false));
    }
    long has = status.getCommittedSize();
    if (has <= 0 || has > digest.sizeBytes()) {
      // Under the old name a server might add to what it has.
      upload = writes.newUpload();
      has = 0;
    }
    if (has > committed) {
      retried = 0;
    }
    committed = has;
    if (committed > 0) {
      writes.meters().uploadResumed();
    }
    return send();
  }

  /** As another upload, of which the server has nothing. */
  private void beginAnew() {
    upload = writes.newUpload();
    committed = 0;
    attempt = CallAttempt.create();
  }

  private String resourceName() {
    return compressed
        ? ResourceNames.writeZstd(home.instanceName(), upload, digest)
        : ResourceNames.write(home.instanceName(), upload, digest);
  }

  private Mono<WriteResult> send() {
    Claim<Shard> claim = writes.shards().claims(List.of(home)).next();
    if (claim == null) {
      return Mono.error(ShardCapabilities.left(home));
    }
    CallAttempt made = CallAttempt.create();
    attempts = attempts + 1; // one after the other
    attempt = made;
    opened = null;
    CallStage stage = new CallStage();
    UploadWatch watch = new UploadWatch(home, settings, made, stage);
    Mono<WriteResponse> call =
        writes.calls().open(claim, stage).flatMap(with -> call(with, made, watch));
    return Mono.firstWithSignal(call, watch.stalled())
        .map(answer -> checked(answer, watch))
        .onErrorMap(e -> ShardCalls.told(e, caller, home.name()))
        .doOnSuccess(done -> stored(claim))
        .doOnError(e -> end(claim, e))
        .doOnCancel(() -> writes.calls().cancelled(claim, METHOD));
  }

  private Mono<WriteResponse> call(ShardCalls.Opened with, CallAttempt made, UploadWatch watch) {
    opened = with;
    return GrpcCalls.clientStreaming(
        with.channel(),
        METHOD,
        with.options().withOption(CallAttempt.KEY, made),
        requests()
            .doOnNext(
                request -> {
                  int bytes = request.getData().size();
                  travelled = travelled + bytes; // one at a time
                  writes.meters().written(bytes);
                })
            .doOnComplete(watch::complete));
  }

  private Flux<WriteRequest> requests() {
    travelled = 0;
    Flux<WriteRequest> plain = source.requests(resourceName(), committed);
    return compressed ? Zstd.compress(plain) : plain;
  }

  private void stored(Claim<Shard> claim) {
    writes.calls().succeeded(claim, METHOD);
    if (refused) {
      writes.compression().refused(home);
    }
  }

  private void end(Claim<Shard> claim, Throwable failure) {
    if (failure instanceof SourceException) {
      writes.calls().cancelled(claim, METHOD);
    } else {
      writes.calls().failed(claim, METHOD, failure);
    }
  }

  private WriteResult checked(WriteResponse answer, UploadWatch watch) {
    long size = answer.getCommittedSize();
    boolean asSent = watch.isComplete() && size == travelled;
    if (size != digest.sizeBytes() && !(compressed && (size == -1 || asSent))) {
      throw Status.INTERNAL
          .withDescription(
              home
                  + ": upload of "
                  + digest
                  + ": committed_size "
                  + size
                  + " (expected: "
                  + digest.sizeBytes()
                  + ")")
          .asRuntimeException();
    }
    return new WriteResult(digest, !watch.isComplete());
  }

  // --- after an attempt

  private boolean isWorthARetry(Throwable failure) {
    return !(failure instanceof SourceException) && ShardStatuses.of(failure).retryable;
  }

  private Mono<Boolean> after(Throwable failure) {
    if (failure instanceof SourceException) {
      return Mono.error(failure);
    }
    lastFailure = failure;
    ShardCalls.Opened with = opened;
    if (!renewed && with != null && with.renew(failure)) {
      renewed = true;
      return Mono.just(true);
    }
    if (compressed && !refused && Compression.isRefusal(failure)) {
      refused = true;
      beginAnew();
      return Mono.just(true);
    }
    if (!isWorthARetry(failure) || retried >= settings.retries()) {
      return Mono.error(failure);
    }
    long pause = TimeUnit.MILLISECONDS.toNanos(BACKOFF.apply(retried + 1));
    if (caller.remainingNanos() <= pause || !settings.retryBudget().tryTake()) {
      return Mono.error(failure);
    }
    retried++;
    return Mono.delay(Duration.ofNanos(pause), settings.scheduler()).thenReturn(true);
  }

  /** A source that can be read once only tells nothing of why it was read twice. */
  private Throwable told(Throwable failure) {
    if (!(failure instanceof SourceException wrapped)) {
      return failure;
    }
    Throwable before = lastFailure;
    if (source.isResubscribed() && before != null) {
      before.addSuppressed(wrapped.failure());
      return before;
    }
    return wrapped.failure();
  }
}
