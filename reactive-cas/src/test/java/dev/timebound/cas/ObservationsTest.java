package dev.timebound.cas;

import static dev.timebound.cas.Patience.LONG;
import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.end;
import static dev.timebound.cas.TestRing.failure;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasScript;
import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import dev.timebound.deadline.Deadlines;
import io.grpc.Status;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

@DisplayName("DL-5 each read, write and check is one observation")
class ObservationsTest {
  private final List<Observation.Context> stopped = new CopyOnWriteArrayList<>();
  private final ObservationRegistry registry = ObservationRegistry.create();
  private final TestRing t;

  ObservationsTest() {
    registry.observationConfig().observationHandler(new Recorder());
    t = TestRing.of(2, settings -> settings.observations(registry).retries(0));
  }

  private final class Recorder implements ObservationHandler<Observation.Context> {
    @Override
    public void onStop(Observation.Context context) {
      stopped.add(context);
    }

    @Override
    public boolean supportsContext(Observation.Context context) {
      return true;
    }
  }

  @AfterEach
  void close() {
    t.close();
  }

  private static @Nullable String value(Observation.Context context, String key) {
    var found = context.getAllKeyValues().stream().filter(kv -> kv.getKey().equals(key));
    return found.findFirst().map(kv -> kv.getValue()).orElse(null);
  }

  @Test
  @DisplayName("DL-5 a read tells its outcome, its attempts, its shard and where the time went")
  void read() {
    Digest digest = t.put(0, 1);
    t.server(0).reads().next(CasScript.status(Status.UNAVAILABLE));
    Deadline deadline = Deadline.after(Duration.ofSeconds(30));
    Observation parent = Observation.start("parent", registry);

    t.ring
        .readAll(digest)
        .contextWrite(c -> Deadlines.put(c, deadline).put("micrometer.observation", parent))
        .block(LONG);

    assertThat(stopped).hasSize(1);
    Observation.Context seen = stopped.get(0);
    assertThat(seen.getName()).isEqualTo("timebound.cas.read");
    assertThat(seen.getParentObservation()).isSameAs(parent);
    assertThat(value(seen, "outcome")).isEqualTo("ok");
    assertThat(value(seen, "attempts")).isEqualTo("2");
    assertThat(value(seen, "shard")).isEqualTo("s1");
    assertThat(value(seen, "ring")).isEqualTo("cas");
    assertThat(value(seen, "digest")).isEqualTo(digest.toString());
    assertThat(value(seen, "deadline.ledger"))
        .contains("cas.read attempt 1")
        .contains("cas.read attempt 2");
  }

  @Test
  @DisplayName("DL-5 an error is one, a cancel is none, a deadline that cancels is told as such")
  void ends() {
    failure(t.ring.read(t.put(0)));
    t.server(0).reads().always(CasScript.silence());
    t.ring.read(t.put(0, 0)).subscribe().dispose();
    failure(t.ring.read(t.put(0, 0)).transform(Deadlines.within(Duration.ofMillis(50))));

    until("all are told", () -> stopped.size() == 3);
    assertThat(stopped)
        .extracting(c -> value(c, "outcome"))
        .containsExactly("not_found", "cancelled", "deadline");
    assertThat(stopped.get(0).getError()).isInstanceOf(BlobNotFoundException.class);
    assertThat(stopped.get(1).getError()).isNull();
    assertThat(stopped.get(2).getError()).isInstanceOf(DeadlineExceededException.class);
  }

  @Test
  @DisplayName("DL-5 an existence check is one too")
  void check() {
    assertThat(end(t.ring.findMissing(Set.of(t.put(0), t.put(1)))).join()).isNull();

    assertThat(stopped).hasSize(1);
    assertThat(stopped.get(0).getName()).isEqualTo("timebound.cas.find-missing");
    assertThat(value(stopped.get(0), "outcome")).isEqualTo("ok");
  }

  @Test
  @DisplayName("DL-5 a strict check that leaves something unknown has failed, nobody cancelled it")
  void strict() {
    t.server(0).findMissing().always(CasScript.status(Status.UNAVAILABLE));
    Throwable failure = failure(t.ring.findMissingStrict(Set.of(t.put(0), t.put(1))));

    assertThat(stopped).hasSize(1);
    assertThat(value(stopped.get(0), "outcome")).isEqualTo("unavailable");
    assertThat(stopped.get(0).getError()).isSameAs(failure);
  }

  @Test
  @DisplayName("DL-5 a write tells its outcome, its attempts, its home and where the time went")
  void write() {
    byte[] content = t.contentOf(1, 1000);
    Observation parent = Observation.start("parent", registry);
    t.ring
        .write(content)
        .contextWrite(
            c ->
                Deadlines.put(c, Deadline.after(Duration.ofSeconds(30)))
                    .put("micrometer.observation", parent))
        .block(LONG);
    t.server(1).writes().next(CasScript.status(Status.INVALID_ARGUMENT));
    Throwable failure = failure(t.ring.write(t.contentOf(1, 100)));
    t.server(1).writes().always(CasScript.silence());
    var given = t.ring.write(t.contentOf(1, 100)).subscribe();
    t.server(1).writes().awaitCall(3);
    given.dispose();

    until("all are told", () -> stopped.size() == 3);
    assertThat(stopped)
        .extracting(Observation.Context::getName)
        .containsOnly("timebound.cas.write");
    assertThat(stopped)
        .extracting(c -> value(c, "outcome"))
        .containsExactly("ok", "invalid_argument", "cancelled");
    assertThat(stopped).extracting(c -> value(c, "shard")).containsOnly("s1");
    assertThat(stopped).extracting(c -> value(c, "attempts")).containsOnly("1");
    Observation.Context first = stopped.get(0);
    assertThat(first.getParentObservation()).isSameAs(parent);
    assertThat(value(first, "digest")).isEqualTo(Digest.of(content).toString());
    assertThat(value(first, "deadline.ledger")).contains("cas.write");
    assertThat(stopped.get(1).getError()).isSameAs(failure);
    assertThat(stopped.get(2).getError()).isNull();
  }

  @Test
  @DisplayName("DL-5 calls about many blobs are one observation each")
  void many() {
    List<byte[]> blobs = List.of(t.contentOf(0, 100), t.contentOf(1, 100));
    t.ring.writeMany(blobs).blockLast(LONG);
    t.ring.readMany(blobs.stream().map(Digest::of).toList()).blockLast(LONG);

    assertThat(stopped)
        .extracting(Observation.Context::getName)
        .containsExactly("timebound.cas.write-many", "timebound.cas.read-many");
    assertThat(stopped).extracting(c -> value(c, "outcome")).containsOnly("ok");
    assertThat(stopped).extracting(c -> value(c, "attempts")).containsOnlyNulls();
  }
}
