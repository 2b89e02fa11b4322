package dev.timebound.bigtable;

import com.google.auth.Credentials;
import com.google.auth.RequestMetadataCallback;
import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.PingAndWarmRequest;
import dev.timebound.grpc.ChannelProbe;
import dev.timebound.grpc.GrpcCalls;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Metadata;
import io.grpc.stub.MetadataUtils;
import java.net.URI;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/**
 * PingAndWarm on one channel. The credentials are fetched first and sent as headers, so that a
 * token that cannot be had is told from a connection that does not answer. (BT-13, BT-14)
 */
final class PingAndWarmProbe implements ChannelProbe {
  private final BigtableSettings settings;
  private final @Nullable Credentials credentials;
  private final URI audience;
  private final BiFunction<Channel, String, Channel> headers;

  PingAndWarmProbe(
      BigtableSettings settings,
      @Nullable Credentials credentials,
      String host,
      BiFunction<Channel, String, Channel> headers) {
    this.settings = settings;
    this.credentials = credentials;
    this.audience = URI.create("https://" + host + "/" + BigtableGrpc.SERVICE_NAME);
    this.headers = headers;
  }

  static PingAndWarmRequest request(BigtableSettings settings) {
    return PingAndWarmRequest.newBuilder()
        .setName(settings.instanceName())
        .setAppProfileId(settings.appProfileId())
        .build();
  }

  @Override
  public Mono<Metadata> prepare() {
    Credentials source = credentials;
    if (source == null) {
      return ChannelProbe.super.prepare();
    }
    return Mono.<Metadata>create(
            sink ->
                source.getRequestMetadata(
                    audience,
                    task -> Schedulers.boundedElastic().schedule(task),
                    new RequestMetadataCallback() {
                      @Override
                      public void onSuccess(Map<String, List<String>> metadata) {
                        try {
                          sink.success(asMetadata(metadata));
                        } catch (RuntimeException malformed) {
                          sink.error(malformed);
                        }
                      }

                      @Override
                      public void onFailure(Throwable e) {
                        sink.error(e);
                      }
                    }))
        // A source that blocks in the call itself must not hold the engine's worker.
        .subscribeOn(Schedulers.boundedElastic());
  }

  private static Metadata asMetadata(Map<String, List<String>> values) {
    Metadata metadata = new Metadata();
    values.forEach((name, all) -> all.forEach(value -> put(metadata, name, value)));
    return metadata;
  }

  /** As grpc-auth does it: the library gives binary values in base64. */
  private static void put(Metadata metadata, String name, String value) {
    if (name.endsWith(Metadata.BINARY_HEADER_SUFFIX)) {
      metadata.put(
          Metadata.Key.of(name, Metadata.BINARY_BYTE_MARSHALLER),
          Base64.getDecoder().decode(value));
    } else {
      metadata.put(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER), value);
    }
  }

  @Override
  public Mono<?> call(Channel channel, Metadata credentialHeaders) {
    Channel routed = headers.apply(channel, settings.instanceName());
    return GrpcCalls.unary(
        ClientInterceptors.intercept(
            routed, MetadataUtils.newAttachHeadersInterceptor(credentialHeaders)),
        BigtableGrpc.getPingAndWarmMethod(),
        CallOptions.DEFAULT,
        request(settings));
  }
}
