package dev.timebound.fetch;

import static dev.timebound.fetch.Bench.request;
import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.common.KeyValue;
import io.micrometer.core.instrument.Measurement;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.Statistic;
import io.micrometer.core.instrument.search.Search;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

@DisplayName("Meters and observations of requests")
class ObservationsTest {
  private final List<Observation.Context> stopped = new ArrayList<>();
  private final ObservationRegistry registry = ObservationRegistry.create();
  private boolean throwing;

  ObservationsTest() {
    registry
        .observationConfig()
        .observationHandler(
            new ObservationHandler<>() {
              @Override
              public void onStop(Observation.Context context) {
                stopped.add(context);
                if (throwing) {
                  throw new IllegalStateException("handler");
                }
              }

              @Override
              public boolean supportsContext(Observation.Context context) {
                return true;
              }
            });
  }

  private static String tag(Observation.Context of, String key) {
    KeyValue value = of.getHighCardinalityKeyValue(key);
    KeyValue found = value == null ? of.getLowCardinalityKeyValue(key) : value;
    return found == null ? "" : found.getValue();
  }

  @Test
  @DisplayName("DL-5 each request is one observation, with what ended it and where its time went")
  void observed() {
    try (Bench bench = new Bench(s -> s.policy(SharePolicy.HALVING).observations(registry))) {
      bench.store.on(0).stalls();
      bench.store.on(1).healthy();
      Observation parent = Observation.start("request", registry);
      bench.run(
          bench
              .fetcher
              .fetch(request(500, 0, 1).build())
              .contextWrite(c -> c.put("micrometer.observation", parent)));
      Observation.Context fetch = stopped.get(0);
      assertThat(fetch.getName()).isEqualTo("timebound.fetch");
      assertThat(fetch.getParentObservation()).isSameAs(parent);
      assertThat(tag(fetch, "outcome")).isEqualTo("enough");
      assertThat(tag(fetch, "bytes")).isEqualTo("1000");
      assertThat(tag(fetch, "partitions")).isEqualTo("2");
      assertThat(tag(fetch, "deadline.ledger")).contains("fetch orders-0 stalled");
      throwing = true;
      assertThat(bench.fetch(request(500, 1)).item().sizeInBytes()).isEqualTo(1000);
      assertThat(stopped).hasSize(2);
    }
  }

  @Test
  @DisplayName("requests, rounds, bytes and turns are measured")
  void measured() {
    try (Bench bench = new Bench(SharePolicy.HALVING)) {
      bench.store.on(0).end(0);
      bench.store.on(1).stalls();
      bench.store.on(2).healthy();
      bench.fetch(request(500, 0));
      bench.fetch(request(500, 1, 2));
      bench.begin(request(500, 0)).subscription.dispose();
      assertThat(requests(bench, "max_wait")).isEqualTo(1);
      assertThat(requests(bench, "enough")).isEqualTo(1);
      assertThat(requests(bench, "cancelled")).isEqualTo(1);
      assertThat(bench.meters.get("timebound.fetch.rounds").summary().max()).isEqualTo(7);
      assertThat(bench.meters.get("timebound.fetch.bytes").summary().totalAmount()).isEqualTo(1000);
      assertThat(turns(bench, "stalled")).isEqualTo(1);
      assertThat(turns(bench, "read")).isEqualTo(1);
      assertThat(turns(bench, "empty")).isEqualTo(8);
    }
  }

  @Test
  @DisplayName("FE-23 two fetchers on one registry are measured each under its name")
  void named() {
    try (Bench bench = new Bench(SharePolicy.HALVING)) {
      bench.store.on(0).stalls();
      try (PartitionFetcher second =
          PartitionFetcher.builder(bench.store)
              .policy(SharePolicy.HALVING)
              .scheduler(bench.time)
              .health(bench.health)
              .name("second")
              .meters(bench.meters)
              .build()) {
        bench.fetch(request(500, 0));
        bench.run(second.fetch(request(500, 0).build()));
        bench.run(second.fetch(request(500, 0).build()));
      }
      assertThat(counts(bench, "fetch"))
          .containsOnlyKeys(
              "timebound.fetch.bytes",
              "timebound.fetch.read.deadline.exceeded",
              "timebound.fetch.requests",
              "timebound.fetch.rounds",
              "timebound.fetch.turns")
          .allSatisfy((meter, count) -> assertThat(count).isEqualTo(1));
      assertThat(counts(bench, "second"))
          .hasSize(5)
          .allSatisfy((meter, count) -> assertThat(count).isEqualTo(2));
    }
  }

  private static Map<String, Double> counts(Bench bench, String fetcher) {
    Map<String, Double> counts = new TreeMap<>();
    for (Meter meter : Search.in(bench.meters).tag("fetcher", fetcher).meters()) {
      for (Measurement each : meter.measure()) {
        if (each.getStatistic() == Statistic.COUNT) {
          counts.merge(meter.getId().getName(), each.getValue(), Double::sum);
        }
      }
    }
    return counts;
  }

  private static long requests(Bench bench, String outcome) {
    return bench.meters.get("timebound.fetch.requests").tag("outcome", outcome).timer().count();
  }

  private static long turns(Bench bench, String outcome) {
    return bench.meters.get("timebound.fetch.turns").tag("outcome", outcome).timer().count();
  }
}
