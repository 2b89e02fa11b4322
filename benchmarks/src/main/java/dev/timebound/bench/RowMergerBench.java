package dev.timebound.bench;

import com.google.bigtable.v2.ReadRowsResponse;
import com.google.bigtable.v2.ReadRowsResponse.CellChunk;
import com.google.cloud.bigtable.data.v2.models.DefaultRowAdapter;
import com.google.cloud.bigtable.data.v2.stub.readrows.RowMerger;
import com.google.protobuf.ByteString;
import com.google.protobuf.BytesValue;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.StringValue;
import dev.timebound.bigtable.MergerUnderTest;
import dev.timebound.bigtable.Row;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.infra.Blackhole;

/**
 * What turning received bytes into rows costs, per row: our merger, which reads the bytes itself;
 * Google's, which takes parsed messages; and that parsing alone. Messages of 10 rows, values of 100
 * bytes; keys, families and qualifiers as a server sends them, each row stating its first column.
 * Run with {@code -prof gc} for bytes per row.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(2)
@Warmup(iterations = 4, time = 1)
@Measurement(iterations = 5, time = 1)
public class RowMergerBench {
  private static final int MESSAGES = 100;
  private static final int ROWS_A_MESSAGE = 10;
  private static final int ROWS = MESSAGES * ROWS_A_MESSAGE;

  @Param({"1", "10"})
  public int cells;

  private final byte[][] messages = new byte[MESSAGES][];
  private final ReadRowsResponse[] parsed = new ReadRowsResponse[MESSAGES];

  @Setup
  public void prepare() throws InvalidProtocolBufferException {
    Random random = new Random(1);
    for (int m = 0; m < MESSAGES; m++) {
      ReadRowsResponse.Builder message = ReadRowsResponse.newBuilder();
      for (int r = 0; r < ROWS_A_MESSAGE; r++) {
        addRow(message, m * ROWS_A_MESSAGE + r, random);
      }
      messages[m] = message.build().toByteArray();
      parsed[m] = ReadRowsResponse.parseFrom(messages[m]);
    }
  }

  private void addRow(ReadRowsResponse.Builder message, int row, Random random) {
    for (int c = 0; c < cells; c++) {
      byte[] value = new byte[100];
      random.nextBytes(value);
      CellChunk.Builder chunk =
          message
              .addChunksBuilder()
              .setQualifier(BytesValue.of(ByteString.copyFromUtf8("column-" + c)))
              .setTimestampMicros(1_700_000_000_000_000L + row)
              .setValue(ByteString.copyFrom(value));
      if (c == 0) {
        chunk
            .setRowKey(ByteString.copyFromUtf8("tenant-0042#event#%09d".formatted(row)))
            .setFamilyName(StringValue.of("cf"));
      }
      chunk.setCommitRow(c == cells - 1);
    }
  }

  /** The floor: messages parsed, nothing merged. */
  @Benchmark
  @OperationsPerInvocation(ROWS)
  public void parse(Blackhole sink) throws InvalidProtocolBufferException {
    for (byte[] message : messages) {
      sink.consume(ReadRowsResponse.parseFrom(message));
    }
  }

  @Benchmark
  @OperationsPerInvocation(ROWS)
  public void timebound(Blackhole sink) {
    MergerUnderTest merger = new MergerUnderTest((Row row) -> sink.consume(row));
    for (byte[] message : messages) {
      merger.push(message);
    }
    merger.end();
  }

  @Benchmark
  @OperationsPerInvocation(ROWS)
  public void google(Blackhole sink) throws InvalidProtocolBufferException {
    RowMerger<com.google.cloud.bigtable.data.v2.models.Row> merger =
        new RowMerger<>(new DefaultRowAdapter().createRowBuilder(), false);
    for (byte[] message : messages) {
      merger.push(ReadRowsResponse.parseFrom(message));
      while (merger.hasFullFrame()) {
        sink.consume(merger.pop());
      }
    }
  }

  /** Google's merger alone, on messages parsed before. */
  @Benchmark
  @OperationsPerInvocation(ROWS)
  public void googleMergeOnly(Blackhole sink) {
    RowMerger<com.google.cloud.bigtable.data.v2.models.Row> merger =
        new RowMerger<>(new DefaultRowAdapter().createRowBuilder(), false);
    for (ReadRowsResponse message : parsed) {
      merger.push(message);
      while (merger.hasFullFrame()) {
        sink.consume(merger.pop());
      }
    }
  }
}
