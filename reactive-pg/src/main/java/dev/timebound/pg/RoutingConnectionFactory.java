package dev.timebound.pg;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;

/**
 * {@link RoutedDatabase} as an R2DBC {@link ConnectionFactory}, for frameworks: its connections are
 * bound when they are used. A transaction declared read-only runs on a reader that proved itself,
 * or on the writer where none can; everything else on the writer. Obtained by {@link
 * RoutedDatabase#connectionFactory}.
 *
 * <p>A read-only transaction is REPEATABLE READ; one that asks for SERIALIZABLE runs on the writer.
 * Its {@code LOCK_WAIT_TIMEOUT}, which is what Spring makes of {@code @Transactional(timeout = …)},
 * bounds it from its beginning on, within the caller's deadline. Statements outside a transaction
 * run on the writer, but under {@link ReadOnlyRouting}.
 */
public final class RoutingConnectionFactory implements ConnectionFactory {
  private final Router router;

  RoutingConnectionFactory(Router router) {
    this.router = router;
  }

  /**
   * Completes at once: nothing is dialled or borrowed for it. Fails once the database is closed.
   */
  @Override
  public Publisher<? extends Connection> create() {
    return Mono.fromSupplier(
        () -> {
          router.open();
          return new RoutedConnection(router);
        });
  }

  @Override
  public ConnectionFactoryMetadata getMetadata() {
    return Metadata.FACTORY;
  }
}
