package dev.timebound.fetch.s3;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import software.amazon.awssdk.core.async.SdkPublisher;
import software.amazon.awssdk.http.SdkHttpFullResponse;
import software.amazon.awssdk.http.SdkHttpMethod;
import software.amazon.awssdk.http.SdkHttpRequest;
import software.amazon.awssdk.http.SdkHttpResponse;
import software.amazon.awssdk.http.async.AsyncExecuteRequest;
import software.amazon.awssdk.http.async.SdkAsyncHttpClient;
import software.amazon.awssdk.http.async.SdkAsyncHttpResponseHandler;

/**
 * The SDK's client of HTTP, with an eye on its requests: which were sent, and how many are not over
 * yet, their bodies included. Reads of some objects take another road, on which they can be stalled
 * without the others; and a request can be made to fail as it does on a bad day.
 */
final class Requests implements SdkAsyncHttpClient {
  private final SdkAsyncHttpClient client;
  private final int otherPort;
  private final AtomicInteger open = new AtomicInteger();
  private final List<String> sent = new CopyOnWriteArrayList<>();
  private final Set<String> detoured = ConcurrentHashMap.newKeySet();
  private final ConcurrentLinkedDeque<Fault> faults = new ConcurrentLinkedDeque<>();

  private CompletableFuture<Void> lastPut = CompletableFuture.completedFuture(null);

  /** What becomes of one request that begins so. */
  private record Fault(String request, boolean done) {}

  Requests(SdkAsyncHttpClient client, int otherPort) {
    this.client = client;
    this.otherPort = otherPort;
  }

  int open() {
    return open.get();
  }

  /** Such as {@code GET topic-0/0/log/… bytes=0-99}, or {@code LIST bucket/prefix}. */
  List<String> sent() {
    return sent;
  }

  List<String> sent(String method) {
    return sent.stream().filter(each -> each.startsWith(method + " ")).toList();
  }

  void detour(String path) {
    detoured.add(path);
  }

  void endDetour(String path) {
    detoured.remove(path);
  }

  /**
   * The next so many requests of this kind are refused with 503 SlowDown, and not sent.
   *
   * @param method such as {@code GET}, or {@code LIST}
   */
  void refuse(String method, int times) {
    fail(new Fault(method, false), times);
  }

  /** The next so many requests of this kind are done by the server, and their answers lost. */
  void loseAnswers(String method, int times) {
    fail(new Fault(method, true), times);
  }

  private void fail(Fault fault, int times) {
    for (int i = 0; i < times; i++) {
      faults.add(fault);
    }
  }

  void endFaults() {
    faults.clear();
  }

  private boolean takes(Fault fault, String request) {
    return request.startsWith(fault.request() + " ") && faults.removeFirstOccurrence(fault);
  }

  @Override
  public CompletableFuture<Void> execute(AsyncExecuteRequest request) {
    SdkHttpRequest http = request.request();
    boolean list = http.rawQueryParameters().containsKey("list-type");
    String line =
        (list ? "LIST" : http.method())
            + " "
            + http.encodedPath()
            + http.firstMatchingRawQueryParameter("prefix").map(of -> "/" + of).orElse("")
            + " "
            + http.firstMatchingHeader("Range").orElse("");
    sent.add(line);
    for (Fault fault : faults) {
      if (takes(fault, line)) {
        return fault.done() ? lost(request) : refused(request.responseHandler());
      }
    }
    boolean detour =
        http.method() == SdkHttpMethod.GET
            && detoured.stream().anyMatch(each -> http.encodedPath().contains(each));
    AsyncExecuteRequest routed =
        detour ? on(request, otherPort, request.responseHandler()) : request;
    open.incrementAndGet();
    CompletableFuture<Void> whole =
        http.method() == SdkHttpMethod.PUT
            ? inTurn(() -> client.execute(routed))
            : client.execute(routed);
    whole.whenComplete((done, error) -> open.decrementAndGet());
    return whole;
  }

  /**
   * One put after the other: the test's server looks whether there is such an object and then
   * writes it, so that of two at the same time both may win, as they never do with S3.
   */
  private synchronized CompletableFuture<Void> inTurn(Supplier<CompletableFuture<Void>> put) {
    CompletableFuture<Void> whole = new CompletableFuture<>();
    CompletableFuture<Void> before = lastPut;
    lastPut = whole.handle((done, error) -> null);
    before.thenRun(
        () -> {
          if (!whole.isDone()) {
            CompletableFuture<Void> inner = put.get();
            whole.whenComplete((done, error) -> inner.cancel(true));
            inner.whenComplete(
                (done, error) -> {
                  if (error == null) {
                    whole.complete(done);
                  } else {
                    whole.completeExceptionally(error);
                  }
                });
          }
        });
    return whole;
  }

  private static CompletableFuture<Void> refused(SdkAsyncHttpResponseHandler handler) {
    byte[] body =
        "<Error><Code>SlowDown</Code><Message>less, please</Message></Error>"
            .getBytes(StandardCharsets.US_ASCII);
    handler.onHeaders(
        SdkHttpFullResponse.builder()
            .statusCode(503)
            .putHeader("Content-Type", "application/xml")
            .putHeader("Content-Length", Integer.toString(body.length))
            .build());
    handler.onStream(SdkPublisher.adapt(Flux.just(ByteBuffer.wrap(body))));
    return CompletableFuture.completedFuture(null);
  }

  private CompletableFuture<Void> lost(AsyncExecuteRequest request) {
    SdkAsyncHttpResponseHandler unheard =
        new SdkAsyncHttpResponseHandler() {
          @Override
          public void onHeaders(SdkHttpResponse headers) {}

          @Override
          public void onStream(Publisher<ByteBuffer> stream) {
            Flux.from(stream).subscribe();
          }

          @Override
          public void onError(Throwable error) {}
        };
    open.incrementAndGet();
    CompletableFuture<Void> whole = new CompletableFuture<>();
    client
        .execute(on(request, request.request().port(), unheard))
        .whenComplete(
            (done, error) -> {
              open.decrementAndGet();
              IOException reset = new IOException("connection reset before the answer");
              request.responseHandler().onError(reset);
              whole.completeExceptionally(reset);
            });
    return whole;
  }

  private static AsyncExecuteRequest on(
      AsyncExecuteRequest request, int port, SdkAsyncHttpResponseHandler handler) {
    return AsyncExecuteRequest.builder()
        .request(request.request().toBuilder().port(port).build())
        .requestContentPublisher(request.requestContentPublisher())
        .responseHandler(handler)
        .fullDuplex(request.fullDuplex())
        .metricCollector(request.metricCollector().orElse(null))
        .httpExecutionAttributes(request.httpExecutionAttributes())
        .build();
  }

  @Override
  public String clientName() {
    return client.clientName();
  }

  @Override
  public void close() {
    client.close();
  }
}
