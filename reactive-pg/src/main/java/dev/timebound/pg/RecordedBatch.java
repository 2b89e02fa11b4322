package dev.timebound.pg;

import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.reactivestreams.Publisher;

/** A batch before its connection is known. */
final class RecordedBatch implements Batch {
  private final Function<Execution, Publisher<? extends Result>> executor;
  private final List<String> statements = new ArrayList<>();

  RecordedBatch(Function<Execution, Publisher<? extends Result>> executor) {
    this.executor = executor;
  }

  @Override
  public Batch add(String sql) {
    statements.add(Settings.required("sql", sql));
    return this;
  }

  @Override
  public Publisher<? extends Result> execute() {
    List<String> all = List.copyOf(statements);
    return executor.apply(
        new Execution() {
          @Override
          public Publisher<? extends Result> on(Connection connection) {
            Batch batch = connection.createBatch();
            all.forEach(batch::add);
            return batch.execute();
          }

          @Override
          public boolean isSingle() {
            return all.size() == 1;
          }

          @Override
          public boolean isStreamed() {
            return false;
          }
        });
  }
}
