package dev.timebound.fetch;

import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * A {@link PartitionFetcher} as one client sees it, such as one connection: where the store {@link
 * PartitionStore#finishesInBackground}, a read that a request had to abandon goes on, one for each
 * partition, and serves the client's next request (FE-24). A read slower than any request allows
 * thus still comes to its end. Thread-safe.
 */
public final class FetchClient implements AutoCloseable {
  private final PartitionFetcher fetcher;
  private final BackgroundReads reads;

  FetchClient(PartitionFetcher fetcher, BackgroundReads reads) {
    this.fetcher = fetcher;
    this.reads = reads;
  }

  /** As {@link PartitionFetcher#fetch}. A cancel ends the background reads of its partitions. */
  public Mono<FetchResponse> fetch(FetchRequest request) {
    return fetcher.fetch(request, reads);
  }

  /** As {@link PartitionFetcher#fetchEach}. A cancel is as with {@link #fetch}. */
  public Flux<PartitionData> fetchEach(FetchRequest request) {
    return fetcher.fetchEach(request, reads);
  }

  /** Reads that go on in the background, or were brought to their end and not taken yet. */
  public int backgroundReads() {
    return reads.size();
  }

  /** The client is gone: so are its background reads. Requests under way go on. */
  @Override
  public void close() {
    reads.close();
  }
}
