package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.PingAndWarmRequest;
import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.ReadRowsResponse;
import com.google.bigtable.v2.RowSet;
import com.google.protobuf.ByteString;
import dev.timebound.health.HealthEvent;
import dev.timebound.health.MemberStatus;
import dev.timebound.test.BigtableEmulator;
import dev.timebound.test.BigtableTable;
import dev.timebound.test.FaultProxy;
import dev.timebound.test.ProxyConnection;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.MetadataUtils;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Subscription;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Streams that are read lazily hold a window full of rows; taking those must not hide that their
 * connection receives nothing. Real sockets: bounds are generous.
 */
class BufferedRowsTest {
  private static final Duration BOUND = Duration.ofSeconds(20);
  private static final int ROWS = 3_000;

  private static BigtableTable table;

  private final FaultProxy proxy = FaultProxy.to("localhost", BigtableEmulator.shared().port());
  private final ConnectionLoops loops = ConnectionLoops.create("buffered-rows");
  private final ChannelPool pool =
      ChannelPool.builder(this::channel, new Ping())
          .name("buffered")
          .fixedChannels(2)
          .suspectAfter(Duration.ofMillis(500))
          .probeTimeout(Duration.ofMillis(500))
          .build();
  private final List<HealthEvent> events = new CopyOnWriteArrayList<>();
  private final Disposable.Composite open = Disposables.composite();

  @BeforeAll
  static void load() {
    table = BigtableEmulator.shared().createFreshTable("buffered", "f");
    ByteString value = ByteString.copyFrom(new byte[1_000]);
    table.load(
        IntStream.range(0, ROWS)
            .mapToObj(
                i ->
                    BigtableTable.entry(
                        String.format("row-%05d", i), BigtableTable.cell("f", "q", value))));
  }

  @AfterEach
  void nothingIsLeft() {
    open.dispose();
    proxy.thaw();
    pool.close();
    loops.close();
    Mono.delay(Duration.ofMillis(20)).repeat(() -> pool.inFlight() > 0).blockLast(BOUND);
    proxy.close();
    assertThat(pool.inFlight()).isZero();
    assertThat(proxy.openClientSockets()).isZero();
  }

  @Test
  @DisplayName(
      "BT-10 rows that a lazy stream takes from its full window are nothing received: the stalled"
          + " channel is suspect, and is quarantined")
  void lazyStreams() {
    open.add(pool.health().events().subscribe(events::add));
    Lazy first = lazy();
    Lazy second = lazy();
    until(() -> first.taken.get() > 5 && second.taken.get() > 5);
    // short reads on both channels, all the time
    open.add(
        Flux.interval(Duration.ofMillis(20))
            .onBackpressureDrop()
            .flatMap(i -> pointRead().onErrorComplete(), 1_000)
            .subscribe());
    until(() -> proxy.connections().stream().allMatch(c -> c.recentBytes() > 0));

    ProxyConnection stalled = proxy.freezeBusiest();
    until(() -> events.stream().anyMatch(event -> event.to() == MemberStatus.QUARANTINED));

    int before = first.taken.get() + second.taken.get();
    assertThat(stalled.state()).isEqualTo(ProxyConnection.State.FROZEN);
    assertThat(before).as("neither stream had run dry").isLessThan(2 * 200);

    stalled.thaw();
    until(() -> events.stream().anyMatch(event -> event.from() == MemberStatus.QUARANTINED));
  }

  /** Takes a row every 100 ms of what the server has long sent. */
  private Lazy lazy() {
    Lazy lazy = new Lazy();
    GrpcCalls.serverStreaming(
            pool,
            BigtableGrpc.getReadRowsMethod(),
            // no buffer but the window: each row taken is a row taken from there
            CallOptions.DEFAULT.withOption(GrpcCalls.REQUEST_AHEAD_BYTES, 1),
            ReadRowsRequest.newBuilder().setTableName(table.name()).build())
        .subscribe(lazy);
    open.add(lazy);
    open.add(Flux.interval(Duration.ofMillis(100)).subscribe(i -> lazy.request(1)));
    return lazy;
  }

  private Mono<ReadRowsResponse> pointRead() {
    RowSet key = RowSet.newBuilder().addRowKeys(ByteString.copyFromUtf8("row-00007")).build();
    return GrpcCalls.serverStreaming(
            pool,
            BigtableGrpc.getReadRowsMethod(),
            CallOptions.DEFAULT,
            ReadRowsRequest.newBuilder().setTableName(table.name()).setRows(key).build())
        .last();
  }

  private ManagedChannel channel(ConnectionWatch watch) {
    NettyChannelBuilder builder =
        NettyChannelBuilder.forAddress("localhost", proxy.port())
            .usePlaintext()
            .flowControlWindow(256 << 10);
    return loops.bind(builder, watch).build();
  }

  private static void until(java.util.function.BooleanSupplier condition) {
    Flux.interval(Duration.ofMillis(20)).takeUntil(i -> condition.getAsBoolean()).blockLast(BOUND);
  }

  private static final class Lazy extends BaseSubscriber<ReadRowsResponse> {
    final AtomicInteger taken = new AtomicInteger();

    @Override
    protected void hookOnSubscribe(Subscription subscription) {
      // the test asks
    }

    @Override
    protected void hookOnNext(ReadRowsResponse row) {
      taken.incrementAndGet();
    }

    @Override
    protected void hookOnError(Throwable error) {
      // one of the two ends with the quarantine
    }
  }

  private static final class Ping implements ChannelProbe {
    @Override
    public Mono<?> call(io.grpc.Channel channel, Metadata headers) {
      return GrpcCalls.unary(
          io.grpc.ClientInterceptors.intercept(
              channel, MetadataUtils.newAttachHeadersInterceptor(headers)),
          BigtableGrpc.getPingAndWarmMethod(),
          CallOptions.DEFAULT,
          PingAndWarmRequest.newBuilder().setName(BigtableEmulator.INSTANCE).build());
    }
  }
}
