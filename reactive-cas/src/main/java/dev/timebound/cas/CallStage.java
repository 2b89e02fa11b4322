package dev.timebound.cas;

import io.grpc.CallOptions;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * How far one attempt has come, for whoever must say whose fault the end of its time is: what waits
 * on this side says nothing of the shard (CAS-20a).
 *
 * <p>Whoever holds the attempt at the time says what it waits for; what was so when it was given up
 * stands.
 */
final class CallStage {
  /** Where it travels with the call. */
  static final CallOptions.Key<CallStage> KEY = CallOptions.Key.create("timebound-cas-stage");

  /** What the end of a call waits for where subscribers that block hold all threads. */
  static final String THREAD = "a thread of deliverOn, all of which are held by subscribers";

  /** What every shard's call waits for where the source of tokens gives none. */
  static final String TOKEN = "a token of tokenSource";

  private static final Supplier<@Nullable String> OUT_OF_OUR_HANDS = () -> null;

  private volatile Supplier<@Nullable String> now = OUT_OF_OUR_HANDS;

  /**
   * @param waitsFor in words, what of this side's it waits for; null where that is nothing
   */
  void at(Supplier<@Nullable String> waitsFor) {
    now = waitsFor;
  }

  /** It waits for nothing of this side's any more. */
  void goesOn() {
    now = OUT_OF_OUR_HANDS;
  }

  /** It is given up as it stands. */
  void givenUp() {
    String last = here();
    now = () -> last;
  }

  /** What of this side's it waits for; null where it is the shard's turn. */
  @Nullable String here() {
    return now.get();
  }
}
