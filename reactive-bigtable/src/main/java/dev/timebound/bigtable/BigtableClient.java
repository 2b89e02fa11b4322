package dev.timebound.bigtable;

import com.google.auth.Credentials;
import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.FeatureFlags;
import com.google.bigtable.v2.PingAndWarmRequest;
import com.google.bigtable.v2.SampleRowKeysRequest;
import com.google.protobuf.ByteString;
import dev.timebound.grpc.ChannelPool;
import dev.timebound.grpc.ChannelPoolBuilder;
import dev.timebound.grpc.ConnectionLoops;
import dev.timebound.grpc.DeliveryExecutor;
import dev.timebound.grpc.GrpcCalls;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Metadata;
import io.grpc.auth.MoreCallCredentials;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Reads Cloud Bigtable, within the {@link dev.timebound.deadline.Deadline} of the Reactor Context,
 * through a pool of channels on which a stalled connection costs its readers a second or two and
 * nobody else anything.
 *
 * <p>A read is taken up elsewhere when its channel fails, is quarantined, or gives nothing for the
 * gap timeout while a row is wanted: after the last row delivered, so that no row is lost and none
 * comes twice. (BT-30 … BT-37)
 *
 * <p>Every Mono and Flux is cold: a subscription is a call. Errors: {@link
 * dev.timebound.deadline.DeadlineExceededException} where the caller's deadline passed, {@link
 * InvalidChunkStreamException} where the server's stream was broken, else {@link
 * io.grpc.StatusRuntimeException} with the status of the last attempt.
 *
 * <p>Thread-safe. Close it when done: reads still open end with UNAVAILABLE.
 */
public final class BigtableClient implements AutoCloseable {
  private static final Metadata.Key<String> REQUEST_PARAMS =
      Metadata.Key.of("x-goog-request-params", Metadata.ASCII_STRING_MARSHALLER);
  private static final Metadata.Key<String> RESOURCE_PREFIX =
      Metadata.Key.of("google-cloud-resource-prefix", Metadata.ASCII_STRING_MARSHALLER);

  private static final Metadata.Key<String> FEATURES =
      Metadata.Key.of("bigtable-features", Metadata.ASCII_STRING_MARSHALLER);

  /** What this client understands; a server keeps to itself what it is not told of here. */
  private static final String FEATURE_FLAGS =
      Base64.getUrlEncoder()
          .encodeToString(
              FeatureFlags.newBuilder()
                  .setReverseScans(true)
                  .setLastScannedRowResponses(true)
                  .setRetryInfo(true)
                  .setRoutingCookie(true)
                  .build()
                  .toByteArray());

  private final BigtableSettings settings;
  private final ChannelPool pool;
  private final CallOptions options;
  private final ReadRowsCalls reads;
  private final BigtableRetry retry;

  /** By what the request names: a table, or the instance. */
  private final ConcurrentHashMap<String, Channel> channels = new ConcurrentHashMap<>();

  private final AtomicBoolean closed = new AtomicBoolean();
  private final DeliveryExecutor delivery;
  private final ConnectionLoops loops;

  BigtableClient(
      BigtableClientBuilder builder,
      BigtableSettings settings,
      BigtableClientBuilder.Target target) {
    this.settings = settings;
    this.loops = ConnectionLoops.create("timebound-bigtable-io");
    this.delivery = DeliveryExecutor.create("timebound-bigtable", builder.deliverOn());
    Credentials credentials = builder.credentials();
    this.options =
        credentials == null
            ? CallOptions.DEFAULT
            : CallOptions.DEFAULT.withCallCredentials(MoreCallCredentials.from(credentials));
    Executor executor = delivery.executor();
    ChannelPoolBuilder poolBuilder =
        ChannelPool.builder(
                watch -> loops.bind(builder.newChannel(target, executor), watch).build(),
                new PingAndWarmProbe(settings, credentials, target.host(), this::attachHeaders))
            .name("bigtable")
            .classifier(BigtableStatuses::kind);
    try {
      builder.configure(poolBuilder);
      this.pool = poolBuilder.build();
    } catch (Throwable e) {
      loops.close(delivery::close);
      throw e;
    }
    BigtableMeters meters = BigtableMeters.of(builder.meters());
    BigtableObservations observations = BigtableObservations.of(builder.observations());
    this.reads =
        new ReadRowsCalls(settings, this::channelFor, options, executor, meters, observations);
    this.retry = new BigtableRetry(settings, options, observations);
  }

  public static BigtableClientBuilder builder() {
    return new BigtableClientBuilder();
  }

  /**
   * The rows that the query asks for, in key order (descending where it is reversed). With demand
   * for n rows, no more than the rows of one message and a bounded amount of messages are held
   * ahead of it. (BT-37, BT-42)
   */
  public Flux<Row> readRows(Query query) {
    return read(ObservedCall.READ_ROWS, query);
  }

  /** One row; empty where there is none under the key. */
  public Mono<Row> readRow(String tableId, ByteString key) {
    Query query = Query.builder(tableId).key(key).limit(1).build();
    return read(ObservedCall.READ_ROW, query).singleOrEmpty();
  }

  private Flux<Row> read(ObservedCall call, Query query) {
    return ReadRowsFlux.of(
        reads, call, query.toRequest(settings.tableName(query.tableId()), settings.appProfileId()));
  }

  /** One row by a key in UTF-8; empty where there is none. */
  public Mono<Row> readRow(String tableId, String key) {
    return readRow(tableId, ByteString.copyFromUtf8(key));
  }

  /**
   * Keys that part the table into pieces of about one size. Retried as a whole: none is delivered
   * before all have come.
   */
  public Flux<KeyOffset> sampleRowKeys(String tableId) {
    SampleRowKeysRequest request =
        SampleRowKeysRequest.newBuilder()
            .setTableName(settings.tableName(tableId))
            .setAppProfileId(settings.appProfileId())
            .build();
    return retry
        .around(
            ObservedCall.SAMPLE_ROW_KEYS,
            request.getTableName(),
            attempt ->
                GrpcCalls.serverStreaming(
                        channelFor(request.getTableName()),
                        BigtableGrpc.getSampleRowKeysMethod(),
                        attempt,
                        request)
                    .map(sample -> new KeyOffset(sample.getRowKey(), sample.getOffsetBytes()))
                    .collectList())
        .flatMapIterable(samples -> samples);
  }

  /** Asks the service to make itself ready for this instance and app profile. */
  public Mono<Void> pingAndWarm() {
    PingAndWarmRequest request = PingAndWarmProbe.request(settings);
    return retry
        .around(
            ObservedCall.PING_AND_WARM,
            request.getName(),
            attempt ->
                GrpcCalls.unary(
                    channelFor(request.getName()),
                    BigtableGrpc.getPingAndWarmMethod(),
                    attempt,
                    request))
        .then();
  }

  /** The channels under this client: their state, their events, what is in flight. */
  public ChannelPool pool() {
    return pool;
  }

  /** Whether no call is open and no read is under way; for tests that nothing is left. */
  boolean isIdle() {
    return pool.inFlight() == 0 && reads.watch().isIdle();
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      pool.close();
      loops.close(delivery::close);
    }
  }

  private Channel channelFor(String resource) {
    Channel known = channels.get(resource);
    return known != null ? known : channels.computeIfAbsent(resource, r -> attachHeaders(pool, r));
  }

  /** The headers that route a request: the service needs them to find the instance. */
  private Channel attachHeaders(Channel channel, String resource) {
    Metadata headers = new Metadata();
    String field = resource.contains("/tables/") ? "table_name" : "name";
    String params = field + "=" + URLEncoder.encode(resource, StandardCharsets.UTF_8);
    if (!settings.appProfileId().isEmpty()) {
      params +=
          "&app_profile_id=" + URLEncoder.encode(settings.appProfileId(), StandardCharsets.UTF_8);
    }
    headers.put(REQUEST_PARAMS, params);
    headers.put(RESOURCE_PREFIX, resource);
    headers.put(FEATURES, FEATURE_FLAGS);
    return ClientInterceptors.intercept(channel, AttemptHeaders.interceptor(headers));
  }
}
