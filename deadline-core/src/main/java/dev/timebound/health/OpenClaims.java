package dev.timebound.health;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The open claims of one member: a lock-free bag that allocates only where it grows, to at most a
 * few times the most that were ever open at once. Add and remove are a compare-and-set and a write;
 * who visits sees every claim whose add has returned before.
 */
final class OpenClaims<C> {
  private static final int FIRST = 16;

  /** Cells in which claims stand, biggest block first. */
  static final class Block<C> {
    final AtomicReferenceArray<@Nullable C> cells;
    final @Nullable Block<C> smaller;

    Block(int size, @Nullable Block<C> smaller) {
      this.cells = new AtomicReferenceArray<>(size);
      this.smaller = smaller;
    }
  }

  private static final VarHandle HEAD;

  static {
    try {
      HEAD = MethodHandles.lookup().findVarHandle(OpenClaims.class, "head", Block.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private volatile Block<C> head = new Block<>(FIRST, null);

  /** Claims end about in the order they began: going round finds a free cell at once. Racy. */
  private int next;

  /**
   * Adds; {@code place} is told where.
   *
   * @param count about how many there are, this one included: keeps half of the cells free, so that
   *     one is found at the first try or soon
   */
  void add(C claim, int count, Place<C> place) {
    while (true) {
      Block<C> top = head;
      int size = top.cells.length();
      if (count <= size / 2) {
        int start = next++;
        for (int i = 0; i < size; i++) {
          int at = (start + i) & (size - 1);
          if (top.cells.get(at) == null) {
            place.at(top, at);
            if (top.cells.compareAndSet(at, null, claim)) {
              return;
            }
          }
        }
      }
      HEAD.compareAndSet(this, top, new Block<>(size * 2, top));
    }
  }

  /** Told where a claim is about to stand, before it stands there. */
  interface Place<C> {
    void at(Block<C> block, int index);
  }

  void visit(Consumer<? super C> visitor) {
    for (Block<C> b = head; b != null; b = b.smaller) {
      for (int i = 0; i < b.cells.length(); i++) {
        C claim = b.cells.get(i);
        if (claim != null) {
          visitor.accept(claim);
        }
      }
    }
  }
}
