package dev.timebound.fetch;

import dev.timebound.deadline.Deadline;
import dev.timebound.deadline.DeadlineExceededException;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.UnaryOperator;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** What a store can do wrong, and the tests of the contract that tell. */
enum Faults {
  EXISTING_MAKES_THEM_UP("Partitions.existing", "Conduct.noneExists") {
    @Override
    AlmostRight store() {
      return new AlmostRight() {
        @Override
        public Mono<Set<TopicPartition>> existing(Set<TopicPartition> asked) {
          return Mono.just(asked);
        }
      };
    }
  },
  EXISTING_IS_SILENT_OF_NONE("Conduct.noneExists") {
    @Override
    AlmostRight store() {
      return new AlmostRight() {
        @Override
        public Mono<Set<TopicPartition>> existing(Set<TopicPartition> asked) {
          return super.existing(asked).filter(found -> !found.isEmpty());
        }
      };
    }
  },
  ENDS_TOO_LATE("Partitions.offsetsOf", "ThroughAFetcher.outOfRange") {
    @Override
    AlmostRight store() {
      return offsets(o -> Offsets.of(o.logStart(), o.highWatermark() + 9, o.lastStable() + 9));
    }
  },
  STABLE_PAST_AN_OPEN_TRANSACTION("Transactions.open") {
    @Override
    AlmostRight store() {
      return offsets(o -> Offsets.of(o.logStart(), o.highWatermark(), o.highWatermark()));
    }
  },
  STARTS_WHERE_IT_STARTED("Partitions.retention") {
    @Override
    AlmostRight store() {
      return offsets(o -> Offsets.of(0, o.highWatermark(), o.lastStable()));
    }
  },
  A_REPLICA_FOR_AN_AUTHORITY("Conduct.authority") {
    @Override
    AlmostRight store() {
      return offsets(Offsets::ofReplica);
    }
  },
  OFFSETS_OF_LONG_AGO("Conduct.anew") {
    @Override
    AlmostRight store() {
      return new AlmostRight() {
        @Override
        public Mono<Offsets> offsets(TopicPartition partition) {
          return super.offsets(partition).cache();
        }
      };
    }
  },
  TIMES_OF_LONG_AGO("Conduct.anew") {
    @Override
    AlmostRight store() {
      return new AlmostRight() {
        @Override
        public Mono<TimestampOffset> offsetFor(
            TopicPartition partition, long timestamp, Isolation isolation) {
          TimestampOffset found = memory.offsetFor(partition, timestamp, isolation).block();
          return Mono.justOrEmpty(found);
        }
      };
    }
  },
  BACKWARDS("Reads.inOrder", "Partitions.retention") {
    @Override
    AlmostRight store() {
      return reads(
          read ->
              read.collectList()
                  .doOnNext(Collections::reverse)
                  .flatMapIterable(batches -> batches));
    }
  },
  BYTES_THAT_WERE_READ_ALREADY("Reads.inOrder") {
    @Override
    AlmostRight store() {
      return reads(
          read -> read.map(batch -> copy(batch, 1, batch.recordCount(), batch.maxTimestamp())));
    }
  },
  RECORDS_MISCOUNTED("Reads.inOrder") {
    @Override
    AlmostRight store() {
      return reads(read -> read.map(batch -> copy(batch, 0, 1, batch.maxTimestamp())));
    }
  },
  TIMES_LOST("Reads.inOrder") {
    @Override
    AlmostRight store() {
      return reads(read -> read.map(batch -> copy(batch, 0, batch.recordCount(), -1)));
    }
  },
  BEGINS_BEHIND_THE_OFFSET("Reads.midBatch", "Reads.firstOverLimit") {
    @Override
    AlmostRight store() {
      return asked(
          spec ->
              new ReadSpec(
                  (spec.offset() + 2) / 3 * 3,
                  spec.maxBytes(),
                  spec.firstOfAnySize(),
                  spec.isolation()));
    }
  },
  READS_ON_PAST_THE_END("Reads.empty") {
    @Override
    AlmostRight store() {
      return asked(
          spec ->
              new ReadSpec(
                  Math.min(spec.offset(), 11),
                  spec.maxBytes(),
                  spec.firstOfAnySize(),
                  spec.isolation()));
    }
  },
  MORE_THAN_FITS("Reads.fit") {
    @Override
    AlmostRight store() {
      return asked(spec -> limited(spec, spec.maxBytes() + 1, spec.firstOfAnySize()));
    }
  },
  ANY_FIRST_ONE("Reads.firstOverLimit") {
    @Override
    AlmostRight store() {
      return asked(spec -> limited(spec, spec.maxBytes(), true));
    }
  },
  NO_FIRST_ONE("Reads.firstOverLimit") {
    @Override
    AlmostRight store() {
      return asked(spec -> limited(spec, spec.maxBytes(), false));
    }
  },
  A_BUDGET_THAT_HAS_PASSED_IS_AN_ERROR("Reads.zeroBudget") {
    @Override
    AlmostRight store() {
      return new AlmostRight() {
        @Override
        public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
          return budget.isExpired()
              ? Flux.error(new DeadlineExceededException("read", budget))
              : super.read(partition, spec, budget);
        }
      };
    }
  },
  A_BUDGET_THAT_PASSES_IS_AN_ERROR("Reads.budgetBetweenBatches") {
    @Override
    AlmostRight store() {
      return new AlmostRight() {
        @Override
        public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
          return super.read(partition, spec, budget)
              .map(
                  batch -> {
                    if (budget.isExpired() && batch.baseOffset() > 0) {
                      throw new IllegalStateException("too late");
                    }
                    return batch;
                  });
        }
      };
    }
  },
  READ_ONCE_FOR_ALL("Reads.anew") {
    @Override
    AlmostRight store() {
      return reads(Flux::cache);
    }
  },
  READ_BEFORE_ANYBODY_SUBSCRIBES("Reads.anew") {
    @Override
    AlmostRight store() {
      return new AlmostRight() {
        @Override
        public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
          List<RecordBatch> eager =
              memory.read(partition, spec, budget).collectList().blockOptional().orElseThrow();
          return Flux.fromIterable(eager);
        }
      };
    }
  },
  HELD_AFTER_A_CANCEL("Reads.cancel") {
    @Override
    AlmostRight store() {
      return new AlmostRight() {
        @Override
        public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
          return super.read(partition, spec, budget)
              .doOnSubscribe(s -> held.incrementAndGet())
              .doOnTerminate(held::decrementAndGet);
        }
      };
    }
  },
  A_CANCEL_SWALLOWED("Conduct.cancelled") {
    @Override
    AlmostRight store() {
      return reads(read -> signals(read, false));
    }
  },
  MORE_THAN_WAS_ASKED_FOR("Conduct.demand") {
    @Override
    AlmostRight store() {
      return reads(read -> signals(read, true));
    }
  },
  OPEN_TRANSACTIONS_SHOWN("Transactions.open") {
    @Override
    AlmostRight store() {
      return asked(
          spec ->
              new ReadSpec(
                  spec.offset(),
                  spec.maxBytes(),
                  spec.firstOfAnySize(),
                  Isolation.READ_UNCOMMITTED));
    }
  },
  ABORTED_ONES_NOT_TOLD("Transactions.aborted") {
    @Override
    AlmostRight store() {
      return reads(read -> read.map(batch -> batch.withAborted(List.of())));
    }
  },
  ABORTED_ONES_TOLD_TO_ALL("Transactions.aborted") {
    @Override
    AlmostRight store() {
      return reads(
          read -> read.map(batch -> batch.withAborted(List.of(new AbortedTransaction(7, 0)))));
    }
  },
  A_TIME_TOO_LATE("ByTime.byTime") {
    @Override
    AlmostRight store() {
      return new AlmostRight() {
        @Override
        public Mono<TimestampOffset> offsetFor(
            TopicPartition partition, long timestamp, Isolation isolation) {
          return super.offsetFor(partition, timestamp + 1, isolation);
        }
      };
    }
  },
  A_TIME_NOT_FOUND_IS_SILENCE("ByTime.byTime") {
    @Override
    AlmostRight store() {
      return new AlmostRight() {
        @Override
        public Mono<TimestampOffset> offsetFor(
            TopicPartition partition, long timestamp, Isolation isolation) {
          return super.offsetFor(partition, timestamp, isolation)
              .filter(found -> !found.equals(TimestampOffset.NONE));
        }
      };
    }
  },
  LISTENERS_FORGOTTEN("ThroughAFetcher.wakes", "ThroughAFetcher.listens") {
    @Override
    AlmostRight store() {
      return new AlmostRight() {
        @Override
        public Optional<Disposable> onAppend(TopicPartition partition, Runnable wake) {
          return Optional.of(Disposables.single());
        }
      };
    }
  },
  LISTENERS_KEPT("Conduct.unheard") {
    @Override
    AlmostRight store() {
      return new AlmostRight() {
        @Override
        public Optional<Disposable> onAppend(TopicPartition partition, Runnable wake) {
          super.onAppend(partition, wake);
          return Optional.of(Disposables.single());
        }
      };
    }
  },
  ONE_READ_AT_A_TIME("ThroughAFetcher.deaf") {
    @Override
    AlmostRight store() {
      AtomicBoolean busy = new AtomicBoolean();
      return reads(
          read ->
              Flux.defer(
                  () ->
                      busy.compareAndSet(false, true)
                          ? read.concatWith(Mono.never()).doOnCancel(() -> busy.set(false))
                          : Flux.never()));
    }
  },
  A_STALL_STALLS_ALL("ThroughAFetcher.stall") {
    @Override
    AlmostRight store() {
      return new AlmostRight() {
        @Override
        public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
          return stalled.isEmpty() ? super.read(partition, spec, budget) : Flux.never();
        }
      };
    }
  },
  A_STALL_STAYS("ThroughAFetcher.stall") {
    @Override
    AlmostRight store() {
      Set<TopicPartition> dead = ConcurrentHashMap.newKeySet();
      return new AlmostRight() {
        @Override
        public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
          if (stalled.contains(partition)) {
            dead.add(partition);
          }
          return dead.contains(partition) ? Flux.never() : super.read(partition, spec, budget);
        }
      };
    }
  };

  /** Its tests, by the names of their class and method. */
  final Set<String> tests;

  Faults(String... tests) {
    this.tests = Set.of(tests);
  }

  abstract AlmostRight store();

  private static AlmostRight offsets(UnaryOperator<Offsets> changed) {
    return new AlmostRight() {
      @Override
      public Mono<Offsets> offsets(TopicPartition partition) {
        return super.offsets(partition).map(changed);
      }

      @Override
      public Mono<Offsets> authoritativeOffsets(TopicPartition partition) {
        return offsets(partition);
      }
    };
  }

  private static AlmostRight reads(UnaryOperator<Flux<RecordBatch>> changed) {
    return new AlmostRight() {
      @Override
      public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
        return changed.apply(super.read(partition, spec, budget));
      }
    };
  }

  private static AlmostRight asked(UnaryOperator<ReadSpec> changed) {
    return new AlmostRight() {
      @Override
      public Flux<RecordBatch> read(TopicPartition partition, ReadSpec spec, Deadline budget) {
        return super.read(partition, changed.apply(spec), budget);
      }
    };
  }

  private static ReadSpec limited(ReadSpec spec, int maxBytes, boolean firstOfAnySize) {
    return new ReadSpec(spec.offset(), maxBytes, firstOfAnySize, spec.isolation());
  }

  private static RecordBatch copy(RecordBatch of, int from, int records, long maxTimestamp) {
    return new RecordBatch(
        of.bytes().position(from), of.baseOffset(), of.lastOffset(), records, maxTimestamp);
  }

  /** Deaf to a cancel, or to how much was asked for. */
  private static Flux<RecordBatch> signals(Flux<RecordBatch> read, boolean all) {
    return new Flux<>() {
      @Override
      public void subscribe(CoreSubscriber<? super RecordBatch> actual) {
        read.subscribe(new Deaf(actual, all));
      }
    };
  }

  private record Deaf(Subscriber<? super RecordBatch> actual, boolean all)
      implements Subscriber<RecordBatch> {
    @Override
    public void onSubscribe(Subscription upstream) {
      actual.onSubscribe(
          new Subscription() {
            @Override
            public void request(long n) {
              upstream.request(all ? Long.MAX_VALUE : n);
            }

            @Override
            public void cancel() {
              if (all) {
                upstream.cancel();
              }
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
