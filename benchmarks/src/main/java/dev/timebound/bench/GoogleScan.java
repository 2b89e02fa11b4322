package dev.timebound.bench;

import com.google.api.gax.rpc.ResponseObserver;
import com.google.api.gax.rpc.StreamController;
import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.models.Query;
import com.google.cloud.bigtable.data.v2.models.Row;
import com.google.cloud.bigtable.data.v2.models.RowCell;
import com.google.cloud.bigtable.data.v2.models.TableId;
import dev.timebound.demo.bigtable.GoogleReadClient;
import dev.timebound.demo.bigtable.Target;
import java.io.IOException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Google's client as it comes: its observer, or its blocking iterator on a thread of its own. */
final class GoogleScan implements ScanClient {
  private final BigtableDataClient client;
  private final Query query;
  private final boolean blocking;

  private GoogleScan(Target target, boolean blocking) throws IOException {
    this.client = BigtableDataClient.create(GoogleReadClient.pooledSettings(target));
    this.query = Query.create(TableId.of(target.table()));
    this.blocking = blocking;
  }

  static GoogleScan observer(Target target) throws IOException {
    return new GoogleScan(target, false);
  }

  static GoogleScan iterator(Target target) throws IOException {
    return new GoogleScan(target, true);
  }

  @Override
  public void scanForEver(RowCount count, Failed failed) {
    if (blocking) {
      Thread reader = new Thread(() -> iterate(count, failed), "scan-iterator");
      reader.setDaemon(true);
      reader.start();
    } else {
      observe(count, failed);
    }
  }

  private void iterate(RowCount count, Failed failed) {
    try {
      while (true) {
        for (Row row : client.readRows(query)) {
          look(row, count);
        }
        count.scanEnded();
      }
    } catch (RuntimeException e) {
      failed.because(e);
    }
  }

  private void observe(RowCount count, Failed failed) {
    client.readRowsAsync(
        query,
        new ResponseObserver<Row>() {
          @Override
          public void onStart(StreamController controller) {
            // its own flow control
          }

          @Override
          public void onResponse(@Nullable Row row) {
            if (row != null) {
              look(row, count);
            }
          }

          @Override
          public void onError(Throwable error) {
            failed.because(error);
          }

          @Override
          public void onComplete() {
            count.scanEnded();
            observe(count, failed);
          }
        });
  }

  private static void look(Row row, RowCount count) {
    List<RowCell> cells = row.getCells();
    for (int i = 0; i < cells.size(); i++) {
      count.value(cells.get(i).getValue());
    }
    count.row();
  }

  @Override
  public void close() {
    client.close();
  }
}
