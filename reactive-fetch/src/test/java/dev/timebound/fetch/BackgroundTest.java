package dev.timebound.fetch;

import static dev.timebound.fetch.Bench.request;
import static dev.timebound.fetch.ScriptedStore.partition;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@DisplayName("FE-24 progress of reads that are slow")
class BackgroundTest {
  private final Bench bench = new Bench(settings -> settings.backgroundBytes(350));
  private final FetchClient client = bench.fetcher.client();

  @BeforeEach
  void slowByNature() {
    bench.store.background = true;
  }

  @AfterEach
  void nothingIsLeft() {
    client.close();
    bench.close();
  }

  private Bench.Answer<FetchResponse> fetch(FetchRequest.Builder request) {
    return bench.run(client.fetch(request.build()));
  }

  @Test
  @DisplayName("FE-24 a 2 s read under a max_wait of 500 ms comes to its end: the 5 s give it room")
  void room() {
    for (SharePolicy policy : SharePolicy.values()) {
      try (Bench of = new Bench(policy)) {
        of.store.on(0).takes(2000);
        of.store.on(1).end(0);
        Bench.Answer<FetchResponse> answer = of.fetch(request(500, 0, 1));
        assertThat(of.data(answer, 0).batches()).as("%s", policy).hasSize(10);
      }
    }
  }

  @Test
  @DisplayName("FE-24 an abandoned read goes on, and serves the client's next request")
  void servesNext() {
    bench.store.on(0).takes(100);
    bench.store.on(1).healthy();
    assertThat(bench.data(fetch(request(500, 0, 1)), 0).batches()).isEmpty();
    assertThat(bench.store.on(0).active).as("it goes on").isEqualTo(1);
    assertThat(client.backgroundReads()).isEqualTo(1);
    bench.advance(100);
    assertThat(bench.store.on(0).active).isZero();
    Bench.Answer<FetchResponse> next = fetch(request(500, 0, 1));
    assertThat(bench.data(next, 0).batches()).as("up to its byte bound").hasSize(4);
    assertThat(bench.store.on(0).reads).as("read once").hasSize(1);
    assertThat(client.backgroundReads()).isZero();
    assertThat(bench.isPenalised(0)).isFalse();
  }

  @Test
  @DisplayName("FE-24 the next request finds it under way, and does not begin another")
  void joined() {
    bench.store.on(0).takes(100);
    bench.store.on(1).healthy();
    fetch(request(500, 0, 1));
    bench.advance(70);
    bench.store.on(1).takes(12);
    Bench.Answer<FetchResponse> next = fetch(request(500, 0, 1));
    assertThat(bench.data(next, 0).batches()).isNotEmpty();
    assertThat(bench.store.on(0).reads).hasSize(1);
  }

  @Test
  @DisplayName("FE-24 what it has is asked for by offset: another offset begins another read")
  void otherOffset() {
    bench.store.on(0).takes(100);
    bench.store.on(1).healthy();
    fetch(request(500, 0, 1));
    bench.advance(100);
    bench.store.on(0).healthy();
    double before = bench.store.now();
    Bench.Answer<FetchResponse> next = fetch(FetchRequest.builder().partition(partition(0), 8));
    assertThat(bench.data(next, 0).batches())
        .extracting(RecordBatch::baseOffset)
        .containsExactly(8L, 9L);
    assertThat(next.at).as("at once").isEqualTo(before);

    assertThat(bench.store.on(0).reads).hasSize(2);
  }

  @Test
  @DisplayName("FE-24 two requests at once, from different offsets, do not end each other's reads")
  void atOnce() {
    bench.store.on(0).takes(600);
    List<FetchResponse> answers = new ArrayList<>();
    for (int offset : new int[] {0, 7}) {
      client
          .fetch(FetchRequest.builder().partition(partition(0), offset, 1000).build())
          .subscribe(answers::add);
      bench.advance(100);
    }
    assertThat(bench.store.on(0).active).isEqualTo(2);
    bench.advance(600);

    assertThat(answers)
        .extracting(answer -> answer.partitions().get(0).batches().get(0).baseOffset())
        .containsExactly(0L, 7L);
    assertThat(bench.store.on(0).reads).hasSize(2);
    assertThat(client.backgroundReads()).isZero();
  }

  @Test
  @DisplayName("FE-25 a request that is cancelled leaves a read that another request waits for")
  void cancelledBesideAnother() {
    bench.store.on(0).takes(600);
    List<FetchResponse> answers = new ArrayList<>();
    FetchRequest same = FetchRequest.builder().partition(partition(0), 0, 1000).build();
    Disposable first = client.fetch(same).subscribe();
    client.fetch(same).subscribe(answers::add);
    bench.advance(100);
    first.dispose();
    assertThat(bench.store.on(0).active).isEqualTo(1);
    bench.advance(600);
    assertThat(answers).hasSize(1);
    assertThat(answers.get(0).partitions().get(0).batches()).isNotEmpty();
    assertThat(bench.store.on(0).reads).hasSize(1);
  }

  @Test
  @DisplayName("FE-24 what one request could not take, the next one does")
  void restLater() {
    bench.store.on(0).takes(100);
    bench.store.on(1).healthy();
    fetch(request(500, 0, 1));
    bench.advance(100);
    Bench.Answer<FetchResponse> next =
        fetch(FetchRequest.builder().partition(partition(0), 0, 250));
    assertThat(bench.data(next, 0).batches()).hasSize(2);
    next = fetch(FetchRequest.builder().partition(partition(0), 2, 250));
    assertThat(bench.data(next, 0).batches())
        .extracting(RecordBatch::baseOffset)
        .containsExactly(2L, 3L);
    assertThat(bench.store.on(0).reads).hasSize(1);
  }

  @Test
  @DisplayName("FE-24 it has a time of its own, and is let go after it")
  void time() {
    bench.store.on(0).stalls();
    bench.store.on(1).healthy();
    fetch(request(500, 0, 1));
    bench.advance(29_000);
    assertThat(bench.store.on(0).active).isEqualTo(1);
    bench.advance(1000);
    assertThat(bench.store.on(0).active).isZero();
    assertThat(client.backgroundReads()).isZero();
  }

  @Test
  @DisplayName("FE-24 it ends when the client goes")
  void clientGoes() {
    bench.store.on(0).stalls();
    bench.store.on(1).healthy();
    fetch(request(500, 0, 1));
    assertThat(bench.store.on(0).active).isEqualTo(1);
    client.close();
    assertThat(bench.store.on(0).active).isZero();
    fetch(request(500, 0, 1));
    assertThat(bench.store.on(0).active).as("and none is begun for it any more").isZero();
  }

  @Test
  @DisplayName("FE-25 a request that is cancelled ends the reads of its partitions")
  void cancelled() {
    bench.store.on(0).stalls();
    Bench.Answer<FetchResponse> answer =
        bench.subscribe(client.fetch(request(500, 0).build()).flux());
    bench.advance(10);
    answer.subscription.dispose();
    assertThat(bench.store.on(0).active).isZero();
    assertThat(client.backgroundReads()).isZero();
  }

  @Test
  @DisplayName("FE-24 only where the store asks for it, and only for a client")
  void notForOthers() {
    bench.store.on(0).stalls();
    bench.store.on(1).healthy();
    bench.fetch(request(500, 0, 1));
    assertThat(bench.store.on(0).active).isZero();
    bench.store.background = false;
    fetch(request(500, 0, 1));
    assertThat(bench.store.on(0).active).isZero();
  }

  @Test
  @DisplayName("FE-24 a read that fails in the background is begun anew")
  void failsInBackground() {
    bench
        .store
        .on(0)
        .read(
            (spec, budget) ->
                Flux.from(
                    Mono.delay(Duration.ofMillis(100), bench.time)
                        .then(Mono.<RecordBatch>error(new IllegalStateException("torn")))));
    bench.store.on(1).healthy();
    fetch(request(500, 0, 1));
    bench.advance(100);
    bench.store.on(0).healthy();
    Bench.Answer<FetchResponse> next = fetch(request(500, 0));
    assertThat(bench.data(next, 0).batches()).hasSize(4);
  }
}
