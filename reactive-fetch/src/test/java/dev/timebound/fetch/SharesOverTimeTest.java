package dev.timebound.fetch;

import static dev.timebound.fetch.ShareRow.TOLERANCE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

@DisplayName("Halving, as a store sees it")
class SharesOverTimeTest {
  static Stream<List<ShareRow>> cases() {
    return ShareRow.cases().values().stream();
  }

  @ParameterizedTest
  @MethodSource("cases")
  @DisplayName("FE-1 FE-2 FE-3 FE-4 FE-5 starts, caps, budgets and ends are the worked numbers")
  void workedNumbers(List<ShareRow> rows) {
    try (Bench bench = new Bench(SharePolicy.HALVING)) {
      FetchRequest.Builder request = Bench.request(rows.get(0).maxWait());
      for (ShareRow row : rows) {
        request.partition(ScriptedStore.partition(row.partition()), 0);
        if (!row.behaviour().equals("unknown")) {
          script(bench.store.on(row.partition()), row);
        }
      }
      Bench.Answer<FetchResponse> answer = bench.fetch(request);
      for (ShareRow row : rows) {
        if (row.behaviour().equals("unknown")) {
          continue;
        }
        ScriptedStore.Script script = bench.store.on(row.partition());
        ScriptedStore.Call first = script.offsetCalls.get(0);
        assertThat(first.at()).as("start of %s", row).isCloseTo(row.startsAt(), within(TOLERANCE));
        assertThat(first.cap()).as("cap of %s", row).isCloseTo(row.cap(), within(TOLERANCE));
        assertThat(script.reads).as("reads of %s", row).hasSize(1);
        ScriptedStore.Call read = script.reads.get(0);
        assertThat(read.at())
            .as("read of %s", row)
            .isCloseTo(row.startsAt() + row.offsets(), within(TOLERANCE));
        assertThat(read.cap()).as("cap of read of %s", row).isCloseTo(row.cap(), within(TOLERANCE));
        assertThat(read.budget())
            .as("budget of %s", row)
            .isCloseTo(row.budget(), within(TOLERANCE));
      }
      assertThat(answer.at).isCloseTo(rows.get(rows.size() - 1).endsAt(), within(TOLERANCE));
    }
  }

  private static void script(ScriptedStore.Script script, ShareRow row) {
    if (row.offsets() > 0) {
      script.offsetsTake(row.offsets());
    }
    switch (row.behaviour()) {
      case "full" -> script.usesItsBudget();
      case "stall" -> script.stalls();
      default -> script.healthy();
    }
  }
}
