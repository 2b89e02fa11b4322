package dev.timebound.pg;

import static dev.timebound.pg.Eventually.eventually;
import static dev.timebound.pg.Springs.list;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.test.PostgresReplicaSet;
import dev.timebound.test.PostgresReplicaSetExtension;
import io.r2dbc.spi.ConnectionFactory;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.annotation.Id;
import org.springframework.data.r2dbc.config.AbstractR2dbcConfiguration;
import org.springframework.data.r2dbc.repository.Query;
import org.springframework.data.r2dbc.repository.config.EnableR2dbcRepositories;
import org.springframework.data.relational.core.mapping.Table;
import org.springframework.data.repository.reactive.ReactiveCrudRepository;
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.transaction.ReactiveTransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@Timeout(120)
@ExtendWith(PostgresReplicaSetExtension.class)
@DisplayName("PG-14 Spring Data's repositories and @Transactional services, with no code of theirs")
class SpringDataTest {
  private final Routed routed;
  private final AnnotationConfigApplicationContext context;
  private final Parcels parcels;
  private final ParcelService service;

  SpringDataTest(PostgresReplicaSet servers) {
    routed = Routed.on(servers);
    context = new AnnotationConfigApplicationContext();
    context.registerBean(ConnectionFactory.class, () -> routed.db.connectionFactory());
    context.register(Config.class, ParcelService.class);
    context.refresh();
    parcels = context.getBean(Parcels.class);
    service = context.getBean(ParcelService.class);
  }

  @BeforeEach
  void warm() {
    routed
        .servers
        .primary()
        .execute("CREATE TABLE IF NOT EXISTS parcel (id serial PRIMARY KEY, town text)");
    routed.servers.primary().execute("TRUNCATE parcel");
    routed.servers.primary().execute("INSERT INTO parcel (town) VALUES ('Ulm'), ('Bonn')");
    routed.servers.awaitReplay();
    routed.warm();
  }

  @AfterEach
  void nothingIsLeft() {
    context.close();
    routed.close();
  }

  private void routes(String expected) {
    eventually(() -> assertThat(routed.routes()).isEqualTo(expected));
  }

  private static List<String> towns(Flux<Parcel> of) {
    return list(of.map(Parcel::town).sort());
  }

  @Test
  @DisplayName("PG-14 a repository in a service's read-only transaction reads on the reader")
  void inAReadOnlyService() {
    assertThat(towns(service.all())).containsExactly("Bonn", "Ulm");
    assertThat(service.count().block(Routed.BOUND)).isEqualTo(2);
    assertThat(list(service.servers())).containsExactly(true, true);
    routes("reader proved: 3");
  }

  @Test
  @DisplayName("PG-14 called outside of one it runs on the writer, whatever it is annotated with")
  void outside() {
    assertThat(towns(parcels.findAll())).containsExactly("Bonn", "Ulm");
    assertThat(parcels.isStandby().block(Routed.BOUND)).isFalse();
    routes("writer read_write_requested: 2");
  }

  @Test
  @DisplayName("PG-14 under readOnly() on the reader, its own and derived queries too")
  void underReadOnlyRouting() {
    assertThat(towns(parcels.findAll().transform(ReadOnlyRouting.readOnly())))
        .containsExactly("Bonn", "Ulm");
    assertThat(towns(parcels.findByTown("Ulm").transform(ReadOnlyRouting.readOnly())))
        .containsExactly("Ulm");
    assertThat(parcels.isStandby().transform(ReadOnlyRouting.readOnly()).block(Routed.BOUND))
        .isTrue();
    routes("reader proved: 3");
  }

  @Test
  @DisplayName(
      "PG-14 what it saves goes to the writer, in a transaction or not; one that fails not")
  void saves() {
    Parcel plain = parcels.save(new Parcel(null, "Kiel")).block(Routed.BOUND);
    assertThat(plain).isNotNull();
    assertThat(plain.id()).isNotNull();
    assertThat(list(service.send("Jena", "Gera")).stream().map(Parcel::town))
        .containsExactly("Jena", "Gera");
    assertThatThrownBy(() -> list(service.send("Hof", "nowhere"))).hasMessage("no such town");
    assertThat(
            routed.servers.primary().value("SELECT string_agg(town, ' ' ORDER BY id) FROM parcel"))
        .isEqualTo("Ulm Bonn Kiel Jena Gera");
    routes("writer read_write_requested: 3");
  }

  @Test
  @DisplayName("PG-14 a read-only service that joins a writing one reads its writes")
  void joined() {
    assertThat(towns(service.sendAndList("Hamm"))).containsExactly("Bonn", "Hamm", "Ulm");
    routes("writer read_write_requested: 1");
  }

  @Test
  @DisplayName("PG-11 with the reader frozen the service has its rows from the writer")
  void frozen() {
    routed.servers.standby().freeze();
    assertThat(towns(service.all())).containsExactly("Bonn", "Ulm");
    routes("writer reader_proof_timeout: 1");
  }

  @Test
  @DisplayName("PG-13 PG-19 @Transactional(timeout = 1) ends a repository's query in time")
  void timeout() {
    assertThatThrownBy(() -> service.slow().block(Routed.BOUND))
        .isInstanceOf(DeadlineExceededException.class)
        .hasMessageContaining("1 s");
  }

  @Test
  @DisplayName("PG-21 in one scope a read-only service sees what another service call wrote")
  void readYourWrites() {
    routed.servers.standby().pauseReplay();
    assertThat(
            towns(
                service
                    .send("Hamm", "Unna")
                    .thenMany(service.all())
                    .transform(ReadYourWrites.scope())))
        .containsExactly("Bonn", "Hamm", "Ulm", "Unna");
    assertThat(
            towns(
                parcels
                    .save(new Parcel(null, "Lage"))
                    .thenMany(Flux.defer(parcels::findAll).transform(ReadOnlyRouting.readOnly()))
                    .transform(ReadYourWrites.scope())))
        .contains("Lage");
    routed.servers.standby().resumeReplay();
  }

  @Table("parcel")
  record Parcel(@Id @Nullable Integer id, String town) {}

  interface Parcels extends ReactiveCrudRepository<Parcel, Integer> {
    @Transactional(readOnly = true)
    Flux<Parcel> findByTown(String town);

    @Transactional(readOnly = true)
    @Query("SELECT pg_is_in_recovery()")
    Mono<Boolean> isStandby();

    @Query("SELECT count(*) FROM parcel, pg_sleep(60)")
    Mono<Long> slow();
  }

  static class ParcelService {
    private final Parcels parcels;

    ParcelService(Parcels parcels) {
      this.parcels = parcels;
    }

    @Transactional(readOnly = true)
    Flux<Parcel> all() {
      return parcels.findAll();
    }

    @Transactional(readOnly = true)
    Mono<Long> count() {
      return parcels.count();
    }

    @Transactional(readOnly = true)
    Flux<Boolean> servers() {
      return Flux.concat(parcels.isStandby(), parcels.isStandby());
    }

    @Transactional
    Flux<Parcel> send(String one, String other) {
      return Flux.concat(
          parcels.save(new Parcel(null, one)),
          "nowhere".equals(other)
              ? Mono.error(new IllegalArgumentException("no such town"))
              : parcels.save(new Parcel(null, other)));
    }

    @Transactional
    Flux<Parcel> sendAndList(String town) {
      return parcels.save(new Parcel(null, town)).thenMany(all());
    }

    @Transactional(readOnly = true, timeout = 1)
    Mono<Long> slow() {
      return parcels.slow();
    }
  }

  @Configuration
  @EnableTransactionManagement(proxyTargetClass = true)
  @EnableR2dbcRepositories(considerNestedRepositories = true, basePackageClasses = Parcels.class)
  static class Config extends AbstractR2dbcConfiguration {
    private final ConnectionFactory factory;

    Config(ConnectionFactory factory) {
      this.factory = factory;
    }

    @Override
    public ConnectionFactory connectionFactory() {
      return factory;
    }

    @Bean
    ReactiveTransactionManager transactions() {
      return new R2dbcTransactionManager(factory);
    }
  }
}
