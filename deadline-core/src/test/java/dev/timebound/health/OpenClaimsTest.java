package dev.timebound.health;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class OpenClaimsTest {
  private static final class Item implements OpenClaims.Place<Item> {
    OpenClaims.@Nullable Block<Item> block;
    int index;

    @Override
    public void at(OpenClaims.Block<Item> block, int index) {
      this.block = block;
      this.index = index;
    }

    OpenClaims.Block<Item> block() {
      return java.util.Objects.requireNonNull(block);
    }
  }

  private final OpenClaims<Item> bag = new OpenClaims<>();
  private final Set<Item> model = new HashSet<>();
  private int largest;

  private Item add() {
    Item item = new Item();
    model.add(item);
    bag.add(item, model.size(), item);
    largest = Math.max(largest, item.block().cells.length());
    return item;
  }

  private void remove(Item item) {
    item.block().cells.set(item.index, null);
    model.remove(item);
  }

  private Set<Item> seen() {
    List<Item> seen = new ArrayList<>();
    bag.visit(seen::add);
    assertThat(seen).doesNotHaveDuplicates();
    return new HashSet<>(seen);
  }

  @Test
  @DisplayName("HE-12a what is open is held, each once, whatever the order of ends")
  void heldOnce() {
    Random random = new Random(3);
    List<Item> open = new ArrayList<>();
    for (int i = 0; i < 20_000; i++) {
      if (open.isEmpty() || random.nextInt(100) < (i < 10_000 ? 52 : 48)) {
        open.add(add());
      } else {
        remove(open.remove(random.nextInt(open.size())));
      }
      if (i % 500 == 0) {
        assertThat(seen()).isEqualTo(model);
      }
    }
    assertThat(seen()).isEqualTo(model);
  }

  @Test
  @DisplayName("it grows with the most that were open at once, not with how many there were")
  void bounded() {
    Deque<Item> open = new ArrayDeque<>();
    for (int i = 0; i < 100_000; i++) {
      open.add(add());
      if (open.size() > 50) {
        remove(i % 3 == 0 ? open.removeLast() : open.removeFirst());
      }
    }
    assertThat(largest).isEqualTo(128);
    assertThat(seen()).isEqualTo(model);
  }
}
