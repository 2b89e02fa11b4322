package dev.timebound.test;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;

/** Sends back what it gets, on plain blocking sockets: as little of what is tested as can be. */
final class EchoServer implements AutoCloseable {
  final List<Socket> sockets = new CopyOnWriteArrayList<>();
  final List<String> ends = new CopyOnWriteArrayList<>();
  final AtomicLong received = new AtomicLong();
  private final boolean echo;
  private final ServerSocket server;
  private final Thread acceptor;

  private EchoServer(boolean echo) {
    this.echo = echo;
    try {
      server = new ServerSocket(0, 100, InetAddress.getLoopbackAddress());
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    acceptor = start("accept", this::acceptAll);
  }

  static EchoServer start() {
    return new EchoServer(true);
  }

  /** Reads and never answers. */
  static EchoServer sink() {
    return new EchoServer(false);
  }

  int port() {
    return server.getLocalPort();
  }

  private void acceptAll() {
    try {
      while (true) {
        Socket socket = server.accept();
        socket.setTcpNoDelay(true);
        sockets.add(socket);
        start("echo", () -> serve(socket));
      }
    } catch (IOException closed) {
      ends.add("closed");
    }
  }

  private void serve(Socket socket) {
    byte[] buffer = new byte[64 << 10];
    try {
      InputStream in = socket.getInputStream();
      OutputStream out = socket.getOutputStream();
      int n;
      while ((n = in.read(buffer)) >= 0) {
        received.addAndGet(n);
        if (echo) {
          out.write(buffer, 0, n);
        }
      }
      ends.add("EOF");
      socket.close();
    } catch (IOException e) {
      ends.add(String.valueOf(e.getMessage()));
    }
  }

  private static Thread start(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  @Override
  public void close() {
    try {
      server.close();
      acceptor.join(); // until then the kernel may still accept for it
      for (Socket socket : sockets) {
        socket.close();
      }
    } catch (IOException e) {
      throw new IllegalStateException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
