package dev.timebound.cas.kit;

import io.grpc.Status;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.Executor;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** What all calls of a scripted store share, over its starts. */
final class CasRooms implements CasTurn.House {
  private static final String BEARER = "Bearer ";

  private final Function<CasMethod, CasRoute> routes;
  private final @Nullable String instanceName;
  private volatile @Nullable String token;
  private volatile @Nullable CasEngine engine;

  CasRooms(
      Function<CasMethod, CasRoute> routes, @Nullable String instanceName, @Nullable String token) {
    this.routes = routes;
    this.instanceName = instanceName;
    this.token = token;
  }

  /** Which one runs now; null for none. */
  void engine(@Nullable CasEngine running) {
    engine = running;
  }

  void requireToken(@Nullable String expected) {
    token = expected;
  }

  @Override
  public Executor executor() {
    CasEngine running = engine;
    return running == null ? Runnable::run : running.executor();
  }

  @Override
  public void after(Duration delay, Runnable task) {
    CasEngine running = engine;
    if (running != null) {
      running.after(delay, task);
    }
  }

  @Override
  public CasScript scriptFor(CasCallRecord call) {
    return routes.apply(call.method()).scriptFor(call);
  }

  @Override
  public Status admits(CasCallRecord call) {
    String expected = token;
    if (expected != null && !(BEARER + expected).equals(call.header("authorization"))) {
      return Status.UNAUTHENTICATED.withDescription("no token, or not the one asked for");
    }
    if (instanceName != null && !instanceName.equals(call.instanceName())) {
      return Status.INVALID_ARGUMENT.withDescription(
          String.format(
              Locale.ROOT,
              "instance name: \"%s\" (expected: \"%s\")",
              call.instanceName(),
              instanceName));
    }
    return Status.OK;
  }
}
