package dev.timebound.bench;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** Lets another JVM ask this one what it has used so far: one answer a connection. */
final class UsagePort {
  private UsagePort() {}

  /** Answers until the process ends; gives the port of the loopback. */
  static int open() throws IOException {
    ServerSocket server = new ServerSocket(0, 16, InetAddress.getLoopbackAddress());
    Thread thread = new Thread(() -> answer(server), "usage-port");
    thread.setDaemon(true);
    thread.start();
    return server.getLocalPort();
  }

  private static void answer(ServerSocket server) {
    try {
      while (true) {
        try (Socket socket = server.accept();
            DataOutputStream out = new DataOutputStream(socket.getOutputStream())) {
          Usage now = Usage.now();
          out.writeLong(now.cpuNanos());
          out.writeLong(now.allocatedBytes());
          out.writeLong(now.wallNanos());
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** What the process at that port has used so far; its clock is its own. */
  static Usage ask(int port) throws IOException {
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port);
        DataInputStream in = new DataInputStream(socket.getInputStream())) {
      return new Usage(in.readLong(), in.readLong(), in.readLong());
    }
  }
}
