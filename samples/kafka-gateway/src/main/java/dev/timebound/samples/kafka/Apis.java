package dev.timebound.samples.kafka;

import java.nio.ByteBuffer;
import java.util.EnumMap;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.kafka.common.message.ApiVersionsRequestData;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.ApiVersionsResponseData.ApiVersion;
import org.apache.kafka.common.message.ApiVersionsResponseData.ApiVersionCollection;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.ApiVersionsRequest;
import reactor.core.publisher.Mono;

/** The requests that are served, each in a range of versions, and how they are read. */
final class Apis {
  /**
   * Answers one request; empty where the client wants no answer. An error becomes the request's
   * error answer.
   */
  interface Handler extends BiFunction<Call, ApiMessage, Mono<ApiMessage>> {}

  private record Served(short least, short most, Handler handler) {
    boolean takes(short version) {
      return version >= least && version <= most;
    }
  }

  private final Map<ApiKeys, Served> served = new EnumMap<>(ApiKeys.class);

  Apis() {
    serve(ApiKeys.API_VERSIONS, 0, 4, (call, body) -> Mono.just(versions(call)));
  }

  /** Not to be called once a connection uses this. */
  Apis serve(ApiKeys api, int least, int most, Handler handler) {
    served.put(api, new Served((short) least, (short) most, handler));
    return this;
  }

  Mono<ApiMessage> handle(Call call) {
    Served api = served.get(call.api());
    if (api == null) {
      return Mono.error(Errors.UNSUPPORTED_VERSION.exception());
    }
    return Mono.defer(() -> api.handler.apply(call, call.request().data()));
  }

  /**
   * Reads one request.
   *
   * @param arrived see {@link Call#arrived}
   * @throws ConnectionEndedException where it cannot be read or is not served
   */
  Call read(Session session, byte[] frame, long arrived) {
    ByteBuffer bytes = ByteBuffer.wrap(frame);
    if (bytes.remaining() < Short.BYTES + Short.BYTES + Integer.BYTES) {
      throw new ConnectionEndedException("a request of " + frame.length + " bytes");
    }
    short key = bytes.getShort(0);
    short version = bytes.getShort(Short.BYTES);
    int correlationId = bytes.getInt(Short.BYTES + Short.BYTES);
    ApiKeys api = ApiKeys.hasId(key) ? ApiKeys.forId(key) : null;
    Served range = api == null ? null : served.get(api);
    if (api == null || range == null) {
      throw new ConnectionEndedException("request " + key + ", which is not served");
    }
    if (!range.takes(version)) {
      if (api == ApiKeys.API_VERSIONS) {
        return unknownVersion(session, correlationId, version, arrived);
      }
      throw new ConnectionEndedException(
          "%s version %d (expected: %d to %d)"
              .formatted(api.name, version, range.least, range.most));
    }
    try {
      ByteBufferAccessor in = new ByteBufferAccessor(bytes);
      String clientId = new RequestHeaderData(in, api.requestHeaderVersion(version)).clientId();
      AbstractRequest request = AbstractRequest.parseRequest(api, version, in).request;
      String name = clientId == null ? "" : clientId;
      return new Call(session, api, version, correlationId, name, request, arrived);
    } catch (RuntimeException e) {
      throw new ConnectionEndedException(api.name + " version " + version, e);
    }
  }

  /** A client that begins with a version of tomorrow is told, in version 0, what it may use. */
  private static Call unknownVersion(
      Session session, int correlationId, short version, long arrived) {
    return new Call(
        session,
        ApiKeys.API_VERSIONS,
        (short) 0,
        correlationId,
        "",
        new ApiVersionsRequest(new ApiVersionsRequestData(), (short) 0, version),
        arrived);
  }

  private ApiMessage versions(Call call) {
    ApiVersionCollection ranges = new ApiVersionCollection();
    served.forEach(
        (api, range) ->
            ranges.add(
                new ApiVersion()
                    .setApiKey(api.id)
                    .setMinVersion(range.least)
                    .setMaxVersion(range.most)));
    return new ApiVersionsResponseData()
        .setErrorCode(error((ApiVersionsRequest) call.request()).code())
        .setApiKeys(ranges);
  }

  private static Errors error(ApiVersionsRequest request) {
    if (request.hasUnsupportedRequestVersion()) {
      return Errors.UNSUPPORTED_VERSION;
    }
    return request.isValid() ? Errors.NONE : Errors.INVALID_REQUEST;
  }
}
