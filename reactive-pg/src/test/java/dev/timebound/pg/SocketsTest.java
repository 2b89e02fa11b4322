package dev.timebound.pg;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.Channel;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.netty.resources.LoopResources;
import reactor.netty.tcp.TcpResources;

@Timeout(30)
@DisplayName("PG-4 PG-15 the sockets of a dial that is given up")
class SocketsTest {
  private final Set<Channel> open = ConcurrentHashMap.newKeySet();

  /** Makes channels that are none. */
  private record Loops(Supplier<Channel> made) implements LoopResources {
    @Override
    public <C extends Channel> C onChannel(Class<C> type, EventLoopGroup group) {
      return type.cast(made.get());
    }

    @Override
    public EventLoopGroup onServer(boolean useNative) {
      return TcpResources.get().onServer(useNative);
    }
  }

  @Test
  @DisplayName("PG-15 one given up in the moment that its socket is made: its end sees the socket")
  void inTheMoment() throws InterruptedException {
    AtomicReference<Sockets> sockets = new AtomicReference<>();
    AtomicReference<Channel> made = new AtomicReference<>();
    AtomicReference<Channel> seen = new AtomicReference<>();
    Thread end =
        new Thread(
            () -> {
              requireNonNull(sockets.get()).abort();
              seen.set(made.get());
            });
    sockets.set(
        new Sockets(
            new Loops(
                () -> {
                  end.start();
                  // it has ended, or waits for this socket
                  while (end.getState() != Thread.State.BLOCKED
                      && end.getState() != Thread.State.TERMINATED) {
                    Thread.onSpinWait();
                  }
                  made.set(new EmbeddedChannel());
                  return requireNonNull(made.get());
                }),
            open));
    requireNonNull(sockets.get()).onChannel(Channel.class, TcpResources.get().onClient(false));
    end.join();
    assertThat(seen.get()).as("the socket that the end knew of").isNotNull();
    assertThat(requireNonNull(seen.get()).isOpen()).isFalse();
    assertThat(open).isEmpty();
  }
}
