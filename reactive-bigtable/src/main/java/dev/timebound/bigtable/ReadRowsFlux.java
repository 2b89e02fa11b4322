package dev.timebound.bigtable;

import com.google.bigtable.v2.ReadRowsRequest;
import org.jspecify.annotations.Nullable;
import reactor.core.CoreSubscriber;
import reactor.core.Scannable;
import reactor.core.publisher.Flux;

/**
 * The rows of one query, read by as many attempts as it takes. Cold: each subscription reads anew.
 */
final class ReadRowsFlux extends Flux<Row> implements Scannable {
  private final ReadRowsCalls calls;
  private final ObservedCall call;
  private final ReadRowsRequest request;

  static Flux<Row> of(ReadRowsCalls calls, ObservedCall call, ReadRowsRequest request) {
    return onAssembly(new ReadRowsFlux(calls, call, request));
  }

  private ReadRowsFlux(ReadRowsCalls calls, ObservedCall call, ReadRowsRequest request) {
    this.calls = calls;
    this.call = call;
    this.request = request;
  }

  @Override
  public void subscribe(CoreSubscriber<? super Row> actual) {
    ReadRowsSubscription read = new ReadRowsSubscription(calls, call, request, actual);
    actual.onSubscribe(read);
    read.begin();
  }

  @Override
  @SuppressWarnings("rawtypes")
  public @Nullable Object scanUnsafe(Attr key) {
    if (key == Attr.NAME) {
      return ReadRowsSubscription.OPERATION; // what a deadline's error calls it
    }
    return key == Attr.RUN_STYLE ? Attr.RunStyle.ASYNC : null;
  }
}
