package dev.timebound.fetch.s3;

import static dev.timebound.fetch.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.Deadlines;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import dev.timebound.test.FaultProxy;
import java.net.URI;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.http.async.SdkAsyncHttpClient;
import software.amazon.awssdk.http.nio.netty.NettyNioAsyncHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.retries.api.BackoffStrategy;
import software.amazon.awssdk.services.s3.S3AsyncClient;

/**
 * A store on a real server behind a proxy, and a client of its own for what tests do to the bucket
 * behind the store's back. Its close shows that no connection is left.
 */
final class S3Bench implements AutoCloseable {
  static final Duration BOUND = Duration.ofSeconds(30);
  static final String BUCKET = "timebound";
  static final int CONNECTIONS = 32;

  /** Of one request, by the SDK. */
  static final int ATTEMPTS = 3;

  private static final Duration PAUSE = Duration.ofMillis(10);

  /** Longer than any test waits: what ends a request is what the test did, and no time-out. */
  private static final Duration NEVER = Duration.ofMinutes(5);

  /** One for all: its close blocks one of Netty's own threads, which is not suffered here. */
  private static final SdkAsyncHttpClient HTTP =
      NettyNioAsyncHttpClient.builder().maxConcurrency(CONNECTIONS).readTimeout(NEVER).build();

  private static final AtomicInteger NUMBER = new AtomicInteger();

  final String prefix = "bench-" + NUMBER.incrementAndGet() + "/";
  final Keys keys = new Keys(prefix);
  final FaultProxy proxy = FaultProxy.to("127.0.0.1", S3Server.shared().port());

  /** The road of one partition's reads, once they are stalled. */
  final FaultProxy detour = FaultProxy.to("127.0.0.1", S3Server.shared().port());

  final Requests requests = new Requests(HTTP, detour.port());
  final S3AsyncClient client = client(proxy.port(), requests);
  final S3AsyncClient behind = client(S3Server.shared().port(), HTTP);
  final S3Store store;
  private int topics;

  S3Bench() {
    this(builder -> builder);
  }

  S3Bench(UnaryOperator<S3Store.Builder> settings) {
    store = store(client, settings);
  }

  S3Store store(S3AsyncClient of, UnaryOperator<S3Store.Builder> settings) {
    return settings.apply(S3Store.builder(of, BUCKET).prefix(prefix).callTimeout(NEVER)).build();
  }

  static S3AsyncClient client(int port, SdkAsyncHttpClient http) {
    return client(port, http, ATTEMPTS);
  }

  /** A client that asks so many times at most. */
  static S3AsyncClient client(int port, SdkAsyncHttpClient http, int attempts) {
    return S3AsyncClient.builder()
        .overrideConfiguration(
            all ->
                all.retryStrategy(
                    retry ->
                        retry
                            .maxAttempts(attempts)
                            .backoffStrategy(BackoffStrategy.fixedDelay(PAUSE))
                            .throttlingBackoffStrategy(BackoffStrategy.fixedDelay(PAUSE))))
        .endpointOverride(URI.create("http://127.0.0.1:" + port))
        .region(Region.US_EAST_1)
        .forcePathStyle(true)
        .credentialsProvider(
            StaticCredentialsProvider.create(AwsBasicCredentials.create("any", "any")))
        .httpClient(http)
        .build();
  }

  TopicPartition newPartition() {
    String topic = "topic-" + topics++;
    got(store.createTopic(topic, 1));
    return new TopicPartition(topic, 0);
  }

  /** So many objects of one batch of one record each. */
  TopicPartition filled(int batches, int size) {
    TopicPartition partition = newPartition();
    for (int i = 0; i < batches; i++) {
      append(partition, i, size);
    }
    return partition;
  }

  long append(TopicPartition partition, int value, int size) {
    return got(store.append(partition, bytes(value, size), 1, 1000 + value));
  }

  static ByteBuffer bytes(int value, int size) {
    byte[] bytes = new byte[size];
    Arrays.fill(bytes, (byte) value);
    return ByteBuffer.wrap(bytes);
  }

  static ReadSpec from(long offset, int maxBytes) {
    return new ReadSpec(offset, maxBytes, true, Isolation.READ_UNCOMMITTED);
  }

  List<RecordBatch> read(S3Store from, TopicPartition partition, ReadSpec spec) {
    return got(reading(from, partition, spec, Deadline.after(BOUND)).collectList());
  }

  static Flux<RecordBatch> reading(
      S3Store from, TopicPartition partition, ReadSpec spec, Deadline budget) {
    return Flux.from(
        Deadlines.<RecordBatch>within(BOUND).apply(from.read(partition, spec, budget)));
  }

  static List<Long> bases(List<RecordBatch> batches) {
    return batches.stream().map(RecordBatch::baseOffset).toList();
  }

  static <T> T got(Mono<T> mono) {
    return Objects.requireNonNull(mono.block(BOUND));
  }

  /** From now on reads of its objects are not answered. */
  void stall(TopicPartition partition) {
    requests.detour(keys.log(partition));
    detour.freezeAll();
  }

  void thaw(TopicPartition partition) {
    requests.endDetour(keys.log(partition));
    detour.heal();
  }

  /** Soon: the SDK gives an answer before it ends its request. */
  void nothingOpen() {
    eventually(() -> assertThat(requests.open()).as("requests left").isZero());
  }

  @Override
  public void close() {
    proxy.heal();
    detour.heal();
    requests.endFaults();
    nothingOpen();
    client.close();
    behind.close();
    proxy.close();
    detour.close();
  }
}
