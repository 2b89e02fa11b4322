package dev.timebound.bigtable;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/**
 * What the attempts of one call hand from each to the next: their number, and the service's routing
 * cookies, kept until it sends others by the same name. (BT-38, BT-39)
 *
 * <p>The attempts come one after the other; each takes its headers when it starts.
 */
final class AttemptHeaders {
  /** Where they travel. A call without them is a first attempt, and keeps no cookie. */
  static final CallOptions.Key<AttemptHeaders> KEY =
      CallOptions.Key.create("timebound-bigtable-attempt-headers");

  private static final Metadata.Key<String> ATTEMPT =
      Metadata.Key.of("bigtable-attempt", Metadata.ASCII_STRING_MARSHALLER);

  private static final String COOKIE = "x-goog-cbt-cookie";

  private volatile int started;
  private volatile @Nullable Metadata cookies;

  private void addTo(Metadata headers) {
    int number = started;
    started = number + 1;
    headers.put(ATTEMPT, Integer.toString(number));
    Metadata kept = cookies;
    if (kept != null) {
      headers.merge(kept);
    }
  }

  /** The trailers' cookies win over the headers'. */
  private void failed(@Nullable Metadata headers, Metadata trailers) {
    Metadata kept = new Metadata();
    Metadata before = cookies;
    if (before != null) {
      kept.merge(before);
    }
    if (headers != null) {
      take(headers, kept);
    }
    take(trailers, kept);
    if (!kept.keys().isEmpty()) {
      cookies = kept;
    }
  }

  private static void take(Metadata from, Metadata kept) {
    for (String name : from.keys()) {
      if (name.startsWith(COOKIE)) {
        if (name.endsWith(Metadata.BINARY_HEADER_SUFFIX)) {
          replace(Metadata.Key.of(name, Metadata.BINARY_BYTE_MARSHALLER), from, kept);
        } else {
          replace(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER), from, kept);
        }
      }
    }
  }

  private static <T> void replace(Metadata.Key<T> key, Metadata from, Metadata kept) {
    T value = from.get(key);
    if (value != null) {
      kept.removeAll(key);
      kept.put(key, value);
    }
  }

  /** Gives each call {@code fixed}, and what its attempt has to hand on. */
  static ClientInterceptor interceptor(Metadata fixed) {
    return new ClientInterceptor() {
      @Override
      public <Q, R> ClientCall<Q, R> interceptCall(
          MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
        AttemptHeaders given = options.getOption(KEY);
        AttemptHeaders attempt = given == null ? new AttemptHeaders() : given;
        return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
          @Override
          public void start(Listener<R> listener, Metadata headers) {
            headers.merge(fixed);
            attempt.addTo(headers);
            super.start(given == null ? listener : attempt.listening(listener), headers);
          }
        };
      }
    };
  }

  private <R> ClientCall.Listener<R> listening(ClientCall.Listener<R> listener) {
    return new SimpleForwardingClientCallListener<>(listener) {
      private @Nullable Metadata headers;

      @Override
      public void onHeaders(Metadata received) {
        headers = received;
        super.onHeaders(received);
      }

      @Override
      public void onClose(Status status, Metadata trailers) {
        if (!status.isOk()) {
          failed(headers, trailers);
        }
        super.onClose(status, trailers);
      }
    };
  }
}
