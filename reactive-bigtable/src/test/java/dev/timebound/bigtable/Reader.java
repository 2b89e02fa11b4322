package dev.timebound.bigtable;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Scheduler;

/** Reads as many rows as a test asks for, and keeps what came. */
final class Reader extends BaseSubscriber<Row> {
  private final long first;
  private final Consumer<Row> onRow;
  private final List<String> keys = Collections.synchronizedList(new ArrayList<>());
  private volatile boolean completed;
  private volatile @Nullable Throwable error;

  private Reader(long first, Consumer<Row> onRow) {
    this.first = first;
    this.onRow = onRow;
  }

  /** Subscribes, and asks for that many rows; for none where it is 0. */
  static Reader of(Flux<Row> rows, long demand) {
    return of(rows, demand, row -> {});
  }

  static Reader of(Flux<Row> rows, long demand, Consumer<Row> onRow) {
    Reader reader = new Reader(demand, onRow);
    rows.subscribe(reader);
    return reader;
  }

  /**
   * All rows, to a consumer that may block. The test does not ask for them itself: a row that comes
   * while it is asked for may be handed on by the thread that asks.
   */
  static Reader blocking(Flux<Row> rows, Scheduler asks, Consumer<Row> onRow) {
    return of(rows.subscribeOn(asks), Long.MAX_VALUE, onRow);
  }

  @Override
  protected void hookOnSubscribe(Subscription subscription) {
    if (first > 0) {
      subscription.request(first);
    }
  }

  @Override
  protected void hookOnNext(Row row) {
    keys.add(row.key().toStringUtf8());
    onRow.accept(row);
  }

  @Override
  protected void hookOnComplete() {
    completed = true;
  }

  @Override
  protected void hookOnError(Throwable e) {
    error = e;
  }

  List<String> keys() {
    return List.copyOf(keys);
  }

  boolean isOver() {
    return completed || error != null;
  }

  /** Waits until that many rows have come. */
  Reader awaitRows(int n) {
    Eventually.eventually(() -> assertThat(keys).hasSizeGreaterThanOrEqualTo(n));
    return this;
  }

  /** Waits for the end, which must be a good one, and gives the keys. */
  List<String> awaitComplete() {
    Eventually.eventually(() -> assertThat(isOver()).as("over, after %s", keys()).isTrue());
    assertThat(error).isNull();
    return keys();
  }

  Throwable awaitError() {
    Eventually.eventually(() -> assertThat(isOver()).as("over, after %s", keys()).isTrue());
    Throwable e = error;
    if (e == null) {
      throw new AssertionError("completed, after " + keys);
    }
    return e;
  }
}
