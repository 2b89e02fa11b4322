package dev.timebound.demo.fetch;

import dev.timebound.fetch.SharePolicy;
import org.jspecify.annotations.Nullable;

/** What the demo puts side by side, in the order in which they run. */
enum Variant {
  NOTHING_SHARED("nothing shared", true, null),
  HALVING("halving", true, SharePolicy.HALVING),
  UNSTALLED("no stall (parallel)", false, SharePolicy.PARALLEL),
  PARALLEL("parallel", true, SharePolicy.PARALLEL),
  /** Once more, for what else the machine does may have changed. */
  UNSTALLED_AGAIN("no stall, again", false, SharePolicy.PARALLEL);

  private final String title;
  private final boolean stalls;
  private final @Nullable SharePolicy policy;

  Variant(String title, boolean stalls, @Nullable SharePolicy policy) {
    this.title = title;
    this.stalls = stalls;
    this.policy = policy;
  }

  String title() {
    return title;
  }

  /** Whether partition 0 stalls. */
  boolean stalls() {
    return stalls;
  }

  /** How a request's partitions share its time; null: they do not. */
  @Nullable SharePolicy policy() {
    return policy;
  }
}
