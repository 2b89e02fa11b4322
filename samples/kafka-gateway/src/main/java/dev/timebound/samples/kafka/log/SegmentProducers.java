package dev.timebound.samples.kafka.log;

import dev.timebound.fetch.TopicPartition;
import dev.timebound.fetch.segments.SegmentStore;
import dev.timebound.samples.kafka.log.ProducerState.Decision;
import dev.timebound.samples.kafka.log.ProducerState.Verdict;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * The idempotent producers of one partition in segment files, those that wrote last. Decided is
 * when a batch gets its offset, while batches before it may still be on their way to the disk: what
 * is decided by those counts once they are there.
 */
final class SegmentProducers {
  private static final int MOST = 1_000;

  /** What is known of a producer. */
  private static final class Known {
    /** By what is in the log. */
    @Nullable ProducerState written;

    /** With what is on its way. */
    @Nullable ProducerState expected;
  }

  /** How a batch that is not to be written ends its append. */
  private static final class NotWritten extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient Appended as;

    /** As long as it is on its way: what it is a duplicate of may yet fail. */
    private final boolean settled;

    NotWritten(Appended as, boolean settled) {
      super(null, null, false, false);
      this.as = as;
      this.settled = settled;
    }
  }

  private final SegmentStore store;
  private final TopicPartition partition;
  private final long firstId;
  private final Map<Long, Known> known =
      new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, Known> eldest) {
          boolean full = size() > MOST;
          evicted |= full;
          return full;
        }
      };

  /** Whether anybody who wrote here may be unknown. */
  private boolean evicted; // guarded by this

  /** Whether somebody may be who wrote here before it was opened. */
  private boolean foundInPart; // guarded by this

  /**
   * @param firstId of the producers that begin while it is open
   */
  SegmentProducers(SegmentStore store, TopicPartition partition, long firstId) {
    this.store = store;
    this.partition = partition;
    this.firstId = firstId;
  }

  /** Not all that is, or was, in the log is looked through. */
  synchronized void foundInPart() {
    foundInPart = true;
  }

  /** One that was in the log when it was opened. */
  synchronized void found(ProducedBatch batch, long base) {
    if (batch.isIdempotent()) {
      Known producer = of(batch);
      producer.written = ProducerState.after(producer.written, batch, base);
      producer.expected = producer.written;
    }
  }

  /** What has been begun ends, whether somebody waits for it or not. */
  Mono<Appended> append(ProducedBatch batch) {
    return Mono.defer(
        () -> {
          Sinks.One<Appended> ended = Sinks.one();
          begin(batch, ended);
          return ended.asMono();
        });
  }

  private void begin(ProducedBatch batch, Sinks.One<Appended> ended) {
    store
        .append(partition, base -> decided(batch, base), batch.recordCount(), batch.maxTimestamp())
        .subscribe(
            base -> {
              written(batch, base);
              ended.tryEmitValue(Appended.written(base));
            },
            error -> {
              if (error instanceof NotWritten not) {
                if (not.settled) {
                  ended.tryEmitValue(not.as);
                } else {
                  begin(batch, ended);
                }
              } else {
                failed(batch);
                ended.tryEmitError(error);
              }
            });
  }

  private synchronized ByteBuffer decided(ProducedBatch batch, long base) {
    boolean forgotten = evicted || (foundInPart && batch.producerId() < firstId);
    Known producer = of(batch);
    Decision decision = ProducerState.decide(producer.expected, batch, forgotten);
    if (decision.verdict() != Verdict.NEXT) {
      Decision settled = ProducerState.decide(producer.written, batch, forgotten);
      throw new NotWritten(Appended.of(decision), settled.equals(decision));
    }
    producer.expected = ProducerState.after(producer.expected, batch, base);
    return batch.at(base);
  }

  private synchronized void written(ProducedBatch batch, long base) {
    Known producer = of(batch);
    producer.written = ProducerState.after(producer.written, batch, base);
  }

  private synchronized void failed(ProducedBatch batch) {
    Known producer = of(batch);
    producer.expected = producer.written;
  }

  private Known of(ProducedBatch batch) {
    return known.computeIfAbsent(batch.producerId(), id -> new Known());
  }
}
