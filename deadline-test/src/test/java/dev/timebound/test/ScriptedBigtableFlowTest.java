package dev.timebound.test;

import static dev.timebound.test.Eventually.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.bigtable.v2.ReadRowsResponse;
import com.google.protobuf.ByteString;
import dev.timebound.test.ScriptedCall.End;
import io.grpc.Status;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class ScriptedBigtableFlowTest {

  /** The same message for ever. */
  private static Iterable<ReadRowsResponse> endless(int bytes) {
    ReadRowsResponse message = Rows.message(Rows.row("k", ByteString.copyFrom(new byte[bytes])));
    return Collections.nCopies(Integer.MAX_VALUE, message);
  }

  @Test
  @DisplayName("an unread stream is pushed its window to the byte, and the count says so")
  void pushed() throws Exception {
    try (ScriptedBigtable server = ScriptedBigtable.start();
        Caller client = new Caller(server.hostAndPort())) {
      server.readRows().always(Script.start().messages(endless(1_000)));
      Caller.Call unread = client.readRows(0);
      ScriptedCall seen = server.readRows().awaitCall(1);
      seen.awaitBytesPushed(Caller.WINDOW);
      client.ping();
      client.ping();
      assertThat(seen.bytesPushed()).isEqualTo(Caller.WINDOW);
      assertThat(server.connections().get(0).bytesPushed()).isEqualTo(Caller.WINDOW + 2 * 5);
      unread.call.request(1_000);
      seen.awaitBytesPushed(Caller.WINDOW + 500_000);
      assertThat(server.connections().get(0).windowUpdatesReceived()).isPositive();
      unread.call.cancel("enough", null);
      server.awaitOpenStreams(0);
    }
  }

  @Test
  @DisplayName("messages are taken from their source only as those before them leave")
  void lazily() throws Exception {
    try (ScriptedBigtable server = ScriptedBigtable.start();
        Caller client = new Caller(server.hostAndPort())) {
      AtomicInteger taken = new AtomicInteger();
      ReadRowsResponse message = Rows.message(Rows.row("k", ByteString.copyFrom(new byte[1_000])));
      Stream<ReadRowsResponse> source =
          Stream.generate(
              () -> {
                taken.incrementAndGet();
                return message;
              });
      server.readRows().next(Script.start().messages(source::iterator));
      client.readRows(0);
      ScriptedCall seen = server.readRows().awaitCall(1);
      seen.awaitBytesPushed(Caller.WINDOW);
      client.ping();
      client.ping();
      assertThat(taken).hasValueBetween(50, Caller.WINDOW / 1_000 + 1);
    }
  }

  @Test
  @DisplayName("calls beyond maxConcurrentStreams do not arrive until one ends")
  void maxConcurrentStreams() throws Exception {
    try (ScriptedBigtable server = ScriptedBigtable.builder().maxConcurrentStreams(2).start();
        Caller client = new Caller(server.hostAndPort())) {
      client.ping(); // from here on the client knows the limit
      Gate gate = new Gate();
      server.readRows().always(Script.start().headers().hold(gate).rows("a").ok());
      List<Caller.Call> calls = new ArrayList<>();
      for (int i = 0; i < 5; i++) {
        calls.add(client.readRows(2));
      }
      gate.awaitHeld(2);
      assertThat(server.readRows().calls()).hasSize(2);
      gate.open();
      for (Caller.Call call : calls) {
        assertThat(call.awaitCode()).isEqualTo(Status.Code.OK);
      }
      assertThat(server.connections()).hasSize(1);
      assertThat(server.connections().get(0).peakStreams()).isEqualTo(2);
    }
  }

  @Test
  @DisplayName("frames may come late, after the client's reset, and the connection lives")
  void lateFrames() throws Exception {
    try (ScriptedBigtable server = ScriptedBigtable.start();
        Caller client = new Caller(server.hostAndPort())) {
      Script late = Script.start().headers().rows("late", "later").rows("latest").ok();
      server.readRows().next(Script.start().whenReset(late).silence());
      Script lateData =
          Script.start().rows("late").message(Rows.message(Rows.wideRow("wide", 10, 1_000)));
      server.readRows().next(Script.start().whenReset(lateData).headers());
      for (int i = 1; i <= 2; i++) {
        Caller.Call call = client.readRows(5);
        ScriptedCall seen = server.readRows().awaitCall(i);
        long before = server.connections().get(0).bytesPushed();
        call.call.cancel("enough", null);
        seen.awaitEnd(End.RESET_BY_CLIENT);
        eventually("late bytes left", () -> server.connections().get(0).bytesPushed() > before);
        client.ping();
        assertThat(call.messages).isEmpty();
        if (i == 1) {
          // grpc-java resets a closed stream anew for each frame of it: headers, two messages,
          // trailers
          eventually("all four came in late", () -> server.resetsReceived() == 1 + 4);
        }
      }
      assertThat(server.connections()).hasSize(1);
      assertThat(server.goAwaysReceived()).isZero();
      assertThat(server.resetsReceived())
          .as("grpc-java resets again what comes late")
          .isGreaterThanOrEqualTo(2);
    }
  }

  @Test
  @DisplayName(
      "hundreds of streams are cancelled at once and the connection lives; with maxResets it does not")
  void manyResets() throws Exception {
    try (ScriptedBigtable server = ScriptedBigtable.start();
        Caller client = new Caller(server.hostAndPort())) {
      cancelMany(server, client, 300);
      server.awaitOpenStreams(0);
      client.ping();
      assertThat(server.resetsReceived()).isEqualTo(300);
      assertThat(server.connections()).hasSize(1);
    }
    try (ScriptedBigtable server = ScriptedBigtable.builder().maxResets(200, 30).start();
        Caller client = new Caller(server.hostAndPort())) {
      cancelMany(server, client, 300);
      eventually("the first connection is closed", () -> !server.connections().get(0).isOpen());
    }
  }

  private static void cancelMany(ScriptedBigtable server, Caller client, int calls) {
    server.readRows().always(Script.start().headers());
    List<Caller.Call> open = new ArrayList<>();
    for (int i = 0; i < calls; i++) {
      open.add(client.readRows(1));
    }
    // headers that cross a cancel are reset once more
    open.forEach(Caller.Call::awaitHeaders);
    server.awaitOpenStreams(calls);
    open.forEach(call -> call.call.cancel("enough", null));
  }

  @Test
  @DisplayName("PINGs are counted, answered, and left unanswered where a test wants that")
  void pings() throws Exception {
    try (ScriptedBigtable answering = ScriptedBigtable.start();
        ScriptedBigtable mute = ScriptedBigtable.builder().answerPings(false).start()) {
      assertThat(pingAcked(answering, 20_000)).isTrue();
      assertThat(answering.pingsReceived()).isEqualTo(1);
      assertThat(pingAcked(mute, 500)).isFalse();
      eventually("it came", () -> mute.pingsReceived() == 1);
    }
  }

  @Test
  @DisplayName("a connection that is reset is reset on the wire, one that is closed ends in order")
  void resetAndClose() throws Exception {
    try (ScriptedBigtable server = ScriptedBigtable.start();
        Socket reset = handMade(server);
        Socket closed = handMade(server)) {
      eventually("both are there", () -> server.openConnections() == 2);
      server.connections().get(0).reset();
      server.connections().get(1).close();
      server.awaitOpenConnections(0);
      assertThatThrownBy(() -> reset.getInputStream().readAllBytes())
          .isInstanceOf(SocketException.class)
          .hasMessage("Connection reset");
      assertThat(closed.getInputStream().readAllBytes()).isNotEmpty();
    }
  }

  @Test
  @DisplayName("settings reach the client; out of range they are refused by name")
  void settings() throws Exception {
    try (ScriptedBigtable server =
            ScriptedBigtable.builder().maxConcurrentStreams(7).initialWindow(1_234).start();
        Socket socket = handMade(server)) {
      DataInputStream in = new DataInputStream(socket.getInputStream());
      int length = in.readUnsignedByte() << 16 | in.readUnsignedShort();
      in.skipNBytes(6);
      Map<Integer, Integer> settings = new HashMap<>();
      for (int i = 0; i < length / 6; i++) {
        settings.put(in.readUnsignedShort(), in.readInt());
      }
      assertThat(settings).containsEntry(3, 7).containsEntry(4, 1_234);
    }
    ScriptedBigtable.Builder builder = ScriptedBigtable.builder();
    assertThatThrownBy(() -> builder.initialWindow(0))
        .hasMessage("initialWindow: 0 (expected: > 0)");
    assertThatThrownBy(() -> builder.maxConcurrentStreams(-1))
        .hasMessage("maxConcurrentStreams: -1 (expected: 0..2^32-1)");
    assertThatThrownBy(() -> builder.maxResets(0, 1))
        .hasMessage("maxResets: 0 in 1 s (expected: both > 0)");
  }

  /** HTTP/2 by hand: preface, empty SETTINGS; the server's own come back. */
  private static Socket handMade(ScriptedBigtable server) throws IOException {
    Socket socket = new Socket("127.0.0.1", server.port());
    OutputStream out = socket.getOutputStream();
    out.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
    out.write(new byte[] {0, 0, 0, 4, 0, 0, 0, 0, 0});
    return socket;
  }

  /** Sends a PING, then reads frames until its ack or that long of nothing. */
  private static boolean pingAcked(ScriptedBigtable server, int patience) throws IOException {
    try (Socket socket = handMade(server)) {
      socket.setSoTimeout(patience);
      socket
          .getOutputStream()
          .write(new byte[] {0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8});
      DataInputStream in = new DataInputStream(socket.getInputStream());
      while (true) {
        int length = in.readUnsignedByte() << 16 | in.readUnsignedShort();
        int type = in.readUnsignedByte();
        int flags = in.readUnsignedByte();
        in.readInt();
        in.skipNBytes(length);
        if (type == 6 && flags == 1) {
          return true;
        }
      }
    } catch (SocketTimeoutException nothing) {
      return false;
    }
  }

  @Test
  @DisplayName("a row that is begun, taken back and sent again is sent as scripted")
  void resetRow() throws Exception {
    try (ScriptedBigtable server = ScriptedBigtable.start();
        Caller client = new Caller(server.hostAndPort())) {
      server
          .readRows()
          .always(
              Script.start().chunks(Rows.begun("a", "1"), Rows.reset(), Rows.row("a", "2")).ok());
      Caller.Call call = client.readRows(2);
      assertThat(call.awaitCode()).isEqualTo(Status.Code.OK);
      assertThat(call.messages.get(0).getChunks(0).getCommitRow()).isFalse();
      assertThat(call.messages.get(0).getChunks(1).getResetRow()).isTrue();
      assertThat(call.messages.get(0).getChunks(2).getCommitRow()).isTrue();
    }
  }
}
