package dev.timebound.bigtable;

import com.google.bigtable.v2.ReadRowsResponse;
import com.google.bigtable.v2.ReadRowsResponse.CellChunk;
import com.google.protobuf.ByteString;
import com.google.protobuf.BytesValue;
import com.google.protobuf.StringValue;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;

/** Seeded streams of read responses: right ones, and ones broken in some small way. */
final class ChunkStreams {
  private static final List<String> FAMILIES = List.of("", "cf", "df", "meta");

  private final Random random;
  private final List<ReadRowsResponse> messages = new ArrayList<>();
  private ReadRowsResponse.Builder message = ReadRowsResponse.newBuilder();

  private ChunkStreams(Random random) {
    this.random = random;
  }

  static ByteString bytes(String s) {
    return ByteString.copyFromUtf8(s);
  }

  static CellChunk.Builder chunk() {
    return CellChunk.newBuilder();
  }

  /** The first chunk of a row. */
  static CellChunk.Builder cell(String key, String family, String qualifier) {
    return chunk()
        .setRowKey(bytes(key))
        .setFamilyName(StringValue.of(family))
        .setQualifier(BytesValue.of(bytes(qualifier)));
  }

  static ReadRowsResponse message(CellChunk.Builder... chunks) {
    ReadRowsResponse.Builder message = ReadRowsResponse.newBuilder();
    for (CellChunk.Builder chunk : chunks) {
      message.addChunks(chunk);
    }
    return message.build();
  }

  static ReadRowsResponse marker(String key) {
    return ReadRowsResponse.newBuilder().setLastScannedRowKey(bytes(key)).build();
  }

  /** A stream that keeps the rules: several rows, split values, labels, resets, scan markers. */
  static List<ReadRowsResponse> valid(Random random, boolean reversed) {
    return new ChunkStreams(random).stream(reversed);
  }

  /** The stream with one to three small changes, most of which break it. */
  static List<ReadRowsResponse> mutated(List<ReadRowsResponse> stream, Random random) {
    List<ReadRowsResponse> changed = new ArrayList<>(stream);
    for (int n = 1 + random.nextInt(3); n > 0; n--) {
      mutate(changed, random);
    }
    return changed;
  }

  private List<ReadRowsResponse> stream(boolean reversed) {
    TreeSet<String> keys = new TreeSet<>();
    for (int n = random.nextInt(6); n >= 0; n--) {
      keys.add("k" + random.nextInt(40) + "x".repeat(random.nextInt(3)));
    }
    for (String key : reversed ? keys.descendingSet() : keys) {
      if (random.nextInt(8) == 0) {
        flush();
        messages.add(marker(key));
        continue;
      }
      while (random.nextInt(6) == 0) {
        row(key, false);
        add(chunk().setResetRow(true));
      }
      row(key, true);
    }
    flush();
    return messages;
  }

  private void row(String key, boolean committed) {
    int families = 1 + random.nextInt(2);
    List<CellChunk.Builder> chunks = new ArrayList<>();
    int from = random.nextInt(FAMILIES.size() - families + 1);
    for (String family : FAMILIES.subList(from, from + families)) {
      int cells = 1 + random.nextInt(4);
      for (int i = 0; i < cells; i++) {
        CellChunk.Builder cell = chunk().setTimestampMicros(random.nextInt(3) * 1000L);
        if (i == 0 || random.nextInt(6) == 0) {
          cell.setFamilyName(StringValue.of(family));
        }
        if (cell.hasFamilyName() || random.nextBoolean()) {
          cell.setQualifier(BytesValue.of(bytes(random.nextInt(5) == 0 ? "" : "q" + i)));
        }
        for (int labels = random.nextInt(8) - 5; labels > 0; labels--) {
          cell.addLabels("l" + labels);
        }
        value(cell, chunks);
      }
    }
    chunks.get(0).setRowKey(bytes(key));
    if (!committed) {
      chunks = chunks.subList(0, 1 + random.nextInt(chunks.size()));
    } else if (random.nextInt(6) == 0) {
      chunks.add(chunk().setCommitRow(true));
    } else {
      chunks.get(chunks.size() - 1).setCommitRow(true);
    }
    chunks.forEach(this::add);
  }

  private void value(CellChunk.Builder cell, List<CellChunk.Builder> chunks) {
    byte[] value = new byte[random.nextInt(4) == 0 ? 0 : random.nextInt(30)];
    random.nextBytes(value);
    int parts = value.length < 4 ? 1 : 1 + Math.max(0, random.nextInt(6) - 2);
    if (parts == 1) {
      chunks.add(cell.setValue(ByteString.copyFrom(value)));
      return;
    }
    int at = 0;
    for (int i = 0; i < parts; i++) {
      int to = i == parts - 1 ? value.length : at + 1;
      CellChunk.Builder part = i == 0 ? cell : chunk();
      part.setValue(ByteString.copyFrom(Arrays.copyOfRange(value, at, to)));
      if (i < parts - 1) {
        part.setValueSize(value.length);
      }
      chunks.add(part);
      at = to;
    }
  }

  private void add(CellChunk.Builder chunk) {
    message.addChunks(chunk);
    if (random.nextInt(3) == 0) {
      flush();
    }
  }

  private void flush() {
    if (message.getChunksCount() > 0) {
      messages.add(message.build());
    }
    message = ReadRowsResponse.newBuilder();
  }

  private static void mutate(List<ReadRowsResponse> stream, Random random) {
    if (stream.isEmpty()) {
      return;
    }
    int at = random.nextInt(stream.size());
    ReadRowsResponse.Builder message = stream.get(at).toBuilder();
    if (random.nextInt(6) == 0 || message.getChunksCount() == 0) {
      mutateMessages(stream, at, random);
      return;
    }
    int i = random.nextInt(message.getChunksCount());
    CellChunk.Builder chunk = message.getChunksBuilder(i);
    switch (random.nextInt(16)) {
      case 0 -> message.removeChunks(i);
      case 1 -> message.addChunks(i, chunk.build());
      case 2 -> {
        int j = random.nextInt(message.getChunksCount());
        CellChunk other = message.getChunks(j);
        message.setChunks(j, chunk.build()).setChunks(i, other);
      }
      case 3 -> chunk.clearRowKey();
      case 4 -> chunk.setRowKey(bytes("k" + random.nextInt(40)));
      case 5 -> chunk.clearFamilyName();
      case 6 -> chunk.setFamilyName(StringValue.of("zf"));
      case 7 -> chunk.clearQualifier();
      case 8 -> chunk.setQualifier(BytesValue.of(bytes("zq")));
      case 9 -> chunk.setTimestampMicros(random.nextInt(2) * 7000L);
      case 10 -> chunk.setCommitRow(!chunk.getCommitRow());
      case 11 -> chunk.setResetRow(true);
      case 12 -> message.setChunks(i, chunk().setResetRow(true));
      case 13 -> chunk.setValueSize(random.nextInt(40) - 3);
      case 14 -> chunk.setValue(ByteString.copyFrom(new byte[random.nextInt(20)]));
      default -> chunk.addLabels("mutant");
    }
    stream.set(at, message.build());
  }

  private static void mutateMessages(List<ReadRowsResponse> stream, int at, Random random) {
    switch (random.nextInt(4)) {
      case 0 -> stream.remove(at);
      case 1 -> stream.subList(at, stream.size()).clear();
      case 2 -> stream.add(at, stream.get(random.nextInt(stream.size())));
      default ->
          stream.set(
              at,
              stream.get(at).toBuilder()
                  .setLastScannedRowKey(bytes("k" + random.nextInt(40)))
                  .build());
    }
  }
}
