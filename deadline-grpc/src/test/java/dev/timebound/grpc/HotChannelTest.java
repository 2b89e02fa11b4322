package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.PoolFixture.TestCall;
import dev.timebound.health.MemberHealth;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** That no channel of a pool is hotter than the others. */
class HotChannelTest {
  private static final int CHANNELS = 10;
  private static final int CALLS = 5_000;

  private final PoolFixture fixture =
      new PoolFixture(
          b -> b.fixedChannels(CHANNELS).refreshing(false).suspectAfter(Duration.ofMinutes(1)));

  @AfterEach
  void nothingIsLeft() {
    fixture.close();
    assertThat(fixture.pool.inFlight()).isZero();
  }

  private int hottest() {
    return fixture.pool.channels().stream().mapToInt(MemberHealth::open).max().orElse(0);
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "2, 3", "3, 10", "4, 40", "5, 250"})
  @DisplayName(
      "BT-3 calls of any length, few or many at a time: each channel gets its part, and none has two more open than its part")
  void evenShares(long seed, int atATime) {
    Random random = new Random(seed);
    List<TestCall> open = new ArrayList<>();
    int[] got = new int[CHANNELS + 1];
    for (int i = 0; i < CALLS; i++) {
      if (open.size() == atATime) {
        TestCall ends = open.remove(random.nextInt(open.size()));
        ends.transport().answer(Status.OK);
      }
      TestCall call = fixture.call();
      got[call.channel()]++;
      open.add(call);
    }
    int part = CALLS / CHANNELS;
    for (int channel = 1; channel <= CHANNELS; channel++) {
      assertThat(got[channel]).as("channel %s", channel).isBetween(part * 3 / 4, part * 5 / 4);
    }
    assertThat(hottest()).isLessThanOrEqualTo((atATime + CHANNELS - 1) / CHANNELS + 2);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  @DisplayName(
      "BT-1 BT-3 long streams on one channel: new calls go to the others until they carry as many")
  void longStreams(long seed) {
    Random random = new Random(seed);
    List<TestCall> streams = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      streams.add(fixture.callOn(1).sent());
      streams.get(i).transport().headersCome(); // answered long ago, as some pools count
    }
    ArrayDeque<TestCall> open = new ArrayDeque<>();
    for (int i = 0; i < 1000; i++) {
      TestCall call = fixture.call();
      assertThat(call.channel()).isNotEqualTo(1);
      open.add(call);
      if (open.size() > 50 + random.nextInt(50)) {
        open.remove().transport().answer(Status.OK);
      }
    }
    assertThat(hottest()).isEqualTo(20);
  }
}
