package dev.timebound.demo.bigtable;

import com.google.protobuf.ByteString;
import java.util.function.UnaryOperator;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

/** The table in memory, behind a change that a test makes to what is read. */
final class MemoryClient implements ReadClient {
  private final DemoTable table;
  volatile UnaryOperator<Flux<DemoRow>> change = rows -> rows;
  volatile int quarantined;
  volatile int restored;

  MemoryClient(DemoTable table) {
    this.table = table;
  }

  @Override
  public Publisher<DemoRow> point(String key) {
    return change.apply(Flux.defer(() -> Flux.just(row(table.index(key)))));
  }

  @Override
  public Publisher<DemoRow> scan(String from, String to, long limit) {
    int first = table.index(from);
    int end = table.index(to) < 0 ? table.rows() : table.index(to);
    Flux<DemoRow> rows = Flux.range(first, end - first).map(this::row);
    return change.apply(limit == 0 ? rows : rows.take(limit));
  }

  private DemoRow row(int index) {
    ByteString value = table.cells(index).stream().reduce(ByteString.EMPTY, ByteString::concat);
    return new DemoRow(table.key(index), value);
  }

  @Override
  public String channels() {
    return "";
  }

  @Override
  public int quarantined() {
    return quarantined;
  }

  @Override
  public int restored() {
    return restored;
  }

  @Override
  public void close() {}
}
