package dev.timebound.fetch.s3;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import software.amazon.awssdk.awscore.AwsRequestOverrideConfiguration;
import software.amazon.awssdk.core.async.AsyncRequestBody;
import software.amazon.awssdk.core.async.AsyncResponseTransformer;
import software.amazon.awssdk.core.async.ResponsePublisher;
import software.amazon.awssdk.core.exception.ApiCallTimeoutException;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Response;
import software.amazon.awssdk.services.s3.model.NoSuchKeyException;
import software.amazon.awssdk.services.s3.model.ObjectIdentifier;
import software.amazon.awssdk.services.s3.model.S3Exception;
import software.amazon.awssdk.services.s3.model.S3Object;

/**
 * The requests, each within what its caller's deadline leaves, the SDK's own retries included; a
 * cancel ends the request on its connection.
 */
final class Calls {
  private static final int NOT_FOUND = 404;
  private static final int CONFLICT = 409;
  private static final int PRECONDITION = 412;

  /** The SDK takes none of zero. */
  private static final Duration LEAST = Duration.ofMillis(1);

  private final S3AsyncClient client;
  private final String bucket;
  private final Duration callTimeout;

  Calls(S3AsyncClient client, String bucket, Duration callTimeout) {
    this.client = client;
    this.bucket = bucket;
    this.callTimeout = callTimeout;
  }

  String where(String key) {
    return "s3://" + bucket + "/" + key;
  }

  /** Keys that follow one, or the first ones of the prefix where that is empty. */
  Mono<List<String>> list(String prefix, String after, int most) {
    return call(
            prefix,
            "a listing",
            bound ->
                client.listObjectsV2(
                    request -> {
                      request.bucket(bucket).prefix(prefix).maxKeys(most);
                      request.overrideConfiguration(bound);
                      if (!after.isEmpty()) {
                        request.startAfter(after);
                      }
                    }))
        .map(ListObjectsV2Response::contents)
        .map(all -> all.stream().map(S3Object::key).toList());
  }

  /**
   * Puts an object; false where there is one of that name already (or another is just being put).
   */
  Mono<Boolean> putNew(String key, ByteBuffer bytes) {
    return call(
            key,
            "a put",
            bound ->
                client.putObject(
                    request ->
                        request
                            .bucket(bucket)
                            .key(key)
                            .ifNoneMatch("*")
                            .overrideConfiguration(bound),
                    AsyncRequestBody.fromByteBufferUnsafe(bytes.duplicate())))
        .map(put -> true)
        .onErrorResume(Calls::isTaken, taken -> Mono.just(false));
  }

  Mono<Void> put(String key) {
    return call(
            key,
            "a put",
            bound ->
                client.putObject(
                    request -> request.bucket(bucket).key(key).overrideConfiguration(bound),
                    AsyncRequestBody.empty()))
        .then();
  }

  /** Deletes objects, a thousand at most. */
  Mono<Void> delete(List<String> keys) {
    return call(
            keys.get(0),
            "deletes",
            bound ->
                client.deleteObjects(
                    request ->
                        request
                            .bucket(bucket)
                            .delete(
                                all ->
                                    all.quiet(true)
                                        .objects(keys.stream().map(Calls::named).toList()))
                            .overrideConfiguration(bound)))
        .flatMap(
            done ->
                done.errors().isEmpty()
                    ? Mono.empty()
                    : Mono.error(
                        new S3StoreException(
                            where(done.errors().get(0).key())
                                + ": a delete failed with "
                                + done.errors().get(0).code()
                                + " (expected: deleted)",
                            null)));
  }

  private static ObjectIdentifier named(String key) {
    return ObjectIdentifier.builder().key(key).build();
  }

  /**
   * Some bytes of an object as they arrive, fewer where it is shorter; an empty object is an error
   * of the range. Completes early only where the object does: a body that breaks off is an error.
   */
  Flux<ByteBuffer> get(String key, long from, int length) {
    return Flux.deferContextual(
        context -> {
          Deadline deadline = Deadlines.current(context);
          if (deadline.isExpired()) {
            return Flux.<ByteBuffer>error(late(deadline, key));
          }
          GetObjectRequest request =
              GetObjectRequest.builder()
                  .bucket(bucket)
                  .key(key)
                  .range("bytes=" + from + "-" + (from + length - 1))
                  .overrideConfiguration(within(deadline))
                  .build();
          return body(client.getObject(request, AsyncResponseTransformer.toPublisher()), key, from)
              .onErrorMap(error -> told(error, deadline, key, "a read"));
        });
  }

  private Flux<ByteBuffer> body(
      CompletableFuture<ResponsePublisher<GetObjectResponse>> call, String key, long from) {
    AtomicBoolean taken = new AtomicBoolean();
    return Mono.fromFuture(call)
        .flatMapMany(
            body -> taken.compareAndSet(false, true) ? checked(body, key, from) : Flux.empty())
        .doOnCancel(
            () ->
                // An answer that nobody took any more holds its connection until it is let go.
                call.thenAccept(
                    body -> {
                      if (taken.compareAndSet(false, true)) {
                        letGo(body);
                      }
                    }));
  }

  private static void letGo(Publisher<ByteBuffer> body) {
    body.subscribe(
        new BaseSubscriber<ByteBuffer>() {
          @Override
          protected void hookOnSubscribe(Subscription subscription) {
            subscription.cancel();
          }
        });
  }

  private Flux<ByteBuffer> checked(
      ResponsePublisher<GetObjectResponse> body, String key, long from) {
    String range = body.response().contentRange();
    Long length = body.response().contentLength();
    if (range == null || !range.startsWith("bytes " + from + "-") || length == null) {
      letGo(body);
      return Flux.error(
          ObjectIndex.damaged(where(key), "the range " + range, "one from " + from + " on"));
    }
    long[] came = {0};
    return Flux.from(body)
        .doOnNext(bytes -> came[0] += bytes.remaining())
        .concatWith(
            Mono.defer(
                () ->
                    came[0] == length
                        ? Mono.empty()
                        : Mono.error(
                            ObjectIndex.damaged(
                                where(key),
                                "a body that ended after " + came[0] + " bytes",
                                length.toString()))));
  }

  /** The same, in one piece. */
  Mono<ByteBuffer> bytes(String key, long from, int length) {
    return Mono.defer(
        () -> {
          ByteBuffer all = ByteBuffer.allocate(length);
          return get(key, from, length)
              .doOnNext(
                  bytes -> {
                    if (bytes.remaining() > all.remaining()) {
                      throw ObjectIndex.damaged(where(key), "a longer body", length + " bytes");
                    }
                    all.put(bytes);
                  })
              .then(Mono.fromSupplier(all::flip));
        });
  }

  private <T> Mono<T> call(
      String key,
      String what,
      Function<AwsRequestOverrideConfiguration, CompletableFuture<T>> call) {
    return Mono.deferContextual(
        context -> {
          Deadline deadline = Deadlines.current(context);
          return deadline.isExpired()
              ? Mono.<T>error(late(deadline, key))
              : Mono.fromFuture(call.apply(within(deadline)))
                  .onErrorMap(error -> told(error, deadline, key, what));
        });
  }

  private Duration bound(Deadline deadline) {
    Duration left = deadline.isNone() ? callTimeout : deadline.remaining();
    return left.compareTo(callTimeout) < 0 ? left : callTimeout;
  }

  /** Retries and the pauses between them are within it. */
  private AwsRequestOverrideConfiguration within(Deadline deadline) {
    Duration bound = bound(deadline);
    return AwsRequestOverrideConfiguration.builder()
        .apiCallTimeout(bound.compareTo(LEAST) < 0 ? LEAST : bound)
        .build();
  }

  private Throwable late(Deadline deadline, String key) {
    return new DeadlineExceededException(where(key), deadline);
  }

  private Throwable told(Throwable error, Deadline deadline, String key, String what) {
    Throwable cause = error instanceof CompletionException ? error.getCause() : error;
    if (cause == null
        || cause instanceof S3StoreException
        || cause instanceof DeadlineExceededException) {
      return error;
    }
    if (cause instanceof ApiCallTimeoutException && bound(deadline).compareTo(callTimeout) < 0) {
      return new DeadlineExceededException(where(key), deadline, cause);
    }
    return new S3StoreException(
        where(key) + ": " + what + " failed: " + reason(cause) + " (expected: an answer)", cause);
  }

  private String reason(Throwable cause) {
    if (cause instanceof S3Exception s3) {
      return s3.awsErrorDetails() == null
          ? Integer.toString(s3.statusCode())
          : s3.statusCode() + " " + s3.awsErrorDetails().errorCode();
    }
    return cause instanceof ApiCallTimeoutException
        ? "no answer within " + callTimeout
        : cause.toString();
  }

  static boolean isMissing(Throwable error) {
    return error.getCause() instanceof NoSuchKeyException
        || (error.getCause() instanceof S3Exception s3
            && s3.statusCode() == NOT_FOUND
            && s3.awsErrorDetails() != null
            && "NoSuchKey".equals(s3.awsErrorDetails().errorCode()));
  }

  private static boolean isTaken(Throwable error) {
    return error.getCause() instanceof S3Exception s3
        && (s3.statusCode() == PRECONDITION || s3.statusCode() == CONFLICT);
  }
}
