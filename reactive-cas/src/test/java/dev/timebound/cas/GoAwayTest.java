package dev.timebound.cas;

import static dev.timebound.cas.Patience.until;
import static dev.timebound.cas.TestRing.end;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.kit.CasScript;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** A server that sends GOAWAY and leaves it to the client to close. */
@DisplayName("CAS-2d connections after GOAWAY")
class GoAwayTest {
  private final TestRing t = TestRing.of(1);
  private final Digest digest = t.put(0, 0);

  @AfterEach
  void close() {
    t.close();
  }

  @Test
  @DisplayName("CAS-2d one without calls is closed at once")
  void idle() {
    for (int i = 0; i < 5; i++) {
      t.readsRight(digest);
      t.server(0).goAway();
      int before = i + 1;
      until("it has connected again", () -> t.server(0).connections().size() > before);
    }

    t.server(0).awaitOpenConnections(1);
    t.readsRight(digest);
  }

  @Test
  @DisplayName("CAS-2d one with calls is closed with the last of them")
  void busy() {
    Digest large = t.put(t.contentOf(0, 4 << 20), 0);
    Taker reader = new Taker();
    t.ring.read(large).subscribe(reader);
    reader.request(1);
    until("it has its piece", () -> reader.pieces.size() == 1);
    t.server(0).goAway();
    until("it has connected again", () -> t.server(0).connections().size() == 2);
    t.readsRight(digest);
    assertThat(t.server(0).openConnections()).isEqualTo(2);

    reader.request(Long.MAX_VALUE);

    assertThat(reader.end.join()).isNull();
    t.server(0).awaitOpenConnections(1);
  }

  @Test
  @DisplayName("CAS-2d GOAWAY in each call leaves no connection behind")
  void inEachCall() {
    t.server(0).reads().always(CasScript.correct().chunkSize(20).goAwayAfter(1));
    for (int i = 0; i < 5; i++) {
      CompletableFuture<@Nullable Throwable> read = end(t.ring.readAll(digest));
      t.passPauses(read); // one that was on its way as the GOAWAY came is tried again
      assertThat(read.join()).isNull();
    }

    until("all but one are closed", () -> t.server(0).openConnections() <= 1);
  }
}
