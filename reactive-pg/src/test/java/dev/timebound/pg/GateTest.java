package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@DisplayName("PG-16 PG-19 behind its end nothing is sent on a connection")
class GateTest {
  private final Gate gate = new Gate();
  private final List<String> happened = new ArrayList<>();

  private void happens(String what) {
    happened.add(what);
  }

  @Test
  @DisplayName("PG-16 an end while something is being sent comes behind it, one at rest at once")
  void endMeanwhile() {
    assertThat(
            gate.send(
                gate.turn(),
                () -> {
                  assertThat(gate.end(() -> happens("ROLLBACK"))).isTrue();
                  assertThat(gate.isOver()).isTrue();
                  happens("BEGIN");
                }))
        .isTrue();
    assertThat(happened).containsExactly("BEGIN", "ROLLBACK");
    Gate resting = new Gate();
    resting.end(() -> happens("at once"));
    assertThat(happened).endsWith("at once");
  }

  @Test
  @DisplayName(
      "PG-16 of several that are being sent it comes behind the last, and behind a failure")
  void several() {
    assertThatThrownBy(
            () ->
                gate.send(
                    gate.turn(),
                    () -> {
                      gate.send(gate.turn(), () -> gate.end(() -> happens("end")));
                      happens("outer");
                      throw new IllegalStateException("expected");
                    }))
        .hasMessage("expected");
    assertThat(happened).containsExactly("outer", "end");
  }

  @Test
  @DisplayName("PG-16 behind the end nothing is sent, and there is no second end")
  void behindTheEnd() {
    assertThat(gate.end(() -> happens("end"))).isTrue();
    assertThat(gate.end(() -> happens("second"))).isFalse();
    assertThat(gate.send(gate.turn(), () -> happens("sent"))).isFalse();
    assertThat(gate.next()).isFalse();
    assertThat(
            gate.sending(gate.turn(), () -> Mono.just("sent"), Mono.just("refused"))
                .collectList()
                .block())
        .containsExactly("refused");
    assertThat(happened).containsExactly("end");
  }

  @Test
  @DisplayName("PG-16 what belongs to a transaction that was rolled back is not sent behind it")
  void turns() {
    int transaction = gate.turn();
    Flux<String> late = gate.sending(transaction, () -> Mono.just("sent"), Flux.just("refused"));
    assertThat(late.collectList().block()).containsExactly("sent");
    assertThat(gate.next()).isTrue();
    assertThat(late.collectList().block()).containsExactly("refused");
    assertThat(gate.send(gate.turn(), () -> happens("of the next one"))).isTrue();
  }

  @Test
  @DisplayName("PG-16 a rollback does not overtake what is being sent")
  void noTurnMeanwhile() {
    gate.send(gate.turn(), () -> assertThat(gate.next()).isFalse());
    assertThat(gate.next()).isTrue();
  }
}
