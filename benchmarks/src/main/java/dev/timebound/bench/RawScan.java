package dev.timebound.bench;

import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.ReadRowsResponse;
import dev.timebound.demo.bigtable.Target;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ForkJoinPool;

/**
 * The floor: a plain ClientCall that parses the generated messages and looks at the chunks. No rows
 * are made, nothing is retried, watched or bounded. A channel for each scan; the executor and the
 * batches of demand are as ours.
 */
final class RawScan implements ScanClient {
  private static final int WINDOW = 256 << 10;
  private static final int BATCH = 32;

  private final Target target;

  /** Of the kind and the size of Timebound's own, first in, first out. */
  private final ExecutorService executor =
      new ForkJoinPool(
          Math.max(4, 2 * Runtime.getRuntime().availableProcessors()),
          ForkJoinPool.defaultForkJoinWorkerThreadFactory,
          null,
          true);

  private final List<ManagedChannel> channels = new ArrayList<>();

  RawScan(Target target) {
    this.target = target;
  }

  @Override
  public void scanForEver(RowCount count, Failed failed) {
    ManagedChannel channel =
        NettyChannelBuilder.forAddress("localhost", target.port())
            .usePlaintext()
            .flowControlWindow(WINDOW)
            .executor(executor)
            .build();
    channels.add(channel);
    scan(channel, count, failed);
  }

  private void scan(ManagedChannel channel, RowCount count, Failed failed) {
    ClientCall<ReadRowsRequest, ReadRowsResponse> call =
        channel.newCall(BigtableGrpc.getReadRowsMethod(), CallOptions.DEFAULT);
    call.start(
        new ClientCall.Listener<ReadRowsResponse>() {
          private int asked = BATCH;

          @Override
          public void onMessage(ReadRowsResponse message) {
            for (int i = 0; i < message.getChunksCount(); i++) {
              ReadRowsResponse.CellChunk chunk = message.getChunks(i);
              count.value(chunk.getValue());
              if (chunk.getCommitRow()) {
                count.row();
              }
            }
            if (--asked == BATCH / 2) {
              call.request(BATCH - asked);
              asked = BATCH;
            }
          }

          @Override
          public void onClose(Status status, Metadata trailers) {
            if (status.isOk()) {
              count.scanEnded();
              scan(channel, count, failed);
            } else {
              failed.because(status.asRuntimeException());
            }
          }
        },
        new Metadata());
    call.request(BATCH);
    call.sendMessage(
        ReadRowsRequest.newBuilder()
            .setTableName(
                "projects/"
                    + target.project()
                    + "/instances/"
                    + target.instance()
                    + "/tables/"
                    + target.table())
            .build());
    call.halfClose();
  }

  @Override
  public void close() {
    channels.forEach(ManagedChannel::shutdownNow);
    executor.shutdown();
  }
}
