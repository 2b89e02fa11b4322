package dev.timebound.pg;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.Wrapped;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;

/**
 * A writer's factory that does something once, in the moment that a connection of it is first
 * called in a certain way: what a caller on another thread may do then too.
 */
final class Hooked implements ConnectionFactory {
  private final ConnectionFactory of;
  private final String call;
  private final Runnable hook;
  private final AtomicBoolean done = new AtomicBoolean();

  /** What was called on its connections, in order: names of methods, and statements' texts. */
  final List<String> calls = new CopyOnWriteArrayList<>();

  private Hooked(ConnectionFactory of, String call, Runnable hook) {
    this.of = of;
    this.call = call;
    this.hook = hook;
  }

  /**
   * @param call the name of a method of Connection, or how a statement's text begins
   */
  static Hooked before(ConnectionFactory of, String call, Runnable hook) {
    return new Hooked(of, call, hook);
  }

  @Override
  public Publisher<? extends Connection> create() {
    return Mono.from(of.create()).map(this::hooked);
  }

  private Connection hooked(Connection c) {
    return (Connection)
        Proxy.newProxyInstance(
            Hooked.class.getClassLoader(),
            new Class<?>[] {Connection.class, Wrapped.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("unwrap")) {
                return c;
              }
              String called =
                  method.getName().equals("createStatement")
                      ? String.valueOf(arguments[0])
                      : method.getName();
              calls.add(called);
              if (called.startsWith(call) && done.compareAndSet(false, true)) {
                hook.run();
              }
              return method.invoke(c, arguments);
            });
  }

  @Override
  public ConnectionFactoryMetadata getMetadata() {
    return of.getMetadata();
  }
}
