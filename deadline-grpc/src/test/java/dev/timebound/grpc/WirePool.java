package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.PingAndWarmRequest;
import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.ReadRowsResponse;
import dev.timebound.health.HealthEvent;
import dev.timebound.health.MemberHealth;
import dev.timebound.test.Script;
import dev.timebound.test.ScriptedBigtable;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A pool on real connections to a scripted server; its close shows that nothing is left. */
final class WirePool implements AutoCloseable {
  static final Duration BOUND = Duration.ofSeconds(30);
  static final Duration SUSPECT = Duration.ofMillis(300);

  final ScriptedBigtable server;
  final ConnectionLoops loops;
  final ChannelPool pool;
  final List<HealthEvent> events = new CopyOnWriteArrayList<>();

  /** All channels to the server itself. */
  static WirePool direct(
      ScriptedBigtable server,
      ConnectionLoops loops,
      UnaryOperator<NettyChannelBuilder> channel,
      UnaryOperator<ChannelPoolBuilder> settings) {
    return new WirePool(
        server,
        loops,
        watch -> loops.bind(channel.apply(to(server.port())), watch).build(),
        settings);
  }

  WirePool(
      ScriptedBigtable server,
      ConnectionLoops loops,
      Function<ConnectionWatch, ManagedChannel> channels,
      UnaryOperator<ChannelPoolBuilder> settings) {
    this.server = server;
    this.loops = loops;
    pool =
        settings
            .apply(
                ChannelPool.builder(
                        channels,
                        (on, headers) ->
                            GrpcCalls.unary(
                                on,
                                BigtableGrpc.getPingAndWarmMethod(),
                                CallOptions.DEFAULT,
                                PingAndWarmRequest.getDefaultInstance()))
                    .name("wire")
                    .suspectAfter(SUSPECT)
                    .probeTimeout(SUSPECT)
                    .probeInterval(Duration.ofMillis(100), Duration.ofMillis(200)))
            .build();
    pool.health().events().subscribe(events::add);
    pool.warm().block(BOUND);
  }

  static NettyChannelBuilder to(int port) {
    return NettyChannelBuilder.forAddress("127.0.0.1", port)
        .usePlaintext()
        .disableRetry()
        .flowControlWindow(256 << 10);
  }

  /** Rows for that long, one every 10 ms, then silence. */
  static Script steady(Duration time) {
    Script script = Script.start();
    for (long i = 0; i < time.toMillis() / 10; i++) {
      script = script.pause(Duration.ofMillis(10)).rows("row");
    }
    return script.silence();
  }

  /** Reads on that channel, by the number in its name. */
  Read readOn(int channel, long demand) {
    return read(on(channel), demand, message -> {});
  }

  Set<String> on(int channel) {
    return pool.channels().stream()
        .map(MemberHealth::name)
        .filter(name -> !name.equals("wire-" + channel))
        .collect(Collectors.toSet());
  }

  Read read(Set<String> avoiding, long demand, Consumer<ReadRowsResponse> each) {
    Read read = new Read(demand, each);
    CallOptions options =
        CallOptions.DEFAULT.withOption(CallAttempt.KEY, CallAttempt.avoiding(avoiding));
    rows(options).subscribe(read);
    return read;
  }

  Flux<ReadRowsResponse> rows(CallOptions options) {
    return GrpcCalls.serverStreaming(
        pool,
        BigtableGrpc.getReadRowsMethod(),
        options,
        ReadRowsRequest.newBuilder().setTableName("t").build());
  }

  Mono<?> ping() {
    return GrpcCalls.unary(
        pool,
        BigtableGrpc.getPingAndWarmMethod(),
        CallOptions.DEFAULT,
        PingAndWarmRequest.getDefaultInstance());
  }

  List<String> names() {
    return pool.channels().stream().map(MemberHealth::name).toList();
  }

  List<PooledChannel> members() {
    return names().stream().map(pool::member).filter(Objects::nonNull).toList();
  }

  MemberHealth health(int channel) {
    MemberHealth health = pool.group().health("wire-" + channel);
    if (health == null) {
      throw new AssertionError("not in the pool: " + channel);
    }
    return health;
  }

  static void await(String what, BooleanSupplier condition) {
    BridgeServer.await(what, condition);
  }

  static void await(Collection<Read> reads, String what) {
    await(what, () -> reads.stream().allMatch(Read::isOver));
  }

  @Override
  public void close() {
    try {
      await("nothing in flight", () -> pool.inFlight() == 0);
      assertThat(pool.group().openClaims()).isZero();
      pool.close();
      loops.close();
      server.awaitOpenStreams(0);
      server.awaitOpenConnections(0);
      await("the pool's end", pool::isTerminated);
    } finally {
      pool.close();
      loops.close();
      server.close();
    }
  }

  /** One read and what came of it. */
  static final class Read extends BaseSubscriber<ReadRowsResponse> {
    private final long demand;
    private final Consumer<ReadRowsResponse> each;
    volatile int messages;
    volatile boolean completed;
    volatile @Nullable Throwable error;

    Read(long demand, Consumer<ReadRowsResponse> each) {
      this.demand = demand;
      this.each = each;
    }

    @Override
    protected void hookOnSubscribe(Subscription subscription) {
      if (demand > 0) {
        subscription.request(demand);
      }
    }

    @Override
    @SuppressWarnings("NonAtomicOperationOnVolatileField") // one signal at a time
    protected void hookOnNext(ReadRowsResponse message) {
      messages++;
      each.accept(message);
    }

    @Override
    protected void hookOnComplete() {
      completed = true;
    }

    @Override
    protected void hookOnError(Throwable e) {
      error = e;
    }

    boolean isOver() {
      return completed || error != null;
    }

    void awaitMessages(int n) {
      BridgeServer.await(n + " messages", () -> messages >= n);
    }
  }
}
