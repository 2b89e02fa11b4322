package dev.timebound.bench;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** The order in which the contestants run, so that none always runs first or after the same one. */
final class Rounds {
  private Rounds() {}

  /**
   * All contestants in round {@code round} (from 0): each round begins with another one, and every
   * second round goes backwards. With two of them they simply take turns at being first.
   */
  static <T> List<T> order(List<T> contestants, int round) {
    List<T> order = new ArrayList<>(contestants);
    if (order.size() == 2) {
      if (round % 2 == 1) {
        Collections.reverse(order);
      }
      return order;
    }
    Collections.rotate(order, -round);
    if (round % 2 == 1) {
      Collections.reverse(order);
    }
    return order;
  }
}
