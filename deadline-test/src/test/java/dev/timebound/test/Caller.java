package dev.timebound.test;

import static dev.timebound.test.Eventually.eventually;

import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.PingAndWarmRequest;
import com.google.bigtable.v2.PingAndWarmResponse;
import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.ReadRowsResponse;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** One gRPC channel to a server under test, with calls whose every event is kept. */
final class Caller implements AutoCloseable {
  static final int WINDOW = 100_000;
  final ManagedChannel channel;

  Caller(String hostAndPort) {
    channel =
        NettyChannelBuilder.forTarget(hostAndPort)
            .usePlaintext()
            .disableRetry()
            .flowControlWindow(WINDOW)
            .maxInboundMessageSize(64 << 20)
            .build();
  }

  Call readRows(int demand) {
    return readRows(demand, CallOptions.DEFAULT, new Metadata());
  }

  Call readRows(int demand, CallOptions options, Metadata metadata) {
    Call call = new Call(channel.newCall(BigtableGrpc.getReadRowsMethod(), options));
    call.call.start(call, metadata);
    if (demand > 0) {
      call.call.request(demand);
    }
    call.call.sendMessage(
        ReadRowsRequest.newBuilder().setTableName("projects/p/instances/i/tables/t").build());
    call.call.halfClose();
    return call;
  }

  PingAndWarmResponse ping() {
    return ClientCalls.blockingUnaryCall(
        channel,
        BigtableGrpc.getPingAndWarmMethod(),
        CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS),
        PingAndWarmRequest.getDefaultInstance());
  }

  @Override
  public void close() throws InterruptedException {
    channel.shutdownNow();
    channel.awaitTermination(10, TimeUnit.SECONDS);
  }

  static final class Call extends ClientCall.Listener<ReadRowsResponse> {
    final ClientCall<ReadRowsRequest, ReadRowsResponse> call;
    final List<ReadRowsResponse> messages = new CopyOnWriteArrayList<>();
    volatile boolean headers;
    volatile @Nullable Status status;
    volatile Metadata trailers = new Metadata();

    Call(ClientCall<ReadRowsRequest, ReadRowsResponse> call) {
      this.call = call;
    }

    @Override
    public void onHeaders(Metadata received) {
      headers = true;
    }

    @Override
    public void onMessage(ReadRowsResponse message) {
      messages.add(message);
    }

    @Override
    public void onClose(Status closed, Metadata received) {
      trailers = received;
      status = closed;
    }

    List<String> keys() {
      List<String> keys = new ArrayList<>();
      for (ReadRowsResponse message : messages) {
        message.getChunksList().forEach(chunk -> keys.add(chunk.getRowKey().toStringUtf8()));
      }
      return keys;
    }

    Status awaitStatus() {
      eventually("the call ends", () -> status != null);
      Status ended = status;
      return ended == null ? Status.UNKNOWN : ended;
    }

    Status.Code awaitCode() {
      return awaitStatus().getCode();
    }

    void awaitHeaders() {
      eventually("headers come", () -> headers);
    }

    void awaitMessages(int n) {
      eventually(n + " messages come", () -> messages.size() >= n);
    }
  }
}
