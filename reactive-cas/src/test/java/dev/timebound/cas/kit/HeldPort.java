package dev.timebound.cas.kit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;

/**
 * A port of the loopback address that nobody listens on, and that nobody else is given meanwhile:
 * who connects is refused. A port that was merely closed may be another server's a moment later, of
 * another build on the same machine too. A server may take it while it is held.
 */
public final class HeldPort implements AutoCloseable {
  private final Socket socket = new Socket();

  private HeldPort(int port) {
    try {
      socket.setReuseAddress(true);
      socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    } catch (IOException e) {
      close();
      throw new UncheckedIOException("port " + port, e);
    }
  }

  /** Holds a free one. */
  public static HeldPort free() {
    return new HeldPort(0);
  }

  /** Holds that one, which nobody listens on. */
  public static HeldPort of(int port) {
    return new HeldPort(port);
  }

  /** Its number. */
  public int number() {
    return socket.getLocalPort();
  }

  /** Lets it go. */
  @Override
  public void close() {
    try {
      socket.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
