package dev.timebound.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class ForkTest {

  @Test
  @DisplayName("a fork gives its figures and what else it prints, with options and arguments")
  void figures() throws Exception {
    List<String> heard = Collections.synchronizedList(new ArrayList<>());
    Figures figures =
        Fork.run(Child.class, List.of("-Dadd=2"), List.of("figures", "40"), heard::add);

    assertThat(figures.get("sum")).isEqualTo(42);
    assertThat(heard).contains("hello");
  }

  @Test
  @DisplayName("one that fails, or gives no figures, is an error with the end of its output")
  void failing() {
    assertThatThrownBy(() -> Fork.run(Child.class, List.of(), List.of("fail"), line -> {}))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("code 1")
        .hasMessageContaining("on purpose");
    assertThatThrownBy(() -> Fork.run(Child.class, List.of(), List.of("silent"), line -> {}))
        .hasMessageContaining("code 0 and said nothing");
  }

  @Test
  @DisplayName("a server that floods its output is never held up by it, and ends with its input")
  void server() throws Exception {
    try (Fork fork = Fork.start(Child.class, List.of(), List.of("serve"), line -> {})) {
      assertThat(fork.ready()).isEqualTo("4711");
      assertThat(fork.stop().get("printed")).isEqualTo(20_000);
    }
  }

  @Test
  @DisplayName("a server that ends before it is ready is an error")
  void neverReady() throws Exception {
    try (Fork fork = Fork.start(Child.class, List.of(), List.of("fail"), line -> {})) {
      assertThatThrownBy(fork::ready).hasMessageContaining("never ready");
    }
  }

  /** What runs in the other JVM. */
  static final class Child {
    private Child() {}

    public static void main(String[] args) throws IOException {
      switch (args[0]) {
        case "figures" -> {
          System.out.println("hello");
          double sum = Integer.getInteger("add") + Double.parseDouble(args[1]);
          System.out.println(Figures.none().with("sum", sum));
        }
        case "serve" -> {
          System.out.println("READY 4711");
          for (int i = 0; i < 20_000; i++) {
            System.out.println("a line of a log that nobody asked for, number " + i);
          }
          while (System.in.read() >= 0) {
            // until the end of the input
          }
          System.out.println(Figures.none().with("printed", 20_000));
        }
        case "fail" -> throw new IllegalStateException("on purpose");
        default -> {}
      }
    }
  }
}
