package dev.timebound.demo.fetch;

import dev.timebound.fetch.SharePolicy;
import dev.timebound.samples.kafka.KafkaGateway;
import dev.timebound.samples.kafka.KafkaGatewayBuilder;
import dev.timebound.samples.kafka.NothingShared;
import dev.timebound.samples.kafka.PostgresParts;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A client and a gateway of its own, on the database that all gateways share. */
final class GatewaySide implements Side {
  private static final String ABANDONED = "timebound.fetch.read.deadline.exceeded";

  private final Client client;
  private final PostgresParts parts;
  private final KafkaGateway gateway;
  private final MeterRegistry meters;
  private final Rounds rounds;
  private final Account account = new Account();
  private @Nullable ReadClient reader;

  private GatewaySide(
      Client client,
      PostgresParts parts,
      KafkaGateway gateway,
      MeterRegistry meters,
      Rounds rounds) {
    this.client = client;
    this.parts = parts;
    this.gateway = gateway;
    this.meters = meters;
    this.rounds = rounds;
  }

  static GatewaySide open(Client client, Variant variant, PgDatabase database) {
    PostgresParts parts = database.open(client);
    MeterRegistry meters = new SimpleMeterRegistry();
    Rounds rounds = new Rounds();
    SharePolicy policy = variant.policy();
    KafkaGatewayBuilder builder = parts.gateway();
    if (policy == null) {
      builder.fetchingBy(face -> rounds.around(NothingShared.over(parts.log().store())));
    } else {
      builder
          .fetching(fetcher -> fetcher.policy(policy).meters(meters))
          .fetchingBy(face -> rounds.around(face::fetch));
    }
    KafkaGateway gateway =
        Objects.requireNonNull(builder.start().block(PgDatabase.PATIENCE), "gateway");
    return new GatewaySide(client, parts, gateway, meters, rounds);
  }

  @Override
  public Client client() {
    return client;
  }

  String bootstrapServers() {
    return gateway.bootstrapServers();
  }

  @Override
  public void start() throws Exception {
    reader =
        client == Client.JAVA
            ? JavaClient.start(bootstrapServers(), account)
            : KcatClient.start(bootstrapServers(), account);
  }

  @Override
  public Account account() {
    return account;
  }

  @Override
  public Rounds rounds() {
    return rounds;
  }

  @Override
  public long abandoned() {
    return (long) meters.find(ABANDONED).counters().stream().mapToDouble(Counter::count).sum();
  }

  @Override
  public String failure() {
    ReadClient there = reader;
    return there == null ? "" : there.failure();
  }

  @Override
  public void close() throws InterruptedException {
    ReadClient there = reader;
    if (there != null) {
      there.close();
    }
    gateway.stop().then(parts.close()).block(PgDatabase.PATIENCE);
  }
}
