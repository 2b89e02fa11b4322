package dev.timebound.bench;

import dev.timebound.bigtable.BigtableClient;
import dev.timebound.bigtable.Cell;
import dev.timebound.bigtable.Query;
import dev.timebound.bigtable.Row;
import dev.timebound.demo.bigtable.Target;
import dev.timebound.demo.bigtable.TimeboundReadClient;
import java.util.List;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;

/** Timebound's client as it comes, or with delivery on the transport's own loop. */
final class TimeboundScan implements ScanClient {
  private final BigtableClient client;
  private final Flux<Row> rows;

  private TimeboundScan(BigtableClient client, Target target) {
    this.client = client;
    this.rows = client.readRows(Query.builder(target.table()).build());
  }

  static TimeboundScan byDefault(Target target) {
    return new TimeboundScan(TimeboundReadClient.builder(target).build(), target);
  }

  static TimeboundScan onTheLoop(Target target) {
    return new TimeboundScan(
        TimeboundReadClient.builder(target).deliverOn(Runnable::run).build(), target);
  }

  @Override
  public void scanForEver(RowCount count, Failed failed) {
    rows.subscribe(
        new CoreSubscriber<Row>() {
          @Override
          public void onSubscribe(Subscription subscription) {
            subscription.request(Long.MAX_VALUE);
          }

          @Override
          public void onNext(Row row) {
            List<Cell> cells = row.cells();
            for (int i = 0; i < cells.size(); i++) {
              count.value(cells.get(i).value());
            }
            count.row();
          }

          @Override
          public void onError(Throwable error) {
            failed.because(error);
          }

          @Override
          public void onComplete() {
            count.scanEnded();
            scanForEver(count, failed);
          }
        });
  }

  @Override
  public void close() {
    client.close();
  }
}
