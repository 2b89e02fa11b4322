package dev.timebound.fetch.kit;

import dev.timebound.deadline.Deadline;
import dev.timebound.fetch.ForwardingStore;
import dev.timebound.fetch.PartitionStore;
import dev.timebound.fetch.ReadSpec;
import dev.timebound.fetch.RecordBatch;
import dev.timebound.fetch.TopicPartition;
import java.util.concurrent.atomic.AtomicInteger;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The store under test, save that one partition's reads give their batches and never end. */
final class DeafStore extends ForwardingStore {
  private final TopicPartition deaf;
  private final AtomicInteger reads = new AtomicInteger();

  DeafStore(PartitionStore store, TopicPartition deaf) {
    super(store);
    this.deaf = deaf;
  }

  /** How many reads never ended. */
  int deafReads() {
    return reads.get();
  }

  @Override
  public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
    Flux<RecordBatch> reading = super.read(partition, spec, budget);
    if (!partition.equals(deaf)) {
      return reading;
    }
    return new Flux<>() {
      @Override
      public void subscribe(reactor.core.CoreSubscriber<? super RecordBatch> actual) {
        reads.incrementAndGet();
        reading.concatWith(Mono.never()).subscribe(new Uncancelled(actual));
      }
    };
  }

  private record Uncancelled(Subscriber<? super RecordBatch> actual)
      implements Subscriber<RecordBatch> {
    @Override
    public void onSubscribe(Subscription upstream) {
      actual.onSubscribe(
          new Subscription() {
            @Override
            public void request(long n) {
              upstream.request(n);
            }

            @Override
            public void cancel() {
              // deaf
            }
          });
    }

    @Override
    public void onNext(RecordBatch batch) {
      actual.onNext(batch);
    }

    @Override
    public void onError(Throwable error) {
      actual.onError(error);
    }

    @Override
    public void onComplete() {
      actual.onComplete();
    }
  }
}
