package dev.timebound.pg;

import static org.assertj.core.api.Assertions.assertThat;

import io.r2dbc.spi.R2dbcBadGrammarException;
import java.time.Duration;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

@DisplayName("PG-10 the names of one session's proofs")
class ProofNamesTest {
  private static final Fence HOUR = Fence.maxStaleness(Duration.ofHours(1));

  private final NamedProofs proofs = new NamedProofs();

  private String sql(Fence fence) {
    return proofs.sql(fence, 7, false);
  }

  private static String inFull(Fence fence) {
    return ProofSql.observation(fence, 7, false);
  }

  private static R2dbcBadGrammarException of(String state) {
    return new R2dbcBadGrammarException("refused", state);
  }

  @Test
  @DisplayName("PG-10 one is given with the first proof, and used once that was answered")
  void named() {
    String first = "PREPARE timebound_proof_1 AS " + inFull(HOUR) + "; EXECUTE timebound_proof_1";
    assertThat(sql(HOUR)).isEqualTo(first);
    proofs.ran();
    assertThat(sql(HOUR)).isEqualTo("EXECUTE timebound_proof_1");
    proofs.ran();
    assertThat(sql(HOUR)).isEqualTo("EXECUTE timebound_proof_1");
  }

  @Test
  @DisplayName("PG-10 one that was not answered is given anew, under a name that cannot be taken")
  void unconfirmed() {
    assertThat(sql(HOUR)).startsWith("PREPARE timebound_proof_1 ");
    assertThat(proofs.refused(of("57014"))).isFalse();
    assertThat(sql(HOUR)).startsWith("PREPARE timebound_proof_2 ");
    assertThat(sql(Fence.none())).isEqualTo(inFull(Fence.none()));
    proofs.ran();
    assertThat(sql(HOUR)).as("what ran was another one").startsWith("PREPARE timebound_proof_3 ");
  }

  @Test
  @DisplayName("PG-10 PG-20 one that finds the replica stale has its name all the same")
  void stale() {
    sql(HOUR);
    assertThat(proofs.refused(of("22012"))).isFalse();
    assertThat(sql(HOUR)).isEqualTo("EXECUTE timebound_proof_1");
  }

  @Test
  @DisplayName("PG-20 a position is another one each time: it is never told by a name")
  void position() {
    sql(HOUR);
    proofs.ran();
    Fence both = HOUR.and(Fence.at("1/0"));
    assertThat(sql(both)).isEqualTo(inFull(both));
    assertThat(sql(Fence.at("1/0"))).isEqualTo(inFull(Fence.at("1/0")));
    proofs.ran();
    assertThat(sql(both)).isEqualTo(inFull(both));
  }

  @Test
  @DisplayName("PG-10 sixteen stalenesses have one, no more")
  void most() {
    for (int i = 1; i <= 16; i++) {
      assertThat(sql(Fence.maxStaleness(Duration.ofSeconds(i)))).startsWith("PREPARE");
      proofs.ran();
    }
    assertThat(sql(HOUR)).isEqualTo(inFull(HOUR));
    assertThat(sql(Fence.maxStaleness(Duration.ofSeconds(16))))
        .isEqualTo("EXECUTE timebound_proof_16");
  }

  @Test
  @DisplayName("PG-10 a server that does not keep to names is sent none, and is asked once more")
  void off() {
    for (String state : new String[] {"26000", "42P05"}) {
      NamedProofs behindPooler = new NamedProofs();
      behindPooler.sql(HOUR, 7, false);
      assertThat(behindPooler.refused(of(state))).as("worth sending again").isTrue();
      assertThat(behindPooler.sql(HOUR, 7, false)).isEqualTo(inFull(HOUR));
      assertThat(behindPooler.refused(of(state))).as("not twice").isFalse();
    }
  }
}
