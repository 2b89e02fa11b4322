package dev.timebound.deadline;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

/**
 * Serves items one after the other, each within its share of what is left (DL-12).
 *
 * @param mapper makes an item's sequence
 * @param cut what follows what an item gave, where its share ran out
 */
record SharedConcat<A, R>(
    Function<? super A, ? extends Publisher<? extends R>> mapper,
    BiFunction<? super A, ? super DeadlineExceededException, ? extends Publisher<? extends R>>
        cut) {

  Flux<R> over(Iterable<? extends A> items) {
    return Flux.deferContextual(
        context -> {
          List<A> all = new ArrayList<>();
          items.forEach(all::add);
          Deadline deadline = Deadlines.current(context);
          return Flux.range(0, all.size())
              .concatMap(i -> served(all.get(i), i, all.size(), deadline));
        });
  }

  /** Called when the one before has ended: what is left then is what is shared. */
  private Publisher<? extends R> served(A item, int index, int of, Deadline deadline) {
    if (deadline.isNone()) {
      return mapper.apply(item);
    }
    Deadline share = deadline.share(of - index);
    String name = "item " + (index + 1) + " of " + of;
    if (share.isExpired()) {
      // No bound here: it would have the passed deadline's timer tell the bounds downstream, before
      // they could see what came in.
      return cut.apply(item, new DeadlineExceededException(name, share));
    }
    long since = share.remainingNanos();
    return Flux.defer(() -> Flux.<R>from(mapper.apply(item)))
        .transform(Deadlines.of(share, name))
        .onErrorResume(
            error -> isOf(share, error),
            late -> {
              share.charge(name + " cut", since - share.remainingNanos());
              return cut.apply(item, (DeadlineExceededException) late);
            });
  }

  private static boolean isOf(Deadline share, Throwable error) {
    return error instanceof DeadlineExceededException late && late.isOf(share);
  }
}
