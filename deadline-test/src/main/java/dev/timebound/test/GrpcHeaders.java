package dev.timebound.test;

import io.grpc.Metadata;
import io.grpc.Status;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.Http2Headers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Metadata, status and timeout as gRPC writes them into HTTP/2 headers. */
final class GrpcHeaders {
  private GrpcHeaders() {}

  static Http2Headers response(Metadata metadata) {
    Http2Headers headers =
        new DefaultHttp2Headers().status("200").set("content-type", "application/grpc");
    return with(headers, metadata);
  }

  static Http2Headers trailers(Http2Headers headers, Status status, Metadata metadata) {
    headers.set("grpc-status", Integer.toString(status.getCode().value()));
    String description = status.getDescription();
    if (description != null) {
      headers.set("grpc-message", percentEncoded(description));
    }
    return with(headers, metadata);
  }

  private static Http2Headers with(Http2Headers headers, Metadata metadata) {
    for (String name : metadata.keys()) {
      if (name.endsWith(Metadata.BINARY_HEADER_SUFFIX)) {
        Iterable<byte[]> values =
            metadata.getAll(Metadata.Key.of(name, Metadata.BINARY_BYTE_MARSHALLER));
        if (values != null) {
          values.forEach(
              value ->
                  headers.add(name, Base64.getEncoder().withoutPadding().encodeToString(value)));
        }
      } else {
        Iterable<String> values =
            metadata.getAll(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER));
        if (values != null) {
          values.forEach(value -> headers.add(name, value));
        }
      }
    }
    return headers;
  }

  static Metadata metadata(Http2Headers headers) {
    Metadata metadata = new Metadata();
    for (Map.Entry<CharSequence, CharSequence> header : headers) {
      String name = header.getKey().toString();
      String value = header.getValue().toString();
      if (name.startsWith(":")) {
        continue;
      }
      if (name.endsWith(Metadata.BINARY_HEADER_SUFFIX)) {
        for (String part : value.split(",", -1)) {
          metadata.put(
              Metadata.Key.of(name, Metadata.BINARY_BYTE_MARSHALLER),
              Base64.getDecoder().decode(part.trim()));
        }
      } else {
        metadata.put(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER), value);
      }
    }
    return metadata;
  }

  /** A {@code grpc-timeout}: up to eight digits and a unit. */
  static Duration timeout(String value) {
    long amount = Long.parseLong(value.substring(0, value.length() - 1));
    TimeUnit unit =
        switch (value.charAt(value.length() - 1)) {
          case 'H' -> TimeUnit.HOURS;
          case 'M' -> TimeUnit.MINUTES;
          case 'S' -> TimeUnit.SECONDS;
          case 'm' -> TimeUnit.MILLISECONDS;
          case 'u' -> TimeUnit.MICROSECONDS;
          case 'n' -> TimeUnit.NANOSECONDS;
          default ->
              throw new IllegalArgumentException(
                  "grpc-timeout: " + value + " (expected: a unit of HMSmun)");
        };
    return Duration.of(amount, unit.toChronoUnit());
  }

  static String percentEncoded(String text) {
    StringBuilder encoded = new StringBuilder();
    for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
      if (b >= ' ' && b <= '~' && b != '%') {
        encoded.append((char) b);
      } else {
        encoded.append(String.format("%%%02X", b & 0xff));
      }
    }
    return encoded.toString();
  }
}
