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
  private volatile String garbled = "";
  private volatile String garbledInto = "";

  private StartupGate(String address, int serverPort) throws IOException {
    this.serverPort = serverPort;
    this.listener = new ServerSocket(0, 50, InetAddress.getByName(address));
    spawn(this::accept);
  }

  static StartupGate before(int serverPort) {
    return before(serverPort, "127.0.0.1");
  }

  static StartupGate before(int serverPort, String address) {
    try {
      return new StartupGate(address, serverPort);
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

  /** From now on has the server read another text of the same length in place of that one. */
  void garble(String text, String instead) {
    if (text.length() != instead.length()) {
      throw new IllegalArgumentException(instead + " (expected: as long as " + text + ")");
    }
    garbled = text;
    garbledInto = instead;
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
        spawn(() -> pump(server, client, false));
        pump(client, server, true);
      }
    }
  }

  private void pump(Socket from, Socket to, boolean garbles) throws IOException {
    try (from;
        to) {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      byte[] buffer = new byte[8192];
      for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
        if (garbles) {
          // what one statement's text is sent in is short, and comes in one piece
          String passed = new String(buffer, 0, n, StandardCharsets.ISO_8859_1);
          out.write(passed.replace(garbled, garbledInto).getBytes(StandardCharsets.ISO_8859_1));
        } else {
          out.write(buffer, 0, n);
        }
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
