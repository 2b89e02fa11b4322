package dev.timebound.cas.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.timebound.cas.Digest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.cas.wire.RemoteExecution;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsRequest;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

@DisplayName("A scripted store fails as its script says")
class ScriptsTest extends Stubs {
  private final Digest digest = server.put("0123456789");

  @Test
  void withAStatusAndTrailersInMidStream() {
    Metadata.Key<String> key = Metadata.Key.of("why", Metadata.ASCII_STRING_MARSHALLER);
    Metadata trailers = new Metadata();
    trailers.put(key, "because");
    server
        .reads()
        .next(
            CasScript.correct().chunkSize(3).stopAfter(2, CasEnd.status(Status.ABORTED, trailers)));
    Iterator<ReadResponse> messages = bytes().read(reading(digest, 0, 0));

    assertThat(messages.next().getData().toStringUtf8()).isEqualTo("012");
    assertThat(messages.next().getData().toStringUtf8()).isEqualTo("345");
    assertThatThrownBy(messages::hasNext)
        .isInstanceOfSatisfying(
            StatusRuntimeException.class,
            thrown -> {
              assertThat(codeOf(thrown)).isEqualTo(Status.Code.ABORTED);
              assertThat(Status.trailersFromThrowable(thrown).get(key)).isEqualTo("because");
            });
    assertThat(read(digest, 0, 0)).as("one call's script").isEqualTo("0123456789");
  }

  @Test
  void withSilenceUntilTheClientGivesUp() {
    server.reads().always(CasScript.silence());
    fails(
        Status.Code.DEADLINE_EXCEEDED,
        () ->
            text(
                bytes().withDeadlineAfter(300, TimeUnit.MILLISECONDS).read(reading(digest, 0, 0))));

    CasCall call = server.reads().awaitCall(1);
    assertThat(call.awaitEnd()).isEqualTo(CasCall.End.RESET_BY_CLIENT);
    assertThat(call.timeout()).isBetween(Duration.ofMillis(1), Duration.ofMillis(300));
  }

  @Test
  void withAResetAfterTwoMessages() {
    server.reads().next(CasScript.correct().chunkSize(3).stopAfter(2, CasEnd.reset(2)));
    Iterator<ReadResponse> messages = bytes().read(reading(digest, 0, 0));
    messages.next();
    messages.next();
    fails(Status.Code.INTERNAL, () -> text(messages));
    assertThat(server.calls().get(0).awaitEnd()).isEqualTo(CasCall.End.RESET_BY_SERVER);
  }

  @Test
  void withAGoAwayThatKeepsTheCallOrDisownsIt() {
    server.reads().next(CasScript.correct().chunkSize(3).goAwayAfter(1));
    assertThat(read(digest, 0, 0)).isEqualTo("0123456789");
    Wait.until("it reads on the next connection", this::readsOnTheNext, server::toString);

    server.reads().next(CasScript.correct().chunkSize(3).stopAfter(1, CasEnd.goAway(0)));
    fails(Status.Code.UNAVAILABLE, () -> read(digest, 0, 0));
    assertThat(last().awaitEnd()).isEqualTo(CasCall.End.REFUSED);
  }

  /** One that was on its way as the GOAWAY came may be on the connection before, or refused. */
  private boolean readsOnTheNext() {
    try {
      assertThat(read(digest, 0, 0)).isEqualTo("0123456789");
      return last().connection().id() == 2;
    } catch (StatusRuntimeException e) {
      assertThat(e.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
      return false;
    }
  }

  private CasCall last() {
    List<CasCall> calls = server.calls();
    return calls.get(calls.size() - 1);
  }

  @Test
  void withItsConnection() {
    server.reads().next(CasScript.correct().stopAfter(0, CasEnd.closeConnection()));
    fails(Status.Code.UNAVAILABLE, () -> read(digest, 0, 0));
    assertThat(server.calls().get(0).awaitEnd()).isEqualTo(CasCall.End.CONNECTION_CLOSED);
    assertThat(read(digest, 0, 0)).isEqualTo("0123456789");
  }

  @Test
  void withWrongLongShortAndIgnorantContent() {
    server
        .reads()
        .next(
            CasScript.correct().wrongByteAt(1),
            CasScript.correct().tooLong(5),
            CasScript.correct().tooShort(5),
            CasScript.correct().ignoringOffset().ignoringLimit(),
            CasScript.correct().emptyPastEnd(),
            CasScript.correct().chunkSize(4).keepAlives(2));

    assertThat(read(digest, 0, 0)).hasSize(10).isNotEqualTo("0123456789").startsWith("0");
    assertThat(read(digest, 0, 0)).hasSize(15).startsWith("0123456789");
    assertThat(read(digest, 0, 0)).isEqualTo("01234");
    assertThat(read(digest, 4, 2)).isEqualTo("0123456789");
    assertThat(read(digest, 11, 0)).isEmpty();
    List<Integer> sizes = new ArrayList<>();
    bytes()
        .read(reading(digest, 0, 0))
        .forEachRemaining(message -> sizes.add(message.getData().size()));
    assertThat(sizes).containsExactly(4, 0, 0, 4, 0, 0, 2, 0, 0);
  }

  @Test
  void byDigestAndByNumber() {
    Digest other = server.put("other");
    server
        .reads()
        .forDigest(other, CasScript.status(Status.DATA_LOSS))
        .answer(call -> call.number() == 3 ? CasScript.status(Status.UNKNOWN) : null);

    assertThat(read(digest, 0, 0)).hasSize(10);
    fails(Status.Code.DATA_LOSS, () -> read(other, 0, 0));
    fails(Status.Code.UNKNOWN, () -> read(digest, 0, 0));
    server.heal();
    assertThat(read(other, 0, 0)).isEqualTo("other");
  }

  @Test
  void onceAGateIsOpen() {
    CompletableFuture<@Nullable Void> gate = new CompletableFuture<>();
    server.reads().next(CasScript.correct().after(gate));
    CompletableFuture<String> reading = CompletableFuture.supplyAsync(() -> read(digest, 0, 0));
    assertThat(server.reads().awaitCall(1).messagesSent()).isZero();
    assertThat(reading).isNotDone();
    gate.complete(null);
    assertThat(reading).succeedsWithin(Duration.ofSeconds(20)).isEqualTo("0123456789");
  }

  @Test
  void aWriteEarlyInMidStreamAndInWhatItSaysOfItsSize() {
    byte[] content = utf8("abcdefghij");
    Digest written = Digest.of(content);
    server
        .writes()
        .next(
            CasScript.correct().early(),
            CasScript.correct().stopAfter(1, CasEnd.status(Status.RESOURCE_EXHAUSTED)),
            CasScript.correct().committed(CasScript.CommittedSize.WRONG),
            CasScript.correct().committed(CasScript.CommittedSize.MINUS_ONE));

    assertThat(new Upload(uploadOf(written)).send(0, utf8("ab"), false).committed()).isEqualTo(10);
    assertThat(server.has(written)).isFalse();
    assertThat(new Upload(uploadOf(written)).send(0, utf8("ab"), false).failure())
        .isEqualTo(Status.Code.RESOURCE_EXHAUSTED);
    assertThat(new Upload(uploadOf(written)).send(0, content, true).committed()).isEqualTo(9);
    server.remove(written);
    assertThat(new Upload(uploadOf(written)).send(0, content, true).committed()).isEqualTo(-1);
    assertThat(server.writes().calls()).extracting(CasCall::dataBytes).contains(2L, 10L);
  }

  @Test
  void blobByBlobAndCapabilityByCapability() {
    Digest other = server.put("other");
    server.batchReads().next(CasScript.correct().blobStatus(other, Status.RESOURCE_EXHAUSTED));
    assertThat(
            store()
                .batchReadBlobs(
                    BatchReadBlobsRequest.newBuilder()
                        .addDigests(wire(digest))
                        .addDigests(wire(other))
                        .build())
                .getResponsesList())
        .extracting(r -> r.getStatus().getCode())
        .containsExactly(0, Status.Code.RESOURCE_EXHAUSTED.value());
    server.capabilities().next(CasScript.status(Status.UNIMPLEMENTED));
    fails(Status.Code.UNIMPLEMENTED, ScriptsTest.this::capabilities);
    assertThat(capabilities().getDigestFunctionsList())
        .containsExactly(RemoteExecution.DigestFunction.Value.SHA256);
  }
}
