package dev.timebound.bigtable;

import com.google.bigtable.v2.ReadRowsRequest;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;

/**
 * The rows of one query, read by as many attempts as it takes. Cold: each subscription reads anew.
 */
final class ReadRowsFlux extends Flux<Row> {
  private final ReadRowsCalls calls;
  private final ReadRowsRequest request;

  static Flux<Row> of(ReadRowsCalls calls, ReadRowsRequest request) {
    return onAssembly(new ReadRowsFlux(calls, request));
  }

  private ReadRowsFlux(ReadRowsCalls calls, ReadRowsRequest request) {
    this.calls = calls;
    this.request = request;
  }

  @Override
  public void subscribe(CoreSubscriber<? super Row> actual) {
    ReadRowsSubscription read = new ReadRowsSubscription(calls, request, actual);
    actual.onSubscribe(read);
    read.begin();
  }
}
