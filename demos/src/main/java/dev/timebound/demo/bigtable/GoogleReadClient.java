package dev.timebound.demo.bigtable;

import com.google.api.gax.core.NoCredentialsProvider;
import com.google.api.gax.rpc.ResponseObserver;
import com.google.api.gax.rpc.StreamController;
import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.BigtableDataSettings;
import com.google.cloud.bigtable.data.v2.models.Query;
import com.google.cloud.bigtable.data.v2.models.Row;
import com.google.cloud.bigtable.data.v2.models.RowCell;
import com.google.cloud.bigtable.data.v2.models.TableId;
import com.google.cloud.bigtable.data.v2.stub.EnhancedBigtableStubSettings;
import com.google.cloud.bigtable.data.v2.stub.metrics.NoopMetricsProvider;
import com.google.protobuf.ByteString;
import java.io.IOException;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;
import reactor.core.publisher.Mono;

/** Google's own Java client, with its defaults but for the plaintext server. */
public final class GoogleReadClient implements ReadClient {
  private final BigtableDataClient client;
  private final TableId table;
  private final String channels;

  private GoogleReadClient(BigtableDataSettings settings, Target target, String channels)
      throws IOException {
    this.client = BigtableDataClient.create(settings);
    this.table = TableId.of(target.table());
    this.channels = channels;
  }

  /** As in production: its default pool, of 10 channels at the start. */
  public static GoogleReadClient pooled(Target target) throws IOException {
    return new GoogleReadClient(pooledSettings(target), target, "pool of 10");
  }

  /** As its emulator builder makes it: one channel for everything. */
  public static GoogleReadClient ofEmulatorBuilder(Target target) throws IOException {
    BigtableDataSettings.Builder settings =
        BigtableDataSettings.newBuilderForEmulator("localhost", target.port())
            .setProjectId(target.project())
            .setInstanceId(target.instance());
    return new GoogleReadClient(settings.build(), target, "pool of 1");
  }

  /** Google's client as in production, but for a plaintext server, no credentials, no metrics. */
  public static BigtableDataSettings pooledSettings(Target target) {
    BigtableDataSettings.Builder settings =
        BigtableDataSettings.newBuilder()
            .setProjectId(target.project())
            .setInstanceId(target.instance())
            .setCredentialsProvider(NoCredentialsProvider.create())
            .setMetricsProvider(NoopMetricsProvider.INSTANCE)
            .disableInternalMetrics();
    settings
        .stubSettings()
        .setEndpoint("localhost:" + target.port())
        .setTransportChannelProvider(
            EnhancedBigtableStubSettings.defaultGrpcTransportProviderBuilder()
                .setChannelConfigurator(channel -> channel.usePlaintext())
                .build());
    return settings.build();
  }

  @Override
  public Publisher<DemoRow> point(String key) {
    return Mono.<Row>create(
            sink -> {
              var future = client.readRowAsync(table, ByteString.copyFromUtf8(key));
              sink.onCancel(() -> future.cancel(true));
              future.addListener(
                  () -> {
                    try {
                      sink.success(future.get());
                    } catch (java.util.concurrent.ExecutionException e) {
                      sink.error(e.getCause() == null ? e : e.getCause());
                    } catch (InterruptedException e) {
                      Thread.currentThread().interrupt();
                      sink.error(e);
                    }
                  },
                  Runnable::run);
            })
        .map(GoogleReadClient::row);
  }

  @Override
  public Publisher<DemoRow> scan(String from, String to, long limit) {
    Query query = Query.create(table).range(from, to);
    Query bounded = limit == 0 ? query : query.limit(limit);
    return subscriber -> client.readRowsCallable().call(bounded, new Observer(subscriber));
  }

  @Override
  public String channels() {
    return channels;
  }

  @Override
  public void close() {
    client.close();
  }

  private static DemoRow row(Row row) {
    ByteString value = ByteString.EMPTY;
    for (RowCell cell : row.getCells()) {
      value = value.concat(cell.getValue());
    }
    return new DemoRow(row.getKey().toStringUtf8(), value);
  }

  /** Google's observer as a subscriber of Reactive Streams, demand for demand. */
  private static final class Observer implements ResponseObserver<Row> {
    private final Subscriber<? super DemoRow> subscriber;

    Observer(Subscriber<? super DemoRow> subscriber) {
      this.subscriber = subscriber;
    }

    @Override
    public void onStart(StreamController controller) {
      controller.disableAutoInboundFlowControl();
      subscriber.onSubscribe(
          new Subscription() {
            @Override
            public void request(long n) {
              controller.request((int) Math.min(n, Integer.MAX_VALUE));
            }

            @Override
            public void cancel() {
              controller.cancel();
            }
          });
    }

    @Override
    public void onResponse(@Nullable Row row) {
      if (row != null) {
        subscriber.onNext(row(row));
      }
    }

    @Override
    public void onError(Throwable error) {
      subscriber.onError(error);
    }

    @Override
    public void onComplete() {
      subscriber.onComplete();
    }

    private static DemoRow row(Row row) {
      return GoogleReadClient.row(row);
    }
  }
}
