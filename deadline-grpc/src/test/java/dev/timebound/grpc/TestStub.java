package dev.timebound.grpc;

import static dev.timebound.grpc.BridgeServer.STREAM;
import static dev.timebound.grpc.BridgeServer.UNARY;

import com.salesforce.reactorgrpc.stub.ClientCalls;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.stub.AbstractStub;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** What reactor-grpc generates for a service, by hand. */
final class TestStub extends AbstractStub<TestStub> {
  TestStub(Channel channel) {
    super(channel, CallOptions.DEFAULT);
  }

  private TestStub(Channel channel, CallOptions options) {
    super(channel, options);
  }

  @Override
  protected TestStub build(Channel channel, CallOptions options) {
    return new TestStub(channel, options);
  }

  Mono<byte[]> unary(Mono<byte[]> request) {
    return ClientCalls.oneToOne(
        request,
        (message, observer) ->
            io.grpc.stub.ClientCalls.asyncUnaryCall(
                getChannel().newCall(UNARY, getCallOptions()), message, observer),
        getCallOptions());
  }

  Flux<byte[]> stream(Mono<byte[]> request) {
    return ClientCalls.oneToMany(
        request,
        (message, observer) ->
            io.grpc.stub.ClientCalls.asyncServerStreamingCall(
                getChannel().newCall(STREAM, getCallOptions()), message, observer),
        getCallOptions());
  }

  Mono<byte[]> collect(Flux<byte[]> requests) {
    return ClientCalls.manyToOne(
        requests,
        observer ->
            io.grpc.stub.ClientCalls.asyncClientStreamingCall(
                getChannel().newCall(BridgeServer.COLLECT, getCallOptions()), observer),
        getCallOptions());
  }
}
