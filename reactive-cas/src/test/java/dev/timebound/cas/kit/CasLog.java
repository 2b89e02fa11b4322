package dev.timebound.cas.kit;

import io.grpc.Metadata;
import io.grpc.ServerStreamTracer;
import io.grpc.netty.shaded.io.grpc.netty.GrpcHttp2ConnectionHandler;
import io.grpc.netty.shaded.io.netty.channel.Channel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** What came to a scripted store: knows a call before gRPC's server does. */
final class CasLog extends ServerStreamTracer.Factory {
  private final List<CasCallRecord> calls = new ArrayList<>();
  private final List<CasLink> links = new CopyOnWriteArrayList<>();

  void connected(Channel channel, GrpcHttp2ConnectionHandler http2) {
    // by one event loop
    links.add(new CasLink(links.size() + 1, channel, http2));
  }

  List<CasLink> links() {
    return links;
  }

  List<CasCall> calls() {
    synchronized (calls) {
      return List.copyOf(calls);
    }
  }

  @Override
  public ServerStreamTracer newServerStreamTracer(String fullMethodName, Metadata headers) {
    CasMethod method = CasMethod.of(fullMethodName);
    CasLink.Arrival arrival = CasLink.Arrival.now();
    if (method == null || arrival == null) {
      return new ServerStreamTracer() {};
    }
    Metadata copy = new Metadata();
    copy.merge(headers);
    // gRPC's server would end the call at the client's deadline by itself; one that hangs does not
    headers.removeAll(CasCallRecord.TIMEOUT);
    synchronized (calls) {
      CasCallRecord call = new CasCallRecord(calls.size() + 1, method, arrival, copy);
      calls.add(call);
      arrival.link().began(call);
      return call;
    }
  }

  /** Resets every connection that is open now; returns when none of them is. */
  void resetAll() {
    List<CasLink> open = links().stream().filter(CasLink::isOpen).toList();
    open.forEach(CasLink::reset);
    Wait.until(
        "they are reset",
        () -> open.stream().noneMatch(CasLink::isOpen),
        () -> "the connections are " + open);
  }
}
