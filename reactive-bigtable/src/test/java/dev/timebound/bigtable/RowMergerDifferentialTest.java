package dev.timebound.bigtable;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.bigtable.v2.ReadRowsResponse;
import com.google.bigtable.v2.ReadRowsResponse.CellChunk;
import com.google.cloud.bigtable.data.v2.models.DefaultRowAdapter;
import com.google.cloud.bigtable.data.v2.models.RowAdapter.RowBuilder;
import com.google.cloud.bigtable.data.v2.models.RowCell;
import com.google.protobuf.ByteString;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.LongStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Our merger against Google's own over seeded random streams: the same rows, the same scan markers,
 * an error where and only where the other has one. Google's runs twice: with its own row type,
 * which sorts a row's cells by family, and with one that keeps the server's order as ours does.
 *
 * <p>Ours is stricter on purpose in three points, each a stream no right server sends: a piece of a
 * split value that names another row; a split value already longer than announced, when a reset
 * follows (Google's looks only once the value ends); a reset that carries labels.
 */
@DisplayName("merging agrees with Google's own merger")
class RowMergerDifferentialTest {
  private static final int SEEDS = 20;
  private static final int STREAMS = 250;

  /** What Google's merger made of a stream. */
  private record Theirs(List<Row> rows, boolean error) {}

  static LongStream seeds() {
    return LongStream.range(0, SEEDS);
  }

  @ParameterizedTest(name = "right streams, seed {0}")
  @MethodSource("seeds")
  void right(long seed) {
    Random random = new Random(seed);
    for (int i = 0; i < STREAMS; i++) {
      boolean reversed = random.nextBoolean();
      List<ReadRowsResponse> stream = ChunkStreams.valid(random, reversed);
      Merged ours = Merged.of(stream, reversed);

      assertThat(ours.error).as("stream %s", stream).isNull();
      assertThat(ours.all).isEqualTo(google(stream, reversed, new InOrder()).rows);
      assertThat(ours.all.stream().map(RowMergerDifferentialTest::byFamily))
          .isEqualTo(googleDefault(stream, reversed).rows);
    }
  }

  @ParameterizedTest(name = "broken streams, seed {0}")
  @MethodSource("seeds")
  void broken(long seed) {
    Random random = new Random(1000 + seed);
    for (int i = 0; i < 2 * STREAMS; i++) {
      boolean reversed = random.nextInt(4) == 0;
      List<ReadRowsResponse> stream =
          ChunkStreams.mutated(
              ChunkStreams.valid(random, reversed ^ random.nextInt(30) == 0), random);
      agree(stream, reversed);
    }
  }

  @Test
  @DisplayName("the broken streams find every fault, and whole rows before each")
  void covered() {
    Map<ChunkFault, Integer> faults = new EnumMap<>(ChunkFault.class);
    int rowsBefore = 0;
    int unbroken = 0;
    Random random = new Random(7);
    for (int i = 0; i < 20 * STREAMS; i++) {
      Merged ours =
          Merged.of(ChunkStreams.mutated(ChunkStreams.valid(random, false), random), false);
      if (ours.error == null) {
        unbroken++;
      } else {
        faults.merge(ours.error.fault(), 1, Integer::sum);
        rowsBefore += ours.rows.isEmpty() ? 0 : 1;
      }
    }
    Set<ChunkFault> all = EnumSet.allOf(ChunkFault.class);
    // bytes that are no message at all are ChunkCursorTest's
    all.remove(ChunkFault.MALFORMED);
    assertThat(faults.keySet()).isEqualTo(all);
    assertThat(rowsBefore).isGreaterThan(STREAMS);
    assertThat(unbroken).isGreaterThan(STREAMS);
  }

  private static void agree(List<ReadRowsResponse> stream, boolean reversed) {
    Merged ours = Merged.of(stream, reversed);
    Theirs theirs = google(stream, reversed, new InOrder());
    boolean agree = ours.all.equals(theirs.rows) && ours.error != null == theirs.error;
    if (ours.error != null && !agree) {
      // deliberately stricter: a prefix of their rows, and agreement once the excess is taken out
      assertThat(theirs.rows.subList(0, ours.all.size())).isEqualTo(ours.all);
      if (ours.fault() == ChunkFault.VALUE_TOO_LONG) {
        assertThat(stream)
            .anyMatch(m -> m.getChunksList().stream().anyMatch(CellChunk::getResetRow));
        return;
      }
      assertThat(ours.fault()).isIn(ChunkFault.OTHER_ROW, ChunkFault.RESET_WITH_DATA);
      List<ReadRowsResponse> forgiven = forgive(stream);
      assertThat(forgiven).isNotEqualTo(stream);
      agree(forgiven, reversed);
      return;
    }
    assertThat(ours.all).as("stream %s", stream).isEqualTo(theirs.rows);
    assertThat(ours.error != null).as("%s of %s", ours.error, stream).isEqualTo(theirs.error);
    if (ours.all.stream().noneMatch(RowMergerDifferentialTest::familyComesAgain)) {
      Theirs sorted = googleDefault(stream, reversed);
      assertThat(ours.all.stream().map(RowMergerDifferentialTest::byFamily)).isEqualTo(sorted.rows);
      assertThat(sorted.error).isEqualTo(theirs.error);
    }
  }

  /** Takes out what Google's merger does not look at. */
  private static List<ReadRowsResponse> forgive(List<ReadRowsResponse> stream) {
    List<ReadRowsResponse> forgiven = new ArrayList<>();
    boolean inValue = false;
    for (ReadRowsResponse message : stream) {
      ReadRowsResponse.Builder copy = message.toBuilder();
      for (CellChunk.Builder chunk : copy.getChunksBuilderList()) {
        if (chunk.getResetRow()) {
          chunk.clearLabels();
          inValue = false;
        } else {
          if (inValue) {
            chunk.clearRowKey();
          }
          inValue = chunk.getValueSize() > 0;
        }
      }
      forgiven.add(copy.build());
    }
    return forgiven;
  }

  /** Google's row type loses the first cells of a family that comes again after another. */
  private static boolean familyComesAgain(Row row) {
    Set<String> seen = new HashSet<>();
    String family = null;
    for (Cell cell : row.cells()) {
      if (!cell.family().equals(family) && !seen.add(cell.family())) {
        return true;
      }
      family = cell.family();
    }
    return false;
  }

  private static Row byFamily(Row row) {
    return Row.of(
        row.key(), row.cells().stream().sorted(Comparator.comparing(Cell::family)).toList());
  }

  private static Theirs googleDefault(List<ReadRowsResponse> stream, boolean reversed) {
    return merge(
        new com.google.cloud.bigtable.data.v2.stub.readrows.RowMerger<>(
            new DefaultRowAdapter().createRowBuilder(), reversed),
        stream,
        RowMergerDifferentialTest::ofTheirs);
  }

  private static Theirs google(
      List<ReadRowsResponse> stream, boolean reversed, RowBuilder<Row> builder) {
    return merge(
        new com.google.cloud.bigtable.data.v2.stub.readrows.RowMerger<>(builder, reversed),
        stream,
        row -> row);
  }

  private static <T> Theirs merge(
      com.google.cloud.bigtable.data.v2.stub.readrows.RowMerger<T> merger,
      List<ReadRowsResponse> stream,
      java.util.function.Function<T, Row> toRow) {
    List<Row> rows = new ArrayList<>();
    boolean error = false;
    try {
      for (ReadRowsResponse message : stream) {
        merger.push(message);
      }
    } catch (RuntimeException e) {
      error = true;
    }
    while (merger.hasFullFrame()) {
      rows.add(toRow.apply(merger.pop()));
    }
    return new Theirs(rows, error || merger.hasPartialFrame());
  }

  private static Row ofTheirs(com.google.cloud.bigtable.data.v2.models.Row row) {
    List<Cell> cells = new ArrayList<>();
    for (RowCell c : row.getCells()) {
      cells.add(
          new Cell(c.getFamily(), c.getQualifier(), c.getTimestamp(), c.getValue(), c.getLabels()));
    }
    return Row.of(row.getKey(), cells);
  }

  /** Builds our rows for Google's merger, cells in the server's order. */
  private static final class InOrder implements RowBuilder<Row> {
    private ByteString key = ByteString.EMPTY;
    private final List<Cell> cells = new ArrayList<>();
    private Cell cell = new Cell("", ByteString.EMPTY, 0, ByteString.EMPTY);

    @Override
    public void startRow(ByteString key) {
      this.key = key;
    }

    @Override
    public void startCell(
        String family, ByteString qualifier, long timestamp, List<String> labels, long size) {
      cell = new Cell(family, qualifier, timestamp, ByteString.EMPTY, labels);
    }

    @Override
    public void cellValue(ByteString value) {
      cell =
          new Cell(
              cell.family(),
              cell.qualifier(),
              cell.timestampMicros(),
              cell.value().concat(value),
              cell.labels());
    }

    @Override
    public void finishCell() {
      cells.add(cell);
    }

    @Override
    public Row finishRow() {
      return Row.of(key, List.copyOf(cells));
    }

    @Override
    public void reset() {
      cells.clear();
    }

    @Override
    public Row createScanMarkerRow(ByteString key) {
      return Row.of(key, List.of());
    }
  }
}
