package dev.timebound.fetch.kit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.Isolation;
import dev.timebound.fetch.Offsets;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TimestampOffset;
import dev.timebound.fetch.TopicPartition;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Operators;

/** How a store goes about what it is asked: the part of the contract that no answer shows. */
abstract class StoreConduct extends StoreContractParts {
  @Nested
  @DisplayName("conduct")
  class Conduct {
    @Test
    @DisplayName("FE-12 existing() answers a set, an empty one too")
    void noneExists() {
      assertThat(
              tested
                  .store()
                  .existing(Set.of(new TopicPartition("no-such", 0)))
                  .block(tested.longest()))
          .as("existing() of partitions of which there is none (expected: an empty set)")
          .isNotNull()
          .isEmpty();
    }

    @Test
    @DisplayName("FE-12 authoritativeOffsets() are the authority's")
    void authority() {
      TopicPartition partition = four();
      Offsets authority = got(tested.store().authoritativeOffsets(partition));
      assertThat(authority.authoritative())
          .as("authoritativeOffsets() of a store whose offsets() may be a replica's")
          .isTrue();
      assertThat(authority.highWatermark()).isEqualTo(12);
    }

    @Test
    @DisplayName("offsets and times are asked for at subscription, each time anew")
    void anew() {
      TopicPartition partition = four();
      Mono<Offsets> offsets = tested.store().offsets(partition);
      Mono<TimestampOffset> later =
          tested.store().offsetFor(partition, 2_000, Isolation.READ_UNCOMMITTED);
      for (int i = 0; i < 2; i++) {
        tested.append(partition, bytes(4, 100), 3, 2_000);
        assertThat(got(offsets).highWatermark())
            .as("offsets(), assembled before the append and subscribed after it")
            .isEqualTo(15 + 3L * i);
        assertThat(got(later).offset())
            .as("offsetFor(), assembled before the append and subscribed after it")
            .isBetween(12L, 14L);
      }
    }

    @Test
    @DisplayName("FE-22 a read that is cancelled gives nothing any more")
    void cancelled() throws InterruptedException {
      AtomicInteger came = taken(Long.MAX_VALUE, true);
      assertThat(came).as("batches of a read that was cancelled at the first one").hasValue(1);
    }

    @Test
    @DisplayName("demand is kept: one that asks for one batch gets one")
    void demand() throws InterruptedException {
      AtomicInteger came = taken(0, false);
      assertThat(came).as("batches of a read that was asked for one").hasValue(1);
    }

    /** What comes of a read that is asked for one batch, and then, behind that one, for more. */
    private AtomicInteger taken(long more, boolean cancel) throws InterruptedException {
      Taker taker = new Taker(more, cancel);
      tested
          .store()
          .read(four(), from(0, 1000, false), Deadline.after(tested.longest()))
          .subscribe(taker);
      assertThat(taker.first.await(tested.longest().toMillis(), TimeUnit.MILLISECONDS)).isTrue();
      // only a store that is at fault has something to wait for
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(200));
      taker.subscription.cancel();
      return taker.came;
    }

    @Test
    @DisplayName("FE-8 whoever stops to listen hears no more")
    void unheard() {
      TopicPartition partition = tested.newPartition();
      AtomicInteger gone = new AtomicInteger();
      AtomicInteger stays = new AtomicInteger();
      Optional<Disposable> leaving = tested.store().onAppend(partition, gone::incrementAndGet);
      assumeTrue(leaving.isPresent());
      Disposable staying = tested.store().onAppend(partition, stays::incrementAndGet).orElseThrow();
      leaving.get().dispose();
      int before = gone.get();
      for (int i = 0; i < 4; i++) {
        int heard = stays.get();
        tested.append(partition, bytes(i, 10), 1, 1);
        long end = System.nanoTime() + tested.longest().toNanos();
        while (stays.get() == heard && System.nanoTime() - end < 0) {
          LockSupport.parkNanos(1_000_000);
        }
        assertThat(stays.get()).as("wake-ups of one that listens").isGreaterThan(heard);
      }
      staying.dispose();
      // one may have been under way
      assertThat(gone.get()).as("wake-ups after dispose()").isLessThanOrEqualTo(before + 1);
    }
  }

  /** Reactor's own subscribers would stand in for the store's cancel and demand. */
  private static final class Taker implements CoreSubscriber<RecordBatch> {
    private final AtomicInteger came = new AtomicInteger();
    private final CountDownLatch first = new CountDownLatch(1);
    private final long more;
    private final boolean cancel;
    private volatile Subscription subscription = Operators.emptySubscription();

    Taker(long more, boolean cancel) {
      this.more = more;
      this.cancel = cancel;
    }

    @Override
    public void onSubscribe(Subscription given) {
      subscription = given;
      given.request(1);
    }

    @Override
    public void onNext(RecordBatch batch) {
      if (came.incrementAndGet() == 1) {
        if (cancel) {
          subscription.cancel();
        }
        if (more > 0) {
          subscription.request(more);
        }
        first.countDown();
      }
    }

    @Override
    public void onError(Throwable error) {
      first.countDown();
    }

    @Override
    public void onComplete() {
      first.countDown();
    }
  }
}
