package dev.timebound.samples.kafka;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractRequest;
import reactor.core.scheduler.Schedulers;

/**
 * One request as it was read.
 *
 * @param session its connection's
 * @param clientId the client's own name; empty for none
 * @param arrived when it was read from its connection, on the parallel scheduler's clock, in
 *     nanoseconds: it may have waited since for those before it
 */
record Call(
    Session session,
    ApiKeys api,
    short version,
    int correlationId,
    String clientId,
    AbstractRequest request,
    long arrived) {
  /** On which {@link #arrived} counts. */
  static long now() {
    return Schedulers.parallel().now(TimeUnit.NANOSECONDS);
  }

  /** How long it has waited. */
  Duration age() {
    return Duration.ofNanos(Math.max(0, now() - arrived));
  }
}
