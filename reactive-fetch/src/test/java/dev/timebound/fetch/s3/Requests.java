package dev.timebound.fetch.s3;

import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import software.amazon.awssdk.http.SdkHttpMethod;
import software.amazon.awssdk.http.SdkHttpRequest;
import software.amazon.awssdk.http.async.AsyncExecuteRequest;
import software.amazon.awssdk.http.async.SdkAsyncHttpClient;

/**
 * The SDK's client of HTTP, with an eye on its requests: which were sent, and how many are not over
 * yet, their bodies included. Reads of some objects take another road, on which they can be stalled
 * without the others.
 */
final class Requests implements SdkAsyncHttpClient {
  private final SdkAsyncHttpClient client;
  private final int otherPort;
  private final AtomicInteger open = new AtomicInteger();
  private final List<String> sent = new CopyOnWriteArrayList<>();
  private final Set<String> detoured = ConcurrentHashMap.newKeySet();

  Requests(SdkAsyncHttpClient client, int otherPort) {
    this.client = client;
    this.otherPort = otherPort;
  }

  int open() {
    return open.get();
  }

  /** Such as {@code GET topic-0/0/log/… bytes=0-99}, or {@code LIST}. */
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

  @Override
  public CompletableFuture<Void> execute(AsyncExecuteRequest request) {
    SdkHttpRequest http = request.request();
    boolean list = http.rawQueryParameters().containsKey("list-type");
    sent.add(
        (list ? "LIST" : http.method())
            + " "
            + http.encodedPath()
            + " "
            + http.firstMatchingHeader("Range").orElse(""));
    boolean detour =
        http.method() == SdkHttpMethod.GET
            && detoured.stream().anyMatch(each -> http.encodedPath().contains(each));
    open.incrementAndGet();
    CompletableFuture<Void> whole = client.execute(detour ? on(request, otherPort) : request);
    whole.whenComplete((done, error) -> open.decrementAndGet());
    return whole;
  }

  private static AsyncExecuteRequest on(AsyncExecuteRequest request, int port) {
    return AsyncExecuteRequest.builder()
        .request(request.request().toBuilder().port(port).build())
        .requestContentPublisher(request.requestContentPublisher())
        .responseHandler(request.responseHandler())
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
