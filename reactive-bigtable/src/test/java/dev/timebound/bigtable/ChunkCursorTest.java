package dev.timebound.bigtable;

import static dev.timebound.bigtable.ChunkStreams.bytes;
import static dev.timebound.bigtable.ChunkStreams.cell;
import static dev.timebound.bigtable.ChunkStreams.chunk;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.bigtable.v2.ReadRowsResponse;
import com.google.bigtable.v2.ReadRowsResponse.CellChunk;
import com.google.protobuf.ByteString;
import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.UnknownFieldSet;
import com.google.protobuf.WireFormat;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Messages read from their bytes against the generated parser: whatever way a message is written,
 * what it means is the same.
 */
@DisplayName("cell chunks read from bytes as the generated parser reads them")
class ChunkCursorTest {

  static LongStream seeds() {
    return LongStream.range(0, 20);
  }

  private static Merged merge(List<byte[]> messages) {
    Merged merged = new Merged();
    RowMerger merger = new RowMerger(false, null);
    try {
      for (byte[] message : messages) {
        Merged.push(merger, message, merged);
      }
      merger.end();
    } catch (InvalidChunkStreamException e) {
      merged.error = e;
    }
    return merged;
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  @DisplayName("fields in any order, given twice, unknown ones among them, numbers written long")
  void noisy(long seed) throws IOException {
    Random random = new Random(seed);
    for (int i = 0; i < 100; i++) {
      List<ReadRowsResponse> stream = ChunkStreams.valid(random, false);
      if (random.nextBoolean()) {
        stream = ChunkStreams.mutated(stream, random);
      }
      List<byte[]> noisy = new ArrayList<>();
      List<ReadRowsResponse> parsed = new ArrayList<>();
      for (ReadRowsResponse message : stream) {
        byte[] bytes = new Writer(random).message(message);
        noisy.add(bytes);
        parsed.add(ReadRowsResponse.parseFrom(bytes));
      }
      same(merge(noisy), Merged.of(parsed, false));
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  @DisplayName("damaged bytes: an error or what the generated parser makes of them, nothing else")
  void damaged(long seed) {
    Random random = new Random(100 + seed);
    int refused = 0;
    for (int i = 0; i < 300; i++) {
      List<byte[]> damaged = new ArrayList<>();
      for (ReadRowsResponse message : ChunkStreams.valid(random, false)) {
        damaged.add(damage(message.toByteArray(), random));
      }
      List<ReadRowsResponse> parsed = new ArrayList<>();
      try {
        for (byte[] message : damaged) {
          parsed.add(ReadRowsResponse.parseFrom(message));
        }
      } catch (InvalidProtocolBufferException e) {
        refused++;
        merge(damaged);
        continue;
      }
      if (parsed.stream().noneMatch(ChunkCursorTest::hasGroup)) {
        same(merge(damaged), Merged.of(parsed, false));
      }
    }
    assertThat(refused).isBetween(20, 280);
  }

  private static void same(Merged read, Merged expected) {
    assertThat(read.all).isEqualTo(expected.all);
    assertThat(read.fault()).isEqualTo(expected.fault());
  }

  @Test
  @DisplayName("what is no message is a fault, and rows before it are delivered")
  void malformed() {
    ReadRowsResponse row =
        ChunkStreams.message(cell("a", "f", "q").setValue(bytes("v")).setCommitRow(true));
    byte[] good = row.toByteArray();
    List<byte[]> bad =
        List.of(
            new byte[] {0},
            new byte[] {1, 2},
            new byte[] {0x0a, 5, 0},
            new byte[] {0x0a, (byte) 0xff, (byte) 0xff, (byte) 0xff, (byte) 0xff, 0x0f},
            new byte[] {0x1b, 0x1c},
            new byte[] {0x0a, 2, 0x12, 7},
            new byte[] {
              0x78, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1,
            });
    for (byte[] message : bad) {
      Merged merged = merge(List.of(good, message));

      assertThat(merged.rows).hasSize(1);
      assertThat(merged.fault()).as("%s", (Object) message).isEqualTo(ChunkFault.MALFORMED);
      assertThat(merged.error).hasCauseInstanceOf(InvalidProtocolBufferException.class);
    }
  }

  @Test
  @DisplayName("a family or a label that is no UTF-8 is a fault, never a name with holes")
  void utf8() throws IOException {
    for (int field : new int[] {2, 5}) {
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      CodedOutputStream chunk = CodedOutputStream.newInstance(out);
      CellChunk head = (field == 2 ? chunk().setRowKey(bytes("a")) : cell("a", "f", "q")).build();
      chunk.writeRawBytes(head.toByteString());
      chunk.writeByteArray(
          field, field == 2 ? new byte[] {0x0a, 1, (byte) 0xc3} : new byte[] {(byte) 0xc3});
      chunk.writeRawBytes(
          cell("", "", "q").clearFamilyName().setCommitRow(true).build().toByteString());
      chunk.flush();
      byte[] message = nested(1, out.toByteArray());

      assertThat(merge(List.of(message)).fault()).isEqualTo(ChunkFault.MALFORMED);
    }
  }

  @Test
  @DisplayName("a row keeps nothing of the message it came in, and shares its names with the last")
  void copies() {
    byte[] first =
        ChunkStreams.message(cell("a", "f", "q").setValue(bytes("v1")).setCommitRow(true))
            .toByteArray();
    byte[] second =
        ChunkStreams.message(cell("b", "f", "q").setValue(bytes("v2")).setCommitRow(true))
            .toByteArray();
    Merged merged = new Merged();
    RowMerger merger = new RowMerger(false, null);
    Merged.push(merger, first, merged);
    Merged.push(merger, second, merged);

    assertThat(merged.rows.get(0))
        .isEqualTo(Row.of(bytes("a"), List.of(new Cell("f", bytes("q"), 0, bytes("v1")))));
    Cell a = merged.rows.get(0).cells().get(0);
    Cell b = merged.rows.get(1).cells().get(0);
    assertThat(b.family()).isSameAs(a.family());
    assertThat(b.qualifier()).isSameAs(a.qualifier());
  }

  private static byte[] nested(int field, byte[] inner) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    CodedOutputStream coded = CodedOutputStream.newInstance(out);
    coded.writeByteArray(field, inner);
    coded.flush();
    return out.toByteArray();
  }

  private static byte[] damage(byte[] message, Random random) {
    if (message.length == 0 || random.nextInt(3) != 0) {
      return message;
    }
    int at = random.nextInt(message.length);
    if (random.nextInt(4) == 0) {
      return java.util.Arrays.copyOf(message, at);
    }
    byte[] damaged = message.clone();
    damaged[at] = (byte) random.nextInt(256);
    return damaged;
  }

  private static boolean hasGroup(ReadRowsResponse message) {
    return hasGroup(message.getUnknownFields())
        || message.getChunksList().stream()
            .anyMatch(
                c ->
                    hasGroup(c.getUnknownFields())
                        || hasGroup(c.getFamilyName().getUnknownFields())
                        || hasGroup(c.getQualifier().getUnknownFields()));
  }

  private static boolean hasGroup(UnknownFieldSet fields) {
    return fields.asMap().values().stream().anyMatch(f -> !f.getGroupList().isEmpty());
  }

  /** Writes a message in a way no encoder would, that means the same. */
  private static final class Writer {
    private interface Part {
      void write(CodedOutputStream out) throws IOException;
    }

    private final Random random;

    Writer(Random random) {
      this.random = random;
    }

    byte[] message(ReadRowsResponse message) {
      List<Part> parts = new ArrayList<>();
      if (!message.getLastScannedRowKey().isEmpty()) {
        parts.add(o -> bytesField(o, 2, message.getLastScannedRowKey()));
      }
      int markerAt = parts.isEmpty() ? -1 : random.nextInt(message.getChunksCount() + 1);
      List<Part> all = new ArrayList<>();
      for (int i = 0; i <= message.getChunksCount(); i++) {
        if (i == markerAt) {
          all.addAll(parts);
        }
        if (i < message.getChunksCount()) {
          byte[] chunk = chunk(message.getChunks(i));
          all.add(o -> bytesField(o, 1, ByteString.copyFrom(chunk)));
        }
        unknown(all);
      }
      return write(all);
    }

    private byte[] chunk(CellChunk c) {
      List<Part> parts = new ArrayList<>();
      if (!c.getRowKey().isEmpty()) {
        parts.add(o -> twice(o, 1, c.getRowKey()));
      }
      if (c.hasFamilyName()) {
        parts.add(o -> bytesField(o, 2, wrapper(c.getFamilyName().getValueBytes())));
      }
      if (c.hasQualifier()) {
        parts.add(o -> bytesField(o, 3, wrapper(c.getQualifier().getValue())));
      }
      if (c.getTimestampMicros() != 0) {
        parts.add(o -> number(o, 4, c.getTimestampMicros()));
      }
      if (!c.getValue().isEmpty()) {
        parts.add(o -> twice(o, 6, c.getValue()));
      }
      if (c.getValueSize() != 0) {
        parts.add(o -> number(o, 7, c.getValueSize()));
      }
      if (c.getRowStatusCase() != CellChunk.RowStatusCase.ROWSTATUS_NOT_SET) {
        parts.add(
            o -> {
              if (random.nextInt(4) == 0) {
                number(o, 8 + random.nextInt(2), 1);
              }
              boolean reset = c.getRowStatusCase() == CellChunk.RowStatusCase.RESET_ROW;
              number(o, reset ? 8 : 9, c.getResetRow() || c.getCommitRow() ? 1 : 0);
            });
      }
      unknown(parts);
      Collections.shuffle(parts, random);
      // labels keep their order among themselves
      int labelsAt = random.nextInt(parts.size() + 1);
      for (int i = c.getLabelsCount() - 1; i >= 0; i--) {
        ByteString label = c.getLabelsBytes(i);
        parts.add(labelsAt, o -> bytesField(o, 5, label));
      }
      return write(parts);
    }

    private ByteString wrapper(ByteString value) {
      List<Part> parts = new ArrayList<>();
      unknown(parts);
      if (!value.isEmpty() || random.nextBoolean()) {
        parts.add(o -> twice(o, 1, value));
      }
      unknown(parts);
      return ByteString.copyFrom(write(parts));
    }

    private void unknown(List<Part> parts) {
      switch (random.nextInt(12)) {
        case 0 -> parts.add(o -> number(o, 77, random.nextLong()));
        case 1 -> parts.add(o -> o.writeFixed32(78, random.nextInt()));
        case 2 -> parts.add(o -> o.writeFixed64(79, random.nextLong()));
        case 3 -> parts.add(o -> bytesField(o, 80, bytes("unknown")));
        // a known number of another type
        case 4 -> parts.add(o -> o.writeFixed32(1, random.nextInt()));
        default -> {}
      }
    }

    private void twice(CodedOutputStream out, int field, ByteString value) throws IOException {
      if (random.nextInt(6) == 0) {
        bytesField(out, field, bytes("first"));
      }
      bytesField(out, field, value);
    }

    private void number(CodedOutputStream out, int field, long value) throws IOException {
      out.writeTag(field, WireFormat.WIRETYPE_VARINT);
      varint(out, value);
    }

    private void bytesField(CodedOutputStream out, int field, ByteString value) throws IOException {
      out.writeTag(field, WireFormat.WIRETYPE_LENGTH_DELIMITED);
      varint(out, value.size());
      out.writeRawBytes(value);
    }

    /** Sometimes longer than it needs to be. */
    private void varint(CodedOutputStream out, long value) throws IOException {
      int least = 0;
      long rest = value;
      do {
        least++;
        rest >>>= 7;
      } while (rest != 0);
      int length = random.nextInt(4) == 0 ? least + random.nextInt(11 - least) : least;
      rest = value;
      for (int i = 0; i < length; i++, rest >>>= 7) {
        out.writeRawByte((byte) ((rest & 0x7f) | (i < length - 1 ? 0x80 : 0)));
      }
    }

    private static byte[] write(List<Part> parts) {
      try {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        CodedOutputStream coded = CodedOutputStream.newInstance(out);
        for (Part part : parts) {
          part.write(coded);
        }
        coded.flush();
        return out.toByteArray();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
