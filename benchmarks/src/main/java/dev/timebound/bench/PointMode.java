package dev.timebound.bench;

import com.google.api.core.ApiFuture;
import com.google.api.core.ApiFutureCallback;
import com.google.api.core.ApiFutures;
import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.models.TableId;
import com.google.protobuf.ByteString;
import dev.timebound.bigtable.BigtableClient;
import dev.timebound.bigtable.BigtableClientBuilder;
import dev.timebound.bigtable.Row;
import dev.timebound.demo.bigtable.GoogleReadClient;
import dev.timebound.demo.bigtable.Target;
import dev.timebound.demo.bigtable.TimeboundReadClient;
import java.io.IOException;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.BaseSubscriber;

/** The contestants of the point reads. */
enum PointMode {
  GOOGLE("Google, readRowAsync", PointMode::google),
  TIMEBOUND("Timebound", target -> timebound(TimeboundReadClient.builder(target), target)),
  TIMEBOUND_LOOP(
      "Timebound, delivery on the loop",
      target -> timebound(TimeboundReadClient.builder(target).deliverOn(Runnable::run), target));

  private static final Executor SAME_THREAD = Runnable::run;

  private final String title;
  private final Connect connect;

  PointMode(String title, Connect connect) {
    this.title = title;
    this.connect = connect;
  }

  String title() {
    return title;
  }

  PointClient connect(Target target) throws IOException {
    return connect.to(target);
  }

  private interface Connect {
    PointClient to(Target target) throws IOException;
  }

  /** One way to read a row: tells the bytes of its one cell, or the error. */
  interface PointClient {
    void read(String key, Answer answer);
  }

  /** Hears of one read, once. */
  interface Answer {
    void row(int bytes);

    void failed(Throwable error);
  }

  private static PointClient google(Target target) throws IOException {
    BigtableDataClient client = BigtableDataClient.create(GoogleReadClient.pooledSettings(target));
    TableId table = TableId.of(target.table());
    return (key, answer) -> {
      ApiFuture<com.google.cloud.bigtable.data.v2.models.Row> row =
          client.readRowAsync(table, ByteString.copyFromUtf8(key));
      ApiFutures.addCallback(
          row,
          new ApiFutureCallback<>() {
            @Override
            public void onFailure(Throwable error) {
              answer.failed(error);
            }

            @Override
            public void onSuccess(com.google.cloud.bigtable.data.v2.models.@Nullable Row found) {
              answer.row(found == null ? 0 : found.getCells().get(0).getValue().size());
            }
          },
          SAME_THREAD);
    };
  }

  private static PointClient timebound(BigtableClientBuilder builder, Target target) {
    BigtableClient client = builder.build();
    return (key, answer) ->
        client
            .readRow(target.table(), key)
            .subscribe(
                new BaseSubscriber<Row>() {
                  @Override
                  protected void hookOnNext(Row row) {
                    answer.row(row.cells().get(0).value().size());
                  }

                  @Override
                  protected void hookOnError(Throwable error) {
                    answer.failed(error);
                  }
                });
  }
}
