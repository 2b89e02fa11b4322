package dev.timebound.cas;

import static dev.timebound.cas.Patience.until;

import dev.timebound.cas.CasConfig.Endpoint;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.health.MemberStatus;
import dev.timebound.test.FaultProxy;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import reactor.test.scheduler.VirtualTimeScheduler;

/**
 * One shard behind a proxy that spoils its connections, in virtual time and without retries; after
 * the test nothing is left of it.
 */
final class ProxiedRing implements AfterEachCallback {
  final VirtualTimeScheduler time = VirtualTimeScheduler.create();
  final ScriptedCas server = ScriptedCas.start();
  final FaultProxy proxy = FaultProxy.to("127.0.0.1", server.port());
  final CasRing ring;

  ProxiedRing(UnaryOperator<CasRingBuilder> settings) {
    Endpoint endpoint = Endpoint.parse(proxy.hostAndPort());
    CasConfig config = new CasConfig(List.of(new CasConfig.Shard("s0", 1, List.of(endpoint), "")));
    ring = settings.apply(CasRing.builder(config).scheduler(time).retries(0)).build();
  }

  MemberStatus status() {
    return ring.health().members().iterator().next().status();
  }

  @Override
  public void afterEach(ExtensionContext context) {
    until("no claim is open", () -> ring.health().openClaims() == 0);
    until("no call is open", () -> ring.openCalls() == 0);
    ring.close();
    proxy.close();
    server.close();
    time.dispose();
  }
}
