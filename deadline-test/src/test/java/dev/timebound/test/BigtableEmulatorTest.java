package dev.timebound.test;

import static dev.timebound.test.BigtableTable.cell;
import static dev.timebound.test.BigtableTable.entry;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.ReadRowsResponse;
import com.google.protobuf.ByteString;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.net.Socket;
import java.util.Iterator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(BigtableEmulatorExtension.class)
class BigtableEmulatorTest {

  @Test
  @DisplayName("rows that were loaded can be read back over a channel of one's own, all of them")
  void loadsAndReads(BigtableEmulator emulator) {
    BigtableTable table = emulator.createFreshTable("load", "cf", "other");
    long loaded =
        table.load(
            IntStream.range(0, 2_500)
                .mapToObj(
                    i ->
                        entry(
                            String.format("row-%05d", i),
                            cell("cf", "q", ByteString.copyFromUtf8("v" + i)),
                            cell("other", "q", ByteString.EMPTY))));
    assertThat(loaded).isEqualTo(2_500);
    assertThat(count(emulator, table)).isEqualTo(2_500);
  }

  @Test
  @DisplayName("a row of 5 MB can be written")
  void aLargeRow(BigtableEmulator emulator) {
    BigtableTable table = emulator.createFreshTable("large", "cf");
    byte[] value = new byte[5 << 20];
    table.load(
        IntStream.range(0, 3)
            .mapToObj(i -> entry("row-" + i, cell("cf", "q", ByteString.copyFrom(value)))));
    assertThat(count(emulator, table)).isEqualTo(3);
  }

  @Test
  @DisplayName("a refused row is named")
  void refusedRow(BigtableEmulator emulator, BigtableTable table) {
    assertThatThrownBy(
            () ->
                table.load(
                    IntStream.of(1)
                        .mapToObj(
                            i -> entry("bad-row", cell("no-such-family", "q", ByteString.EMPTY)))))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("bad-row");
  }

  @Test
  @DisplayName("a table's id is taken only once")
  void takenId(BigtableEmulator emulator) {
    BigtableTable table = emulator.createFreshTable("taken", "cf");
    assertThat(table.name()).isEqualTo(BigtableEmulator.INSTANCE + "/tables/" + table.id());
    assertThatThrownBy(() -> emulator.createTable(table.id(), "cf"))
        .isInstanceOfSatisfying(
            StatusRuntimeException.class,
            e -> assertThat(e.getStatus().getCode()).isEqualTo(Status.Code.ALREADY_EXISTS));
  }

  @Test
  @DisplayName("the shared emulator outlives a close, one of its own is gone after it")
  void close(BigtableEmulator shared) {
    shared.close();
    assertThat(shared).isSameAs(BigtableEmulator.shared());
    assertThat(listens(shared.port())).isTrue();

    BigtableEmulator own = BigtableEmulator.start();
    assertThat(own.port()).isNotEqualTo(shared.port());
    assertThat(listens(own.port())).isTrue();
    own.close();
    own.close();
    assertThat(listens(own.port())).isFalse();
  }

  @Nested
  class TheTableOfAClass {
    static String seen = "";

    @Test
    void isOne(BigtableTable table) {
      same(table);
    }

    @Test
    void forAllItsMethods(BigtableTable table) {
      same(table);
    }

    private void same(BigtableTable table) {
      assertThat(table.id()).startsWith("bigtableemulatortest-");
      assertThat(seen).isIn("", table.id());
      seen = table.id();
    }
  }

  private static boolean listens(int port) {
    try (Socket socket = new Socket("localhost", port)) {
      return socket.isConnected();
    } catch (IOException e) {
      return false;
    }
  }

  private static long count(BigtableEmulator emulator, BigtableTable table) {
    ManagedChannel channel =
        ManagedChannelBuilder.forTarget(emulator.hostAndPort())
            .usePlaintext()
            .maxInboundMessageSize(256 << 20)
            .build();
    try {
      Iterator<ReadRowsResponse> responses =
          BigtableGrpc.newBlockingStub(channel)
              .readRows(ReadRowsRequest.newBuilder().setTableName(table.name()).build());
      long rows = 0;
      while (responses.hasNext()) {
        rows +=
            responses.next().getChunksList().stream()
                .filter(ReadRowsResponse.CellChunk::getCommitRow)
                .count();
      }
      return rows;
    } finally {
      channel.shutdownNow();
    }
  }
}
