package dev.timebound.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.PingAndWarmRequest;
import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.ReadRowsResponse;
import com.google.bigtable.v2.RowRange;
import com.google.bigtable.v2.RowSet;
import com.google.common.collect.ImmutableList;
import com.google.protobuf.ByteString;
import dev.timebound.demo.bigtable.DemoTable;
import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class FastServerTest {
  private static Server server;
  private static ManagedChannel channel;

  private final DemoTable demo = new DemoTable(Replies.DEMO_ROWS);

  @BeforeAll
  static void start() throws Exception {
    server = FastServer.start(new Replies());
    channel = NettyChannelBuilder.forAddress("localhost", server.getPort()).usePlaintext().build();
  }

  @AfterAll
  static void stop() throws Exception {
    channel.shutdownNow();
    server.shutdownNow();
    assertThat(channel.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
    assertThat(server.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  @DisplayName("a whole scan is 10,000 rows, 10 a message, of 1 or of 10 cells of 100 bytes")
  void scans() {
    assertThat(scan(Replies.NARROW)).isEqualTo(List.of(1_000L, 10_000L, 10_000L, 1_000_000L));
    assertThat(scan(Replies.WIDE)).isEqualTo(List.of(1_000L, 10_000L, 100_000L, 10_000_000L));
  }

  @Test
  @DisplayName("of the demo's table a key, a range and a limit give just the rows asked for")
  void parts() {
    assertThat(keys(RowSet.newBuilder().addRowKeys(key(7)), 0)).containsExactly(demo.key(7));
    assertThat(
            keys(range(RowRange.newBuilder().setStartKeyClosed(key(3)).setEndKeyOpen(key(6))), 0))
        .containsExactly(demo.key(3), demo.key(4), demo.key(5));
    assertThat(
            keys(range(RowRange.newBuilder().setStartKeyOpen(key(3)).setEndKeyClosed(key(5))), 0))
        .containsExactly(demo.key(4), demo.key(5));
    assertThat(
            keys(range(RowRange.newBuilder().setStartKeyClosed(key(3)).setEndKeyOpen(key(900))), 2))
        .containsExactly(demo.key(3), demo.key(4));
    int last = Replies.DEMO_ROWS - 1;
    assertThat(
            keys(
                range(
                    RowRange.newBuilder()
                        .setStartKeyClosed(key(last))
                        .setEndKeyOpen(key(Replies.DEMO_ROWS))),
                0))
        .containsExactly(demo.key(last));
    assertThat(keys(range(RowRange.newBuilder().setStartKeyOpen(key(last))), 0)).isEmpty();
  }

  @Test
  @DisplayName("the rows of the demo's table have the content that it checks for")
  void content() {
    ReadRowsRequest request =
        request(Replies.DEMO).setRows(RowSet.newBuilder().addRowKeys(key(1_995))).build();
    ByteString value = ByteString.EMPTY;
    ReadRowsResponse row = stub().readRows(request).next();
    for (ReadRowsResponse.CellChunk chunk : row.getChunksList()) {
      value = value.concat(chunk.getValue());
    }

    assertThat(row.getChunksCount()).isEqualTo(4);
    assertThat(demo.holds(1_995, value)).isTrue();
  }

  @Test
  @DisplayName("PingAndWarm is answered, an unknown table refused")
  void others() {
    assertThat(stub().pingAndWarm(PingAndWarmRequest.getDefaultInstance())).isNotNull();
    assertThatThrownBy(() -> stub().readRows(request("nonsense").build()).hasNext())
        .isInstanceOf(StatusRuntimeException.class)
        .hasMessageContaining("nonsense");
  }

  private List<Long> scan(String table) {
    long[] figures = new long[4];
    stub()
        .readRows(request(table).build())
        .forEachRemaining(
            message -> {
              figures[0]++;
              for (ReadRowsResponse.CellChunk chunk : message.getChunksList()) {
                figures[1] += chunk.getCommitRow() ? 1 : 0;
                figures[2]++;
                figures[3] += chunk.getValue().size();
              }
            });
    return List.of(figures[0], figures[1], figures[2], figures[3]);
  }

  private List<String> keys(RowSet.Builder rows, long limit) {
    return ImmutableList.copyOf(
            stub().readRows(request(Replies.DEMO).setRows(rows).setRowsLimit(limit).build()))
        .stream()
        .map(message -> message.getChunks(0).getRowKey().toStringUtf8())
        .toList();
  }

  private static RowSet.Builder range(RowRange.Builder range) {
    return RowSet.newBuilder().addRowRanges(range);
  }

  private ByteString key(int index) {
    return ByteString.copyFromUtf8(demo.key(index));
  }

  private static ReadRowsRequest.Builder request(String table) {
    return ReadRowsRequest.newBuilder().setTableName("projects/p/instances/i/tables/" + table);
  }

  private static BigtableGrpc.BigtableBlockingStub stub() {
    return BigtableGrpc.newBlockingStub(channel).withDeadlineAfter(30, TimeUnit.SECONDS);
  }
}
