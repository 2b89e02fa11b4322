package dev.timebound.cas.kit;

import com.google.protobuf.MessageLite;
import dev.timebound.cas.Digest;
import dev.timebound.cas.wire.ByteStreams.QueryWriteStatusResponse;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * What a {@link ScriptedCas} does with one call: what a correct store does, but for what is said
 * here. Immutable: every method returns a script with that besides, so a script may be kept and
 * answered to many calls.
 *
 * <pre>{@code
 * CasScript.status(Status.UNAVAILABLE)                            // nothing but that
 * CasScript.silence()                                             // taken, and never answered
 * CasScript.correct().chunkSize(10).stopAfter(2, CasEnd.silence())  // 20 bytes, then nothing
 * CasScript.correct().wrongByteAt(7)                              // the right length, a wrong byte
 * }</pre>
 *
 * <p>A <i>message</i> is one that carries data: of a read those that are sent, of a write those
 * that are taken; empty keep-alives are not counted. What does not fit a method is without effect
 * on it.
 */
public final class CasScript {
  private static final CasScript CORRECT = new CasScript(new Terms());

  private final Terms terms;

  private CasScript(Terms terms) {
    this.terms = terms;
  }

  /** What a correct store does. Every script starts from it. */
  public static CasScript correct() {
    return CORRECT;
  }

  /** Ends the call at once with that status. */
  public static CasScript status(Status status) {
    return status(status, new Metadata());
  }

  /** Ends the call at once with that status and these trailers. */
  public static CasScript status(Status status, Metadata trailers) {
    return correct().stopAfter(0, CasEnd.status(status, trailers));
  }

  /** Takes the call, and never answers. */
  public static CasScript silence() {
    return correct().stopAfter(0, CasEnd.silence());
  }

  /** For QueryWriteStatus: an upload of which so much has come. */
  public static CasScript writeStatus(long committed, boolean complete) {
    return correct()
        .reply(
            QueryWriteStatusResponse.newBuilder()
                .setCommittedSize(committed)
                .setComplete(complete)
                .build());
  }

  // ---- time

  /** Nothing is done before that time has passed, on the real clock. */
  public CasScript after(Duration delay) {
    return with(t -> t.delay = atLeastZero("after", delay));
  }

  /** Nothing is done before that stage is complete: a test holds the call until it has seen. */
  public CasScript after(CompletionStage<?> gate) {
    return with(t -> t.gate = Objects.requireNonNull(gate));
  }

  /** That time passes between two messages of a read or write, on the real clock. */
  public CasScript pace(Duration between) {
    return with(t -> t.pace = atLeastZero("pace", between));
  }

  // ---- a read's bytes

  /** Bytes of a message; the last one may have less. By default 65,536. */
  public CasScript chunkSize(int bytes) {
    if (bytes < 1) {
      throw new IllegalArgumentException("chunkSize: " + bytes + " (expected: > 0)");
    }
    return with(t -> t.chunkSize = bytes);
  }

  /** That many empty messages before every message but the first, and after the last. */
  public CasScript keepAlives(int each) {
    if (each < 0) {
      throw new IllegalArgumentException("keepAlives: " + each + " (expected: >= 0)");
    }
    return with(t -> t.keepAlives = each);
  }

  /** The byte at that place of the blob is a wrong one, in batches too. */
  public CasScript wrongByteAt(long position) {
    return with(t -> t.wrongByteAt = position);
  }

  /** That many bytes follow the content, in batches too. */
  public CasScript tooLong(int bytes) {
    return with(t -> t.extra = bytes);
  }

  /** That many bytes are missing at the end of the content, in batches too; the status is OK. */
  public CasScript tooShort(int bytes) {
    return with(t -> t.extra = -bytes);
  }

  /** {@code read_offset} is taken for 0. */
  public CasScript ignoringOffset() {
    return with(t -> t.ignoreOffset = true);
  }

  /** {@code read_limit} is taken for 0: to the end. */
  public CasScript ignoringLimit() {
    return with(t -> t.ignoreLimit = true);
  }

  /** A {@code read_offset} past the end gets an empty stream in place of OUT_OF_RANGE. */
  public CasScript emptyPastEnd() {
    return with(t -> t.emptyPastEnd = true);
  }

  // ---- a write's answer

  /** A write is answered OK at its first message, as one is that the store has already. */
  public CasScript early() {
    return with(t -> t.early = true);
  }

  /** What a write's {@code committed_size} says; by default what the protocol asks for. */
  public CasScript committed(CommittedSize size) {
    return with(t -> t.committed = Objects.requireNonNull(size));
  }

  // ---- other answers

  /** That blob's status in a batch, which nothing is done with then. */
  public CasScript blobStatus(Digest digest, Status status) {
    return with(t -> t.blobStatus.put(digest, status));
  }

  /** Answers with that message, of the method's response type, at once. */
  public CasScript reply(MessageLite message) {
    return with(t -> t.reply = Objects.requireNonNull(message));
  }

  // ---- ends

  /** A GOAWAY that keeps every call is sent after so many messages; the call goes on. */
  public CasScript goAwayAfter(int messages) {
    return with(t -> t.goAwayAfter = atLeastZero("goAwayAfter", messages));
  }

  /**
   * The call gets no further than so many messages, and ends like that. A reset overtakes what flow
   * control still holds back.
   */
  public CasScript stopAfter(int messages, CasEnd end) {
    return with(
        t -> {
          t.stopAfter = atLeastZero("stopAfter", messages);
          t.end = Objects.requireNonNull(end);
        });
  }

  Terms terms() {
    return terms;
  }

  private CasScript with(Consumer<Terms> change) {
    Terms changed = terms.copy();
    change.accept(changed);
    return new CasScript(changed);
  }

  private static int atLeastZero(String setting, int value) {
    if (value < 0) {
      throw new IllegalArgumentException(setting + ": " + value + " (expected: >= 0)");
    }
    return value;
  }

  private static Duration atLeastZero(String setting, Duration value) {
    if (value.isNegative()) {
      throw new IllegalArgumentException(setting + ": " + value + " (expected: >= 0)");
    }
    return value;
  }

  /** What {@code committed_size} says of a write that went well. */
  public enum CommittedSize {
    /**
     * The bytes taken; of a compressed upload the compressed ones, -1 where it was there before.
     */
    CORRECT,
    /** The blob's size, compressed or not. */
    UNCOMPRESSED,
    /** The bytes taken, as they travelled. */
    TRAVELLED,
    /** -1. */
    MINUS_ONE,
    /** One byte less than was sent. */
    WRONG
  }

  /** Mutable only until its script is made. */
  static final class Terms {
    Duration delay = Duration.ZERO;
    @Nullable CompletionStage<?> gate;
    Duration pace = Duration.ZERO;
    int chunkSize = 64 << 10;
    int keepAlives;
    long wrongByteAt = -1;
    int extra;
    boolean ignoreOffset;
    boolean ignoreLimit;
    boolean emptyPastEnd;
    boolean early;
    CommittedSize committed = CommittedSize.CORRECT;
    Map<Digest, Status> blobStatus = new HashMap<>();
    @Nullable MessageLite reply;
    int goAwayAfter = Integer.MAX_VALUE;
    int stopAfter = Integer.MAX_VALUE;
    @Nullable CasEnd end;

    private Terms copy() {
      Terms copy = new Terms();
      copy.delay = delay;
      copy.gate = gate;
      copy.pace = pace;
      copy.chunkSize = chunkSize;
      copy.keepAlives = keepAlives;
      copy.wrongByteAt = wrongByteAt;
      copy.extra = extra;
      copy.ignoreOffset = ignoreOffset;
      copy.ignoreLimit = ignoreLimit;
      copy.emptyPastEnd = emptyPastEnd;
      copy.early = early;
      copy.committed = committed;
      copy.blobStatus = new HashMap<>(blobStatus);
      copy.reply = reply;
      copy.goAwayAfter = goAwayAfter;
      copy.stopAfter = stopAfter;
      copy.end = end;
      return copy;
    }
  }
}
