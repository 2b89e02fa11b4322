package dev.timebound.bigtable;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.grpc.Status;
import java.io.ByteArrayInputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

class MessageBytesTest {
  private final MessageBytes marshaller = new MessageBytes();

  private static byte[] bytes(int length, int value) {
    byte[] bytes = new byte[length];
    Arrays.fill(bytes, (byte) value);
    return bytes;
  }

  private static byte[] content(Message message) {
    return Arrays.copyOf(message.bytes, message.length);
  }

  @Nested
  class Read {
    @Test
    @DisplayName("a message is what came, of known length or not, and can be sent as it is")
    void whole() throws Exception {
      byte[] sent = bytes(1000, 7);
      assertThat(content(marshaller.parse(WireStream.of(sent)))).isEqualTo(sent);
      assertThat(content(marshaller.parse(new ByteArrayInputStream(sent)))).isEqualTo(sent);
      Message message = marshaller.parse(WireStream.of(sent));
      assertThat(marshaller.stream(message).readAllBytes()).isEqualTo(sent);
    }

    @Test
    @DisplayName("one that ends before its length is INTERNAL")
    void cut() {
      assertThatThrownBy(() -> marshaller.parse(WireStream.cut(bytes(10, 1), 3)))
          .hasMessage("INTERNAL: the message could not be read")
          .extracting(Status::fromThrowable)
          .extracting(Status::getCode)
          .isEqualTo(Status.Code.INTERNAL);
    }
  }

  @Nested
  class GivenBack {
    @Test
    @DisplayName("the next is read into one that was given back, shorter or longer than it was")
    void reused() {
      Message first = marshaller.parse(WireStream.of(bytes(1000, 1)));
      marshaller.giveBack(first);
      Message second = marshaller.parse(WireStream.of(bytes(1300, 2)));
      assertThat(second).isSameAs(first);
      assertThat(content(second)).isEqualTo(bytes(1300, 2));
      marshaller.giveBack(second);
      Message third = marshaller.parse(WireStream.of(bytes(3, 3)));
      assertThat(third).isSameAs(first);
      assertThat(content(third)).isEqualTo(bytes(3, 3));
    }

    @Test
    @DisplayName("one that was not given back is nobody else's")
    void held() {
      Message first = marshaller.parse(WireStream.of(bytes(100, 1)));
      Message second = marshaller.parse(WireStream.of(bytes(100, 2)));
      marshaller.giveBack(second);
      Message third = marshaller.parse(WireStream.of(bytes(100, 3)));
      Message fourth = marshaller.parse(WireStream.of(bytes(100, 4)));
      assertThat(content(first)).isEqualTo(bytes(100, 1));
      assertThat(content(third)).isEqualTo(bytes(100, 3));
      assertThat(content(fourth)).isEqualTo(bytes(100, 4));
    }

    @Test
    @DisplayName("one that is too small for the next is let go of, a very long one is never kept")
    void sizes() {
      Message small = marshaller.parse(WireStream.of(bytes(10, 1)));
      marshaller.giveBack(small);
      Message large = marshaller.parse(WireStream.of(bytes(60_000, 2)));
      assertThat(large).isNotSameAs(small);
      assertThat(large.bytes).hasSizeBetween(60_000, 64 << 10);
      Message huge = marshaller.parse(WireStream.of(bytes(70_000, 3)));
      assertThat(huge.bytes).hasSize(70_000);
      marshaller.giveBack(huge);
      assertThat(marshaller.parse(WireStream.of(bytes(100, 4)))).isNotSameAs(huge);
    }

    @Test
    @DisplayName("two threads never hold the same one")
    void threads() throws Exception {
      AtomicInteger wrong = new AtomicInteger();
      List<Thread> threads = new ArrayList<>();
      for (int t = 0; t < 40; t++) { // more than there are places: some share one
        int own = t;
        threads.add(new Thread(() -> holdAndLook(own, wrong)));
      }
      threads.forEach(Thread::start);
      for (Thread thread : threads) {
        thread.join();
      }
      assertThat(wrong).hasValue(0);
    }

    private void holdAndLook(int own, AtomicInteger wrong) {
      for (int i = 0; i < 2_000; i++) {
        byte[] sent = bytes(50 + i % 400, own);
        Message message = marshaller.parse(WireStream.of(sent));
        Thread.yield();
        if (!Arrays.equals(content(message), sent)) {
          wrong.incrementAndGet();
        }
        marshaller.giveBack(message);
      }
    }
  }
}
