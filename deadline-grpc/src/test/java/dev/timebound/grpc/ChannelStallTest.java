package dev.timebound.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.grpc.PoolFixture.TestCall;
import dev.timebound.health.MemberStatus;
import dev.timebound.health.QuarantinedException;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.netty.shaded.io.netty.channel.ChannelHandlerContext;
import io.grpc.netty.shaded.io.netty.channel.ChannelInboundHandlerAdapter;
import io.grpc.netty.shaded.io.netty.channel.embedded.EmbeddedChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** Suspicion, probe, quarantine and return, in virtual time over fake channels. */
class ChannelStallTest {
  private static final Duration SUSPECT = Duration.ofMillis(1300);
  private static final Duration PROBED = Duration.ofMillis(1100);

  private PoolFixture fixture = PoolFixture.ofSize(2);

  private PoolFixture use(PoolFixture other) {
    fixture.close();
    fixture = other;
    return other;
  }

  @AfterEach
  void nothingIsLeft() {
    fixture.close();
    assertThat(fixture.pool.inFlight()).isZero();
    assertThat(fixture.pool.isTerminated()).isTrue();
  }

  private boolean probed() {
    return !fixture.probes.sent.isEmpty();
  }

  @Nested
  class Suspicion {
    @Test
    @DisplayName(
        "BT-10 one caller that waits in vain for 1 s while another channel receives is enough")
    void oneWaiter() {
      fixture.callOn(1).sentAndWaiting();
      TestCall other = fixture.callOn(2).sentAndWaiting();
      fixture.passWith(Duration.ofMillis(900), other);
      assertThat(probed()).as("before 1 s").isFalse();
      fixture.passWith(Duration.ofMillis(400), other);
      assertThat(probed()).isTrue();
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.SUSPECT);
      assertThat(fixture.status(2)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName(
        "BT-10 a response to any call of the channel is a response on it, headers and part messages too")
    void anyResponse() {
      fixture.callOn(1).sentAndWaiting();
      TestCall same = fixture.callOn(1).sent();
      TestCall other = fixture.callOn(2).sent();
      for (int i = 0; i < 40; i++) {
        if (i % 9 == 0) {
          same.transport().bytesCome();
        }
        fixture.passWith(Duration.ofMillis(100), other);
      }
      assertThat(probed()).isFalse();
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName("BT-10 what came in earlier and is only now read is no response on the channel")
    void readLate() {
      TestCall lazy = fixture.callOn(1).sent();
      fixture.callOn(1).sentAndWaiting();
      TestCall other = fixture.callOn(2).sent();
      EmbeddedChannel connection = new EmbeddedChannel(fixture.watches.get(0).handler());
      connection
          .pipeline()
          .addLast(
              new ChannelInboundHandlerAdapter() {
                @Override
                public void channelRead(ChannelHandlerContext context, Object data) {
                  lazy.transport().bytesCome();
                }
              });
      for (int i = 0; i < 30; i++) {
        connection.writeInbound("from the socket");
        fixture.passWith(Duration.ofMillis(100), other);
      }
      assertThat(probed()).as("the connection receives").isFalse();
      for (int i = 0; i < 14; i++) {
        lazy.transport().bytesCome();
        fixture.passWith(Duration.ofMillis(100), other);
      }
      assertThat(probed()).as("only what lay in the buffer is read").isTrue();
      connection.finishAndReleaseAll();
    }

    @Test
    @DisplayName("BT-11 a caller that is busy with what it has never makes its channel suspect")
    void busyCaller() {
      TestCall busy = fixture.callOn(1).sentAndWaiting();
      busy.transport().messageComes();
      busy.attempt.idle();
      TestCall other = fixture.callOn(2).sent();
      fixture.passWith(Duration.ofSeconds(20), other);
      assertThat(probed()).isFalse();
    }

    @Test
    @DisplayName("BT-11 a stream nobody asks from never makes its channel suspect")
    void unread() {
      fixture.callOn(1).sent();
      TestCall other = fixture.callOn(2).sent();
      fixture.passWith(Duration.ofSeconds(20), other);
      assertThat(probed()).isFalse();
    }

    @Test
    @DisplayName(
        "BT-11 a call queued unsent behind the server's stream limit never makes its channel suspect")
    void queued() {
      TestCall queued = fixture.callOn(1);
      queued.attempt.waiting();
      TestCall other = fixture.callOn(2).sent();
      fixture.passWith(Duration.ofSeconds(20), other);
      assertThat(probed()).isFalse();
      queued.transport().headersSent();
      fixture.passWith(SUSPECT, other);
      assertThat(probed()).as("and does once it is sent").isTrue();
    }

    @Test
    @DisplayName("BT-11 a plain stub waits while it has asked for more than has come")
    void plainStub() {
      TestCall plain = fixture.plainCall();
      plain.transport().headersSent();
      TestCall other = fixture.call(PoolFixture.name(plain.channel())).sent();
      fixture.passWith(Duration.ofSeconds(3), other);
      assertThat(probed()).as("asked for nothing").isFalse();
      plain.request(1);
      plain.transport().messageComes();
      fixture.passWith(Duration.ofSeconds(3), other);
      assertThat(probed()).as("has what it asked for").isFalse();
      plain.request(2);
      plain.transport().messageComes();
      fixture.passWith(SUSPECT, other);
      assertThat(probed()).as("one short of what it asked for").isTrue();
    }

    @Test
    @DisplayName("BT-12 while no other channel receives anything, no suspect is probed")
    void wholePoolSilent() {
      fixture.callOn(1).sentAndWaiting();
      fixture.callOn(2).sentAndWaiting();
      fixture.pass(Duration.ofSeconds(30));
      assertThat(probed()).isFalse();
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.HEALTHY);
      assertThat(fixture.status(2)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName("BT-12 what the other channel received before the wait began does not count")
    void earlierProgress() {
      TestCall other = fixture.callOn(2).sent();
      other.transport().bytesCome();
      fixture.callOn(1).sentAndWaiting();
      fixture.pass(Duration.ofSeconds(10));
      assertThat(probed()).isFalse();
    }
  }

  @Nested
  class Probe {
    @SuppressWarnings("NullAway.Init")
    private TestCall stalled;

    @SuppressWarnings("NullAway.Init")
    private TestCall other;

    private void suspect() {
      stalled = fixture.callOn(1).sentAndWaiting();
      other = fixture.callOn(2).sent();
      fixture.passWith(SUSPECT, other);
      assertThat(fixture.probes.sent).hasSize(1);
    }

    @Test
    @DisplayName(
        "BT-13 BT-15 a probe without an answer for 1 s quarantines: open calls fail at once, UNAVAILABLE by quarantine")
    void silentProbe() {
      suspect();
      TestCall unread = fixture.callOn(1).sent();
      fixture.passWith(PROBED, other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.QUARANTINED);
      for (TestCall call : List.of(stalled, unread)) {
        assertThat(call.ended().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(call.ended().getCause()).isInstanceOf(QuarantinedException.class);
        assertThat(call.closes).isEqualTo(1);
      }
      assertThat(other.closed).isNull();
      assertThat(fixture.pool.inFlight()).isEqualTo(1);
      assertThat(fixture.pool.quarantinedCalls()).isEqualTo(2);
      assertThat(fixture.health(1).penalty()).as("penalises nobody").isZero();
      assertThat(fixture.health(2).penalty()).isZero();
      for (int i = 0; i < 50; i++) {
        assertThat(fixture.call().channel()).as("takes no new calls").isEqualTo(2);
      }
    }

    @Test
    @DisplayName("BT-15 a cancel between the quarantine and its close does not hide the quarantine")
    void cancelAfterQuarantine() {
      suspect();
      fixture.fakes.get(0).closesLate = true;
      fixture.passWith(PROBED, other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.QUARANTINED);
      assertThat(stalled.closed).as("not yet told").isNull();
      stalled.cancel();
      stalled.transport().closeCancelled("by the quarantine", null);
      assertThat(stalled.ended().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(stalled.ended().getCause()).isInstanceOf(QuarantinedException.class);
      assertThat(fixture.pool.quarantinedCalls()).isEqualTo(1);
    }

    @Test
    @DisplayName(
        "BT-1 BT-15 what came in before a quarantine is its caller's to read until it leaves, and"
            + " is let go then")
    void leftovers() {
      use(
          new PoolFixture( // where resets are paced the transport is told once
              b -> b.fixedChannels(2).maxCancelsPerInterval(5, Duration.ofSeconds(30))));
      suspect();
      fixture.fakes.get(0).closesLate = true; // messages that nobody asked for hold its close up
      fixture.passWith(PROBED, other);
      assertThat(stalled.transport().requested).isZero();

      stalled.cancel();

      assertThat(stalled.transport().requested).as("all that is left").isEqualTo(Integer.MAX_VALUE);
      stalled.transport().closeCancelled("by the quarantine", null);
    }

    @Test
    @DisplayName("BT-15 a cancel before the quarantine stays a cancel, and is no quarantined call")
    void cancelBeforeQuarantine() {
      suspect();
      fixture.fakes.get(0).closesLate = true;
      stalled.cancel();
      TestCall unread = fixture.callOn(1).sentAndWaiting();
      fixture.passWith(PROBED, other);
      stalled.transport().closeCancelled("by its caller", null);
      unread.transport().closeCancelled("by the quarantine", null);
      assertThat(stalled.ended().getCode()).isEqualTo(Status.Code.CANCELLED);
      assertThat(fixture.health(1).open()).isZero();
    }

    @Test
    @DisplayName("BT-13 a probe whose connection fails is a failed probe")
    void connectionFails() {
      fixture.probes.connectionFails();
      suspect();
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.QUARANTINED);
    }

    @Test
    @DisplayName("BT-13 an answered probe clears: the call stays where it is")
    void answered() {
      fixture.probes.answered();
      suspect();
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.HEALTHY);
      assertThat(stalled.closed).isNull();
    }

    @Test
    @DisplayName("BT-13 probes of one that stays silent back off to 10 s")
    void backsOff() {
      fixture.probes.answered();
      suspect();
      fixture.passWith(Duration.ofSeconds(120), other);
      // At 1 s each they would be 120, at 10 s 12.
      assertThat(fixture.probes.sent.size()).isBetween(10, 40);
    }

    @Test
    @DisplayName("BT-14 a token that cannot be fetched neither quarantines nor restores")
    void credentialsFail() {
      fixture.probes.credentials = Mono.error(new IllegalStateException("no token"));
      stalled = fixture.callOn(1).sentAndWaiting();
      other = fixture.callOn(2).sent();
      fixture.passWith(Duration.ofSeconds(20), other);
      assertThat(probed()).isFalse();
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.SUSPECT);
      assertThat(stalled.closed).isNull();
      fixture.probes.credentials = Mono.fromSupplier(Metadata::new);
      fixture.passWith(Duration.ofSeconds(15), other);
      assertThat(fixture.status(1)).as("once they work again").isEqualTo(MemberStatus.QUARANTINED);
      fixture.probes.answered();
      fixture.probes.credentials = Mono.error(new IllegalStateException("no token"));
      fixture.passWith(Duration.ofSeconds(30), other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.QUARANTINED);
      fixture.probes.credentials = Mono.fromSupplier(Metadata::new);
      fixture.passWith(Duration.ofSeconds(15), other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName(
        "BT-14 a probe's limit does not start before its token is there; a token that hangs is bounded")
    void slowCredentials() {
      Sinks.One<Metadata> token = Sinks.one();
      fixture.probes.credentials = token.asMono();
      stalled = fixture.callOn(1).sentAndWaiting();
      other = fixture.callOn(2).sent();
      fixture.passWith(Duration.ofSeconds(5), other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.SUSPECT);
      Metadata headers = new Metadata();
      token.tryEmitValue(headers);
      fixture.passWith(Duration.ofMillis(500), other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.SUSPECT);
      assertThat(fixture.probes.sent).hasSize(1);
      assertThat(fixture.probes.sent.get(0)).isSameAs(headers);
      fixture.passWith(Duration.ofSeconds(1), other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.QUARANTINED);
    }

    @Test
    @DisplayName("BT-17 a quarantined channel is probed again and again; an answer restores it")
    void restores() {
      suspect();
      fixture.passWith(Duration.ofSeconds(10), other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.QUARANTINED);
      int before = fixture.probes.sent.size();
      fixture.probes.answered();
      fixture.passWith(Duration.ofSeconds(12), other);
      assertThat(fixture.probes.sent).hasSizeGreaterThan(before);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.HEALTHY);
      fixture.pass(Duration.ofSeconds(5));
      List<Integer> channels = new ArrayList<>();
      for (int i = 0; i < 10; i++) {
        channels.add(fixture.call().channel());
      }
      assertThat(channels).contains(1);
    }

    @Test
    @DisplayName("HE-12 a channel that returns takes its load in steps, over 5 s")
    void slowStart() {
      suspect();
      fixture.passWith(PROBED, other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.QUARANTINED);
      fixture.probes.answered();
      for (int i = 0; fixture.status(1) != MemberStatus.HEALTHY && i < 200; i++) {
        fixture.passWith(Duration.ofMillis(100), other);
      }
      List<Integer> loads = new ArrayList<>();
      for (int i = 0; i <= 5; i++) {
        loads.add(fixture.health(1).penalty());
        fixture.passWith(Duration.ofSeconds(1), other);
      }
      assertThat(loads).first().isEqualTo(25);
      assertThat(loads)
          .isSortedAccordingTo((a, b) -> Integer.compare(b, a))
          .doesNotHaveDuplicates();
      assertThat(loads).last().isEqualTo(0);
    }

    @Test
    @DisplayName("BT-12 a quarantined channel is probed though no other channel receives")
    void quarantinedIsProbedAllTheSame() {
      suspect();
      fixture.passWith(PROBED, other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.QUARANTINED);
      fixture.probes.answered();
      fixture.pass(Duration.ofSeconds(12));
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.HEALTHY);
    }

    @Test
    @DisplayName(
        "BT-15 a call that registers while its channel is being quarantined is failed or moved too")
    void registersMeanwhile() {
      suspect();
      // The start is under way when the probe's limit passes.
      FakeChannel first = fixture.fakes.get(0);
      first.onStart =
          () -> {
            first.onStart = null;
            fixture.passWith(PROBED, other);
          };
      TestCall late = fixture.callOn(1);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.QUARANTINED);
      assertThat(late.ended().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
      assertThat(fixture.pool.inFlight()).isEqualTo(1);
    }

    @Test
    @DisplayName(
        "HE-8 a channel dropped while it is probed: its open calls are failed all the same")
    void droppedMeanwhile() {
      use(PoolFixture.ofSize(4));
      suspect();
      fixture.pool.group().remove(fixture.member(1)).subscribe();
      fixture.passWith(PROBED, other);
      assertThat(stalled.ended().getCause()).isInstanceOf(QuarantinedException.class);
    }
  }

  @Nested
  class Cap {
    @Test
    @DisplayName(
        "BT-16 with 3 of 4 stalled nobody is quarantined, and their calls stay where they are")
    void threeOfFour() {
      use(PoolFixture.ofSize(4));
      List<TestCall> stalled = new ArrayList<>();
      for (int i = 1; i <= 3; i++) {
        stalled.add(fixture.callOn(i).sentAndWaiting());
      }
      TestCall other = fixture.callOn(4).sent();
      fixture.passWith(Duration.ofSeconds(30), other);
      for (int i = 1; i <= 3; i++) {
        assertThat(fixture.status(i)).isEqualTo(MemberStatus.SUSPECT);
      }
      assertThat(stalled).allMatch(call -> call.closed == null);
    }

    @Test
    @DisplayName("BT-16 half of the pool may be out")
    void twoOfFour() {
      use(PoolFixture.ofSize(4));
      fixture.callOn(1).sentAndWaiting();
      fixture.callOn(2).sentAndWaiting();
      TestCall other = fixture.callOn(3).sent();
      fixture.passWith(Duration.ofSeconds(3), other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.QUARANTINED);
      assertThat(fixture.status(2)).isEqualTo(MemberStatus.QUARANTINED);
    }

    @Test
    @DisplayName(
        "BT-16 one that is out already stays out until its probe is answered, and counts as suspect")
    void outStaysOut() {
      use(PoolFixture.ofSize(4));
      fixture.callOn(1).sentAndWaiting();
      TestCall other = fixture.callOn(4).sent();
      fixture.passWith(Duration.ofSeconds(3), other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.QUARANTINED);
      fixture.callOn(2).sentAndWaiting();
      fixture.callOn(3).sentAndWaiting();
      fixture.passWith(Duration.ofSeconds(10), other);
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.QUARANTINED);
      assertThat(fixture.status(2)).isEqualTo(MemberStatus.SUSPECT);
      assertThat(fixture.status(3)).isEqualTo(MemberStatus.SUSPECT);
    }

    @Test
    @DisplayName("BT-16 a pool of 1 quarantines nobody")
    void poolOfOne() {
      use(PoolFixture.ofSize(1));
      TestCall stalled = fixture.call().sentAndWaiting();
      fixture.pass(Duration.ofSeconds(30));
      assertThat(stalled.closed).isNull();
      assertThat(fixture.status(1)).isEqualTo(MemberStatus.HEALTHY);
    }
  }

  @ParameterizedTest
  @DisplayName(
      "BT-13 any status in the server's trailers is an answer, told by the trailers and never by the code")
  @EnumSource(value = Status.Code.class, names = "OK", mode = EnumSource.Mode.EXCLUDE)
  void anyAnswer(Status.Code code) {
    FakeChannel channel = new FakeChannel();
    PooledChannel member =
        new PooledChannel(
            "one",
            channel,
            new CallingProbe(),
            new ConnectionWatch(new LoopWatch(() -> 0, 1)),
            null);
    List<Object> answers = new ArrayList<>();
    member.probe().subscribe(answers::add);
    channel.lastCall().answer(code.toStatus());
    member.probe().subscribe(answers::add);
    channel.lastCall().close(code.toStatus());
    assertThat(answers)
        .containsExactly(
            dev.timebound.health.ProbeAnswer.ANSWERED,
            dev.timebound.health.ProbeAnswer.CONNECTION_FAILED);
  }

  private static final class CallingProbe implements ChannelProbe {
    @Override
    public Mono<?> call(io.grpc.Channel channel, Metadata headers) {
      return GrpcCalls.unary(
          channel,
          FakeChannel.METHOD.toBuilder().setType(io.grpc.MethodDescriptor.MethodType.UNARY).build(),
          io.grpc.CallOptions.DEFAULT,
          new byte[0]);
    }
  }
}
