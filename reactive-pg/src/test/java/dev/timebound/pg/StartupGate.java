package dev.timebound.pg;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Predicate;

/**
 * Stands before a real server as a pooler does: reads each startup packet, refuses those that it is
 * told to refuse with an error of the protocol, and passes the rest on.
 */
final class StartupGate implements AutoCloseable {
  private static final int CANCEL = 80877102;

  private final ServerSocket listener;
  private final int serverPort;
  private final List<Socket> sockets = new CopyOnWriteArrayList<>();
  private final List<Map<String, String>> packets = new CopyOnWriteArrayList<>();
  private volatile Predicate<Map<String, String>> refused = any -> false;
  private volatile String state = "";
  private volatile String message = "";

  private StartupGate(int serverPort) throws IOException {
    this.serverPort = serverPort;
    this.listener = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
    spawn(this::accept);
  }

  static StartupGate before(int serverPort) {
    try {
      return new StartupGate(serverPort);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  int port() {
    return listener.getLocalPort();
  }

  void refuse(Predicate<Map<String, String>> which, String withState, String withMessage) {
    state = withState;
    message = withMessage;
    refused = which;
  }

  /** The settings of every startup packet that came. */
  List<Map<String, String>> packets() {
    return packets;
  }

  private void accept() throws IOException {
    while (true) {
      Socket client = listener.accept();
      sockets.add(client);
      spawn(() -> serve(client));
    }
  }

  private void serve(Socket client) throws IOException {
    try (client) {
      DataInputStream in = new DataInputStream(client.getInputStream());
      int length = in.readInt();
      byte[] body = in.readNBytes(length - 4);
      int code = new DataInputStream(new java.io.ByteArrayInputStream(body)).readInt();
      if (code != CANCEL) {
        Map<String, String> packet = parse(body);
        packets.add(packet);
        if (refused.test(packet)) {
          client.getOutputStream().write(error());
          return;
        }
      }
      Socket server = new Socket("127.0.0.1", serverPort);
      sockets.add(server);
      try (server) {
        DataOutputStream out = new DataOutputStream(server.getOutputStream());
        out.writeInt(length);
        out.write(body);
        out.flush();
        spawn(() -> pump(server, client));
        pump(client, server);
      }
    }
  }

  private static void pump(Socket from, Socket to) throws IOException {
    try (from;
        to) {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      byte[] buffer = new byte[8192];
      for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
        out.write(buffer, 0, n);
        out.flush();
      }
    }
  }

  private static Map<String, String> parse(byte[] body) {
    String[] parts = new String(body, 4, body.length - 4, StandardCharsets.UTF_8).split("\0");
    Map<String, String> packet = new LinkedHashMap<>();
    for (int i = 0; i + 1 < parts.length; i += 2) {
      packet.put(parts[i], parts[i + 1]);
    }
    return packet;
  }

  private byte[] error() throws IOException {
    ByteArrayOutputStream fields = new ByteArrayOutputStream();
    for (String field : List.of("SFATAL", "VFATAL", "C" + state, "M" + message, "")) {
      fields.write(field.getBytes(StandardCharsets.UTF_8));
      fields.write(0);
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.write('E');
    out.writeInt(4 + fields.size());
    fields.writeTo(out);
    return bytes.toByteArray();
  }

  private interface Work {
    void run() throws IOException;
  }

  private static void spawn(Work work) {
    Thread thread =
        new Thread(
            () -> {
              try {
                work.run();
              } catch (IOException closed) {
                // the end of that connection
              }
            },
            "startup-gate");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void close() {
    try {
      listener.close();
      for (Socket socket : sockets) {
        socket.close();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
