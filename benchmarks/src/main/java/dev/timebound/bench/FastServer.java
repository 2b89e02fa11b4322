package dev.timebound.bench;

import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.ReadRowsRequest;
import dev.timebound.demo.Logs;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A Bigtable that costs next to nothing: answers ReadRows and PingAndWarm from {@link Replies}, on
 * the event loop, without making a message object. It keeps to HTTP/2 flow control. A main of its
 * own: says {@code READY <port>}, ends when its standard input does, with its CPU time as figures.
 */
final class FastServer {
  private FastServer() {}

  public static void main(String[] args) throws IOException, InterruptedException {
    Logs.quiet();
    Server server = start(new Replies());
    Usage start = Usage.now();
    System.out.println("READY " + server.getPort());
    while (System.in.read() >= 0) {
      // until the end of the input
    }
    System.out.println(Figures.none().with("cpu_ns", Usage.now().since(start).cpuNanos()));
    server.shutdownNow().awaitTermination();
  }

  static Server start(Replies replies) throws IOException {
    ServerServiceDefinition service =
        ServerServiceDefinition.builder(BigtableGrpc.SERVICE_NAME)
            .addMethod(
                BytesMethod.of(
                    BigtableGrpc.getReadRowsMethod(),
                    request -> replies.to(ReadRowsRequest.parseFrom(request))))
            // one empty message
            .addMethod(
                BytesMethod.of(
                    BigtableGrpc.getPingAndWarmMethod(), request -> List.of(new byte[0])))
            .build();
    return NettyServerBuilder.forAddress(new InetSocketAddress("localhost", 0))
        .directExecutor()
        .permitKeepAliveTime(1, TimeUnit.SECONDS)
        .permitKeepAliveWithoutCalls(true)
        .addService(service)
        .build()
        .start();
  }
}
