package dev.timebound.cas;

import com.google.protobuf.ByteString;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsResponse;
import io.grpc.Server;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A server of grpc-java's own, for what connections do: it misses nothing, and its reads stay open
 * until the test ends them.
 */
final class PlainServer implements AutoCloseable {
  private final Server server;
  final AtomicInteger asked = new AtomicInteger();
  final List<ServerCallStreamObserver<ReadResponse>> reads = new CopyOnWriteArrayList<>();

  private PlainServer(int port) throws IOException {
    server =
        NettyServerBuilder.forAddress(new InetSocketAddress(InetAddress.getLoopbackAddress(), port))
            .addService(new Store())
            .addService(new Streams())
            .build()
            .start();
  }

  static PlainServer start() {
    return at(0);
  }

  static PlainServer at(int port) {
    try {
      return new PlainServer(port);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  int port() {
    return server.getPort();
  }

  /** GOAWAY on every connection; streams that are open run on; no new connection is accepted. */
  void goAway() {
    server.shutdown();
  }

  @Override
  public void close() {
    server.shutdownNow();
    try {
      server.awaitTermination(10, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  static ReadResponse chunk(String text) {
    return ReadResponse.newBuilder().setData(ByteString.copyFromUtf8(text)).build();
  }

  private final class Store
      extends ContentAddressableStorageGrpc.ContentAddressableStorageImplBase {
    @Override
    public void findMissingBlobs(
        FindMissingBlobsRequest request, StreamObserver<FindMissingBlobsResponse> answer) {
      asked.incrementAndGet();
      answer.onNext(FindMissingBlobsResponse.getDefaultInstance());
      answer.onCompleted();
    }
  }

  private final class Streams extends ByteStreamGrpc.ByteStreamImplBase {
    @Override
    public void read(ReadRequest request, StreamObserver<ReadResponse> answer) {
      ServerCallStreamObserver<ReadResponse> call = (ServerCallStreamObserver<ReadResponse>) answer;
      call.setOnCancelHandler(() -> {});
      call.onNext(chunk("first"));
      reads.add(call);
    }
  }
}
