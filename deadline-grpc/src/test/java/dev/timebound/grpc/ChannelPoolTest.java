package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import dev.timebound.grpc.PoolFixture.TestCall;
import dev.timebound.health.HealthEngine;
import dev.timebound.health.MemberStatus;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.net.ConnectException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** The pool's counts, choice, penalties and size, in virtual time over fake channels. */
class ChannelPoolTest {
  private PoolFixture fixture = PoolFixture.ofSize(2);

  private PoolFixture use(PoolFixture other) {
    fixture.close();
    fixture = other;
    return other;
  }

  @AfterEach
  void nothingIsLeft() {
    fixture.close();
    assertThat(fixture.pool.inFlight()).as("in flight after close").isZero();
    assertThat(fixture.pool.isTerminated()).isTrue();
    assertThat(fixture.fakes).allMatch(fake -> fake.isTerminated());
  }

  @Nested
  class InFlight {
    @Test
    @DisplayName("BT-1 a stream counts until its body ends, not until its headers arrive")
    void untilTheBodyEnds() {
      TestCall call = fixture.call();
      assertThat(fixture.pool.inFlight()).isEqualTo(1);
      call.transport().headersSent();
      call.transport().headersCome();
      assertThat(fixture.pool.inFlight()).isEqualTo(1);
      call.transport().messageComes();
      assertThat(fixture.pool.inFlight()).isEqualTo(1);
      assertThat(fixture.health(call.channel()).open()).isEqualTo(1);
      call.transport().answer(Status.OK);
      assertThat(fixture.pool.inFlight()).isZero();
      assertThat(fixture.health(call.channel()).open()).isZero();
      assertThat(call.closed).isEqualTo(Status.OK);
    }

    @Test
    @DisplayName("BT-1 a call queued unsent counts, and so does one of a plain stub")
    void queuedAndPlain() {
      TestCall queued = fixture.call();
      TestCall plain = fixture.plainCall();
      assertThat(fixture.pool.inFlight()).isEqualTo(2);
      assertThat(queued.channel()).isNotEqualTo(plain.channel());
    }

    @Test
    @DisplayName(
        "BT-1 a cancel ends the count at once, and the close that follows ends nothing twice")
    void cancel() {
      TestCall call = fixture.call().sent();
      call.cancel();
      call.cancel();
      assertThat(fixture.pool.inFlight()).isZero();
      assertThat(call.closes).isEqualTo(1);
      assertThat(fixture.health(call.channel()).penalty()).as("a cancel penalises nobody").isZero();
    }

    @Test
    @DisplayName("BT-1 a call that is made and never started counts for nothing")
    void neverStarted() {
      ClientCall<byte[], byte[]> call =
          fixture.pool.newCall(FakeChannel.METHOD, CallOptions.DEFAULT);
      assertThat(fixture.pool.inFlight()).isZero();
      call.cancel("never started", null);
      assertThat(fixture.pool.inFlight()).isZero();
    }

    @Test
    @DisplayName("BT-1 a channel that closes between newCall and start takes no count below zero")
    void closedBetweenNewCallAndStart() {
      ClientCall<byte[], byte[]> call =
          fixture.pool.newCall(FakeChannel.METHOD, CallOptions.DEFAULT);
      fixture.fakes.forEach(
          fake ->
              fake.onStart =
                  () -> fake.lastCall().close(Status.UNAVAILABLE.withDescription("shutdown")));
      List<Status> closed = new ArrayList<>();
      call.start(listener(closed), new Metadata());
      assertThat(closed).extracting(Status::getCode).containsExactly(Status.Code.UNAVAILABLE);
      assertThat(fixture.pool.inFlight()).isZero();
      assertThat(fixture.pool.channels()).allMatch(member -> member.open() == 0);
    }

    @Test
    @DisplayName(
        "BT-1 BT-4 a channel that refuses to make the call ends its count, and pays for it")
    void newCallThrows() {
      fixture.fakes.forEach(fake -> fake.newCallFails = new IllegalStateException("no call"));
      ClientCall<byte[], byte[]> call =
          fixture.pool.newCall(FakeChannel.METHOD, CallOptions.DEFAULT);
      assertThatThrownBy(() -> call.start(listener(new ArrayList<>()), new Metadata()))
          .hasMessage("no call");
      assertThat(fixture.pool.inFlight()).isZero();
      assertThat(fixture.pool.channels()).allMatch(member -> member.open() == 0);
      assertThat(fixture.pool.channels()).filteredOn(member -> member.penalty() > 0).hasSize(1);
      // As a caller may after any failure of start.
      call.cancel("given up", null);
      assertThat(fixture.pool.inFlight()).isZero();
    }

    @Test
    @DisplayName("BT-1 a start that throws ends its count")
    void startThrows() {
      fixture.fakes.forEach(fake -> fake.startFails = new IllegalStateException("broken"));
      ClientCall<byte[], byte[]> call =
          fixture.pool.newCall(FakeChannel.METHOD, CallOptions.DEFAULT);
      assertThatThrownBy(() -> call.start(listener(new ArrayList<>()), new Metadata()))
          .hasMessage("broken");
      assertThat(fixture.pool.inFlight()).isZero();
    }

    @Test
    @DisplayName("BT-1 HE-2a a classifier that throws keeps no call from its end")
    void classifierThrows() {
      use(
          new PoolFixture(
              b ->
                  b.fixedChannels(2)
                      .classifier(
                          call -> {
                            throw new IllegalStateException("the classifier's");
                          })));
      TestCall call = fixture.call();
      call.transport().close(Status.UNAVAILABLE);
      assertThat(call.ended()).isEqualTo(Status.UNAVAILABLE);
      assertThat(fixture.pool.inFlight()).isZero();
      assertThat(fixture.health(call.channel()).penalty()).isEqualTo(25);
    }

    @Test
    @DisplayName("a closed pool is terminated when its connections are gone, not before")
    void terminated() {
      fixture.fakes.get(1).connected = true;
      assertThat(fixture.pool.isTerminated()).isFalse();
      fixture.pool.close();
      assertThat(fixture.pool.isTerminated()).isFalse();
      fixture.fakes.get(1).connected = false;
      assertThat(fixture.pool.isTerminated()).isTrue();
    }

    @Test
    void aCallOnAClosedPoolIsUnavailable() {
      fixture.pool.close();
      TestCall call = fixture.call();
      assertThat(call.ended().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(call.ended().getDescription()).contains("test is closed");
      assertThat(fixture.pool.inFlight()).isZero();
    }
  }

  private static ClientCall.Listener<byte[]> listener(List<Status> closed) {
    return new ClientCall.Listener<>() {
      @Override
      public void onClose(Status status, Metadata trailers) {
        closed.add(status);
      }
    };
  }

  @Nested
  class Choice {
    @Test
    @DisplayName("BT-3 a new call goes to the channel with the least load")
    void leastLoaded() {
      use(PoolFixture.ofSize(4));
      Map<Integer, Integer> count = new HashMap<>();
      for (int i = 0; i < 40; i++) {
        count.merge(fixture.call().channel(), 1, Integer::sum);
      }
      assertThat(count).containsValues(10, 10, 10, 10).hasSize(4);
    }

    @Test
    @DisplayName("BT-3 ties are broken at random, not always for the first")
    void ties() {
      use(PoolFixture.ofSize(4));
      Map<Integer, Integer> count = new HashMap<>();
      for (int i = 0; i < 400; i++) {
        TestCall call = fixture.call();
        count.merge(call.channel(), 1, Integer::sum);
        call.transport().answer(Status.OK);
      }
      assertThat(count).hasSize(4);
      assertThat(count.values()).allMatch(n -> n > 50);
    }

    @Test
    @DisplayName("BT-35 an attempt avoids the channels that failed, the least loaded too")
    void avoids() {
      TestCall first = fixture.callOn(1);
      for (int i = 0; i < 5; i++) {
        assertThat(fixture.call(PoolFixture.name(2)).channel()).isEqualTo(1);
      }
      assertThat(first.channel()).isEqualTo(1);
      assertThat(fixture.call("test-1", "test-2").channel())
          .as("with every channel to be avoided one is tried all the same")
          .isPositive();
    }
  }

  @Nested
  class Penalty {
    @ParameterizedTest
    @DisplayName("BT-4 these statuses penalise their channel by 25 calls")
    @ValueSource(strings = {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL"})
    void penalises(String code) {
      TestCall call = fixture.call();
      call.transport().answer(Status.Code.valueOf(code).toStatus());
      assertThat(fixture.health(call.channel()).penalty()).isEqualTo(25);
    }

    @ParameterizedTest
    @DisplayName("BT-4 a connection failure, a reset and a bare HTTP error penalise too")
    @CsvSource({
      "UNAVAILABLE, io exception",
      "INTERNAL, RST_STREAM closed stream",
      "UNAVAILABLE, HTTP status code 503",
      "INTERNAL, HTTP status code 400",
      "CANCELLED, RST_STREAM closed stream. HTTP/2 error code: CANCEL",
    })
    void unanswered(String code, String description) {
      TestCall call = fixture.call();
      call.transport().close(Status.Code.valueOf(code).toStatus().withDescription(description));
      assertThat(fixture.health(call.channel()).penalty()).isEqualTo(25);
    }

    @ParameterizedTest
    @DisplayName("HE-2a an answer that says no is no fault of the channel")
    @ValueSource(
        strings = {
          "NOT_FOUND",
          "PERMISSION_DENIED",
          "INVALID_ARGUMENT",
          "ABORTED",
          "UNAUTHENTICATED"
        })
    void answers(String code) {
      TestCall call = fixture.call();
      call.transport().answer(Status.Code.valueOf(code).toStatus());
      assertThat(fixture.health(call.channel()).penalty()).isZero();
      assertThat(fixture.pool.inFlight()).isZero();
    }

    @Test
    @DisplayName(
        "BT-4 BT-30 an adapter's gap timeout penalises, and the cancel that follows changes nothing")
    void gapTimeout() {
      TestCall call = fixture.call().sentAndWaiting();
      assertThat(call.gapTimeout()).isTrue();
      assertThat(fixture.pool.inFlight()).isZero();
      call.cancel();
      assertThat(call.gapTimeout()).isFalse();
      assertThat(fixture.pool.inFlight()).isZero();
      assertThat(fixture.health(call.channel()).penalty()).isEqualTo(25);
    }

    @Test
    @DisplayName("HE-11 a call whose own deadline passed says nothing of its channel")
    void callersDeadline() {
      List<Status> closed = new ArrayList<>();
      ClientCall<byte[], byte[]> call =
          fixture.pool.newCall(
              FakeChannel.METHOD,
              CallOptions.DEFAULT.withDeadlineAfter(-1, java.util.concurrent.TimeUnit.SECONDS));
      call.start(listener(closed), new Metadata());
      fixture.fakes.stream()
          .flatMap(fake -> fake.calls.stream())
          .forEach(started -> started.close(Status.DEADLINE_EXCEEDED));
      assertThat(closed).hasSize(1);
      assertThat(fixture.pool.channels()).allMatch(member -> member.penalty() == 0);
      assertThat(fixture.pool.inFlight()).isZero();
    }

    @Test
    @DisplayName("HE-2a a DEADLINE_EXCEEDED that is not the caller's penalises")
    void notTheCallersDeadline() {
      TestCall call = fixture.call();
      call.transport().answer(Status.DEADLINE_EXCEEDED);
      assertThat(fixture.health(call.channel()).penalty()).isEqualTo(25);
    }

    @Test
    @DisplayName(
        "BT-4 in a pool of 2 a channel that answers UNAVAILABLE gets at most 1 of 10 calls")
    void oneOfTen() {
      for (int seed = 0; seed < 20; seed++) {
        use(PoolFixture.ofSize(2));
        int failed = 0;
        for (int i = 0; i < 10; i++) {
          TestCall call = fixture.call();
          if (call.channel() == 1) {
            failed++;
            call.transport().answer(Status.UNAVAILABLE);
          } else {
            call.transport().answer(Status.OK);
          }
        }
        assertThat(failed).isLessThanOrEqualTo(1);
      }
    }

    @Test
    @DisplayName(
        "BT-4 the penalty ends after 5 s; a further failure extends it and does not add up")
    void ends() {
      fixture.callOn(1).transport().answer(Status.UNAVAILABLE);
      fixture.pass(Duration.ofSeconds(3));
      fixture.callOn(1).transport().answer(Status.UNAVAILABLE);
      assertThat(fixture.health(1).penalty()).as("does not add up").isEqualTo(25);
      fixture.pass(Duration.ofMillis(4900));
      assertThat(fixture.health(1).penalty()).as("extended").isEqualTo(25);
      fixture.pass(Duration.ofMillis(200));
      assertThat(fixture.health(1).penalty()).as("ended").isZero();
    }

    @Test
    @DisplayName("BT-4 a penalised channel is chosen only once every other one carries 25 more")
    void onlyOnceTheOthersCarryMore() {
      use(PoolFixture.ofSize(3));
      fixture.callOn(1).transport().answer(Status.UNAVAILABLE);
      int others = 0;
      while (fixture.call().channel() != 1) {
        others++;
      }
      assertThat(others).isBetween(50, 52);
    }
  }

  @Nested
  class Size {
    @Test
    @DisplayName("BT-2 the size follows the interval's peak, not what is open when it ends")
    void peak() {
      use(new PoolFixture(b -> b.channels(4, 4, 200)));
      List<TestCall> calls = new ArrayList<>();
      for (int i = 0; i < 150; i++) {
        calls.add(fixture.call());
      }
      calls.forEach(call -> call.transport().answer(Status.OK));
      fixture.pass(Duration.ofMinutes(1));
      assertThat(fixture.pool.channels()).as("150 need 6").hasSize(6);
      fixture.pass(Duration.ofMinutes(1));
      assertThat(fixture.pool.channels()).as("back by 2 at most").hasSize(4);
    }

    @Test
    @DisplayName("BT-2 the next interval's peak starts from the calls still open")
    void startsFromOpen() {
      use(new PoolFixture(b -> b.channels(4, 4, 200)));
      for (int i = 0; i < 150; i++) {
        fixture.call();
      }
      fixture.pass(Duration.ofMinutes(1));
      assertThat(fixture.pool.channels()).hasSize(6);
      fixture.pass(Duration.ofMinutes(1));
      assertThat(fixture.pool.channels()).as("the 150 are still open").hasSize(6);
    }

    @Test
    @DisplayName("BT-2 one resize a minute")
    void oncePerInterval() {
      use(new PoolFixture(b -> b.channels(10, 4, 200)));
      fixture.pass(Duration.ofSeconds(59));
      assertThat(fixture.pool.channels()).hasSize(10);
      fixture.pass(Duration.ofSeconds(2));
      assertThat(fixture.pool.channels()).hasSize(8);
    }

    @Test
    @DisplayName(
        "BT-5 a channel that is dropped takes no new call and is shut down once its open ones end")
    void drain() {
      use(new PoolFixture(b -> b.channels(10, 4, 200)));
      List<TestCall> open = new ArrayList<>();
      for (int i = 0; i < 10; i++) {
        open.add(fixture.call());
      }
      open.subList(2, 10).forEach(call -> call.transport().answer(Status.OK));
      fixture.pass(Duration.ofMinutes(1));
      // The peak was 10: the size stays; the next interval's is 2.
      fixture.pass(Duration.ofMinutes(4));
      assertThat(fixture.pool.channels()).hasSize(4);
      assertThat(open.subList(0, 2)).as("none is cut").allMatch(call -> call.closed == null);
      TestCall first = open.get(0);
      fixture.pool.group().remove(fixture.member(first.channel())).subscribe();
      FakeChannel dropped = fixture.fakes.get(first.channel() - 1);
      for (int i = 0; i < 20; i++) {
        assertThat(fixture.call().channel()).isNotEqualTo(first.channel());
      }
      assertThat(dropped.shutdown).isFalse();
    }

    @Test
    @DisplayName("BT-5 the last open call's end shuts a dropped channel down")
    void shutDownAfterTheLast() {
      use(new PoolFixture(b -> b.channels(6, 4, 200)));
      // One call a channel; the two dropped are among those with the least to finish: all carry
      // one.
      List<TestCall> open = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        open.add(fixture.call());
      }
      fixture.pass(Duration.ofMinutes(1));
      open.subList(1, 6).forEach(call -> call.transport().answer(Status.OK));
      fixture.pass(Duration.ofMinutes(2));
      assertThat(fixture.pool.channels()).hasSize(4);
      assertThat(fixture.fakes.stream().filter(fake -> fake.shutdown)).hasSize(2);
      assertThat(fixture.fakes).noneMatch(fake -> fake.shutdownNow);
      assertThat(fixture.pool.openChannels()).isEqualTo(4);
    }

    @Test
    @DisplayName(
        "BT-2 channels are warmed in the background, and a warming that fails is never fatal")
    void warming() {
      use(
          new PoolFixture(
              b -> b.fixedChannels(4).warming(true).warmTimeout(Duration.ofSeconds(2))));
      List<String> ends = new ArrayList<>();
      fixture.pool.warm().subscribe(x -> {}, e -> ends.add("error"), () -> ends.add("warm"));
      assertThat(fixture.probes.sent).as("once, whoever waits for it").hasSize(4);
      assertThat(ends).isEmpty();
      fixture.pass(Duration.ofSeconds(3));
      assertThat(ends).containsExactly("warm");
      assertThat(fixture.probes.cancelled).isEqualTo(4);
      TestCall call = fixture.call();
      call.transport().answer(Status.OK);
      assertThat(call.closed).isEqualTo(Status.OK);
      fixture.pool.warm().block(Duration.ofSeconds(1));
    }
  }

  @Nested
  class Settings {
    @ParameterizedTest
    @DisplayName(
        "a setting out of its range is refused with its name, its value and what was expected")
    @CsvSource(
        delimiter = '|',
        value = {
          "0, 1, 2 | initialChannels: 0 (expected: >= 1)",
          "5, 6, 7 | initialChannels: 5 (expected: 6 to 7)",
          "5, 7, 6 | minChannels: 7 (expected: <= maxChannels 6)",
        })
    void channels(String values, String message) {
      String[] v = values.split(", ", -1);
      assertThatThrownBy(
              () ->
                  new PoolFixture(
                      b ->
                          b.channels(
                              Integer.parseInt(v[0]),
                              Integer.parseInt(v[1]),
                              Integer.parseInt(v[2].trim()))))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage(message);
    }

    @Test
    void durationsAndShares() {
      ChannelPoolBuilder b = ChannelPool.builder(watch -> new FakeChannel(), fixture.probes);
      assertThatThrownBy(() -> b.suspectAfter(Duration.ZERO))
          .hasMessage("suspectAfter: PT0S (expected: >= PT0.01S)");
      assertThatThrownBy(() -> b.suspectAfter(Duration.ofMillis(5)))
          .hasMessage("suspectAfter: PT0.005S (expected: >= PT0.01S)");
      assertThatThrownBy(() -> b.probeInterval(Duration.ofMillis(5), Duration.ofSeconds(1)))
          .hasMessage("probeInterval: PT0.005S (expected: >= PT0.01S)");
      assertThatThrownBy(() -> b.maxQuarantined(1.5))
          .hasMessage("maxQuarantined: 1.5 (expected: 0 to 1)");
      assertThatThrownBy(() -> b.rpcsPerChannel(5, 4))
          .hasMessage("maxRpcsPerChannel: 4 (expected: >= 5)");
      assertThatThrownBy(() -> b.probeInterval(Duration.ofSeconds(2), Duration.ofSeconds(1)))
          .hasMessage("maxProbeInterval: PT1S (expected: >= probeInterval PT2S)");
      assertThatThrownBy(() -> b.refreshAfter(Duration.ofMillis(9)))
          .hasMessage("refreshAfter: PT0.009S (expected: >= PT0.01S)");
      assertThatThrownBy(() -> b.connectTimeout(Duration.ZERO))
          .hasMessage("connectTimeout: PT0S (expected: >= PT0.01S)");
      assertThatThrownBy(() -> b.maxCancelsPerInterval(-1, Duration.ofSeconds(1)))
          .hasMessage("maxCancelsPerInterval: -1 (expected: >= 0)");
      assertThatThrownBy(() -> b.maxCancelsPerInterval(1, Duration.ZERO))
          .hasMessage("cancelInterval: PT0S (expected: > 0)");
      assertThatThrownBy(() -> b.replacement(0, Duration.ofMinutes(1), 2, Duration.ofMinutes(1)))
          .hasMessage("replacement.quarantines: 0 (expected: >= 1)");
      assertThatThrownBy(() -> b.replacement(3, Duration.ZERO, 2, Duration.ofMinutes(1)))
          .hasMessage("replacement.within: PT0S (expected: > 0)");
      assertThatThrownBy(() -> b.replacement(3, Duration.ofMinutes(1), -1, Duration.ofMinutes(1)))
          .hasMessage("replacement.timesTheMedian: -1.0 (expected: >= 0)");
      assertThatThrownBy(() -> b.replacement(3, Duration.ofMinutes(1), 2, Duration.ZERO))
          .hasMessage("replacement.atMostEvery: PT0S (expected: > 0)");
    }

    @Test
    @DisplayName("a null setting is refused by its name")
    @SuppressWarnings("NullAway")
    void nulls() {
      ChannelPoolBuilder b = ChannelPool.builder(watch -> new FakeChannel(), fixture.probes);
      assertThatThrownBy(() -> b.name(null)).hasMessage("name");
      assertThatThrownBy(() -> b.suspectAfter(null)).hasMessage("suspectAfter");
      assertThatThrownBy(() -> b.probeTimeout(null)).hasMessage("probeTimeout");
      assertThatThrownBy(() -> b.probeInterval(Duration.ofSeconds(1), null))
          .hasMessage("maxProbeInterval");
      assertThatThrownBy(() -> b.health(null)).hasMessage("health");
    }

    @Test
    @DisplayName("health checks, penalties and resizing can each be switched off")
    void switchedOff() {
      use(
          new PoolFixture(
              b -> b.channels(10, 4, 10).resizing(false).healthChecks(false).penalties(false)));
      TestCall failed = fixture.call();
      failed.transport().answer(Status.UNAVAILABLE);
      assertThat(fixture.health(failed.channel()).penalty()).isZero();
      TestCall stalled = fixture.callOn(1).sentAndWaiting();
      TestCall other = fixture.callOn(2).sent();
      fixture.passWith(Duration.ofMinutes(2), other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.HEALTHY);
      assertThat(fixture.probes.sent).isEmpty();
      assertThat(stalled.closed).isNull();
      assertThat(fixture.pool.channels()).hasSize(10);
    }
  }

  @Nested
  class Built {
    private static final Duration FOR_EVER = Duration.ofSeconds(Long.MAX_VALUE);

    @Test
    @DisplayName(
        "a pool whose channels cannot all be made leaves no channel, no meter and no group")
    void factoryThrows() {
      SimpleMeterRegistry registry = new SimpleMeterRegistry();
      try (HealthEngine engine = HealthEngine.builder().meters(registry).build()) {
        List<FakeChannel> made = new ArrayList<>();
        ChannelPoolBuilder broken =
            ChannelPool.builder(
                    watch -> {
                      if (made.size() == 2) {
                        throw new IllegalStateException("no third");
                      }
                      made.add(new FakeChannel());
                      return made.get(made.size() - 1);
                    },
                    fixture.probes)
                .fixedChannels(3)
                .health(engine);
        assertThatThrownBy(broken::build).hasMessage("no third");
        assertThat(made).hasSize(2).allMatch(FakeChannel::isShutdown);
        assertThat(engine.groups()).isEmpty();
        assertThat(registry.getMeters()).isEmpty();
        made.clear();
        broken.fixedChannels(2).build().close();
      }
    }

    @Test
    @DisplayName("a factory that gives null is refused")
    @SuppressWarnings("NullAway")
    void factoryGivesNull() {
      ChannelPoolBuilder broken = ChannelPool.builder(watch -> null, fixture.probes);
      assertThatThrownBy(broken::build).hasMessage("channels gave null");
    }

    @Test
    @DisplayName("limits of any length are taken")
    void longLimits() {
      fixture.probes.answered();
      PoolFixture.Probes probes = fixture.probes;
      try (ChannelPool pool =
          ChannelPool.builder(watch -> new FakeChannel(), probes)
              .fixedChannels(2)
              .resizing(true)
              .resize(FOR_EVER, 1)
              .warmTimeout(FOR_EVER)
              .suspectAfter(FOR_EVER)
              .probeTimeout(FOR_EVER)
              .probeInterval(FOR_EVER, FOR_EVER)
              .credentialsTimeout(FOR_EVER)
              .penalty(1, FOR_EVER)
              .refreshAfter(FOR_EVER)
              .connectTimeout(FOR_EVER)
              .maxCancelsPerInterval(1, FOR_EVER)
              .replacement(1, FOR_EVER, 2, FOR_EVER)
              .build()) {
        pool.warm().block(Duration.ofSeconds(10));
        assertThat(pool.channels()).hasSize(2);
      }
    }
  }

  @Nested
  class Told {
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

    private PoolFixture metered(int channels) {
      return new PoolFixture(b -> b.fixedChannels(channels).meters(registry));
    }

    private @Nullable Gauge channels(String pool) {
      return registry.find("timebound.pool.channels").tag("pool", pool).gauge();
    }

    @Test
    @DisplayName("two pools on one registry: each has its meters, and takes its own along")
    void meters() {
      PoolFixture first = use(metered(2));
      try (PoolFixture second = metered(3)) {
        assertThat(channels("test")).extracting(Gauge::value).isEqualTo(2.0);
        assertThat(channels("test#2")).extracting(Gauge::value).isEqualTo(3.0);
        first.close();
        assertThat(channels("test")).isNull();
        assertThat(registry.find("timebound.pool.in.flight").tag("pool", "test").gauge()).isNull();
        assertThat(channels("test#2")).extracting(Gauge::value).isEqualTo(3.0);
        assertThat(registry.find("timebound.health.open").tag("group", "test#2").gauge())
            .isNotNull();
      }
      assertThat(registry.getMeters()).isEmpty();
    }

    @Test
    @DisplayName("BT-2 warming that fails: one line, with the endpoint and the cause")
    void warmingFails() {
      List<String> lines =
          logged(
              () -> {
                fixture.probes.answer =
                    Mono.error(
                        Status.UNAVAILABLE
                            .withDescription("io exception")
                            .withCause(new ConnectException("refused: host/10.0.0.1:1"))
                            .asRuntimeException());
                PoolFixture.Probes probes = fixture.probes;
                try (ChannelPool pool = failing(probes)) {
                  assertThat(pool).hasToString("cold{healthy=4, open=0} to fake, 0 in flight");
                }
              });
      assertThat(lines)
          .containsExactly(
              "cold: 4 of 4 new channels to fake could not be warmed and are used all the same:"
                  + " io.grpc.StatusRuntimeException: UNAVAILABLE: io exception, by"
                  + " java.net.ConnectException: refused: host/10.0.0.1:1");
    }

    @Test
    @DisplayName("BT-2 a pool closed while it warms says nothing, and whoever waits for it goes on")
    void closedWhileWarming() {
      Sinks.One<String> probe = Sinks.one();
      fixture.probes.answer = probe.asMono();
      List<String> lines =
          logged(
              () -> {
                ChannelPool pool = failing(fixture.probes);
                Mono<Void> warm = pool.warm();
                pool.close();
                warm.block(Duration.ofSeconds(10));
                probe.tryEmitError(Status.UNAVAILABLE.asRuntimeException());
              });
      assertThat(lines).isEmpty();
    }

    private ChannelPool failing(PoolFixture.Probes probes) {
      return ChannelPool.builder(watch -> new FakeChannel(), probes)
          .name("cold")
          .fixedChannels(4)
          .build();
    }

    private List<String> logged(Runnable work) {
      Logger logger = (Logger) LoggerFactory.getLogger(ChannelPool.class);
      ListAppender<ILoggingEvent> appender = new ListAppender<>();
      appender.start();
      logger.addAppender(appender);
      try {
        work.run();
      } finally {
        logger.detachAppender(appender);
      }
      return appender.list.stream().map(ILoggingEvent::getFormattedMessage).toList();
    }
  }
}
