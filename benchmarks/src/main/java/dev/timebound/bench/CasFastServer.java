package dev.timebound.bench;

import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.CapabilitiesGrpc;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsRequest;
import dev.timebound.demo.Logs;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import java.io.IOException;
import java.net.InetSocketAddress;

/**
 * A store that costs next to nothing: answers Read, BatchReadBlobs and GetCapabilities from {@link
 * CasReplies}, on the event loop. It keeps to HTTP/2 flow control. A main of its own: says {@code
 * READY <port>}, ends when its standard input does, with its CPU time as figures.
 */
final class CasFastServer {
  private CasFastServer() {}

  public static void main(String[] args) throws IOException, InterruptedException {
    Logs.quiet();
    Server server = start(new CasReplies());
    Usage start = Usage.now();
    System.out.println("READY " + server.getPort());
    while (System.in.read() >= 0) {
      // until the end of the input
    }
    System.out.println(Figures.none().with("cpu_ns", Usage.now().since(start).cpuNanos()));
    server.shutdownNow().awaitTermination();
  }

  static Server start(CasReplies replies) throws IOException {
    return NettyServerBuilder.forAddress(new InetSocketAddress("localhost", 0))
        .directExecutor()
        .addService(
            ServerServiceDefinition.builder(ByteStreamGrpc.SERVICE_NAME)
                .addMethod(
                    BytesMethod.of(
                        ByteStreamGrpc.getReadMethod(),
                        request -> replies.read(ReadRequest.parseFrom(request).getResourceName())))
                .build())
        .addService(
            ServerServiceDefinition.builder(ContentAddressableStorageGrpc.SERVICE_NAME)
                .addMethod(
                    BytesMethod.of(
                        ContentAddressableStorageGrpc.getBatchReadBlobsMethod(),
                        request -> replies.batch(BatchReadBlobsRequest.parseFrom(request))))
                .build())
        .addService(
            ServerServiceDefinition.builder(CapabilitiesGrpc.SERVICE_NAME)
                .addMethod(
                    BytesMethod.of(
                        CapabilitiesGrpc.getGetCapabilitiesMethod(),
                        request -> CasReplies.capabilities()))
                .build())
        .build()
        .start();
  }
}
