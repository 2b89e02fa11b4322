package dev.timebound.grpc;

import dev.timebound.health.HealthGroup;
import dev.timebound.health.MemberHealth;
import dev.timebound.health.MemberStatus;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;

/** Lets the pool's size follow the load, once an interval. (BT-2, BT-5) */
final class PoolResizer {
  private static final Logger LOG = LoggerFactory.getLogger(ChannelPool.class);

  /** Those that serve nobody go first, then those with the least to finish. */
  private static final Comparator<MemberHealth> FIRST_TO_GO =
      Comparator.comparing((MemberHealth m) -> m.status() == MemberStatus.HEALTHY)
          .thenComparingInt(MemberHealth::open);

  private final ChannelPoolSettings settings;
  private final PoolSizer sizer;
  private final PoolChannels channels;
  private final HealthGroup<PooledChannel> group;
  private final PoolCare care;
  private final IntSupplier inFlight;
  private final Disposable.Composite background;
  private final AtomicInteger peak = new AtomicInteger();

  PoolResizer(
      ChannelPoolSettings settings,
      PoolChannels channels,
      HealthGroup<PooledChannel> group,
      PoolCare care,
      IntSupplier inFlight,
      Disposable.Composite background) {
    this.settings = settings;
    this.channels = channels;
    this.group = group;
    this.care = care;
    this.inFlight = inFlight;
    this.background = background;
    this.sizer =
        new PoolSizer(
            settings.minChannels(),
            settings.maxChannels(),
            settings.minRpcsPerChannel(),
            settings.maxRpcsPerChannel(),
            settings.maxResizeStep());
  }

  void start() {
    if (settings.resizing()) {
      long interval = settings.resizeInterval().toNanos();
      background.add(
          settings
              .scheduler()
              .schedulePeriodically(this::resize, interval, interval, TimeUnit.NANOSECONDS));
    }
  }

  /** So many calls are in flight. */
  void reached(int now) {
    int seen = peak.get();
    while (now > seen && !peak.compareAndSet(seen, now)) {
      seen = peak.get();
    }
  }

  private void resize() {
    // The next interval starts from the calls still open, not from 0.
    int reached = peak.getAndSet(inFlight.getAsInt());
    List<MemberHealth> now = List.copyOf(group.members());
    int wanted = sizer.next(now.size(), reached);
    if (wanted == now.size()) {
      return;
    }
    LOG.info(
        "{}: {} channels for a peak of {} calls, resize to {}",
        settings.name(),
        now.size(),
        reached,
        wanted);
    for (int i = now.size(); i < wanted; i++) {
      PooledChannel member = channels.create();
      background.add(channels.warm(List.of(member)).doFinally(end -> join(member)).subscribe());
    }
    now.stream()
        .sorted(FIRST_TO_GO)
        .limit(Math.max(0, now.size() - wanted))
        .forEach(
            health -> {
              PooledChannel member = channels.get(health.name());
              if (member != null) {
                channels.drop(member);
              }
            });
  }

  private void join(PooledChannel member) {
    channels.join(member);
    care.plan();
  }
}
