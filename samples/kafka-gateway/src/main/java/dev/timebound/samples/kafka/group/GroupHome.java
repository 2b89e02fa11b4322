package dev.timebound.samples.kafka.group;

import reactor.core.publisher.Mono;

/** Which gateway coordinates a group: one at a time. Nothing blocks. Thread-safe. */
public interface GroupHome {
  /** One gateway has them all. */
  GroupHome ALONE =
      new GroupHome() {
        @Override
        public Mono<Node> of(String group, Node self) {
          return Mono.just(self);
        }

        @Override
        public boolean isHere(String group) {
          return true;
        }
      };

  /**
   * The gateway that has the group; where none has, the one that asks takes it.
   *
   * @param self the one that asks, as its clients know it
   */
  Mono<Node> of(String group, Node self);

  /** Whether the group is this gateway's, now. */
  boolean isHere(String group);
}
