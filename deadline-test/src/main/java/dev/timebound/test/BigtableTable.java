package dev.timebound.test;

import com.google.bigtable.v2.BigtableGrpc;
import com.google.bigtable.v2.MutateRowRequest;
import com.google.bigtable.v2.MutateRowsRequest;
import com.google.bigtable.v2.MutateRowsResponse;
import com.google.bigtable.v2.Mutation;
import com.google.protobuf.ByteString;
import com.google.rpc.Status;
import io.grpc.ManagedChannel;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * A table of a {@link BigtableEmulator}, with what a test needs to fill it. All methods block; any
 * thread may call them.
 */
public final class BigtableTable {
  // Google's own limit on a request's mutations is 100,000 and the emulator holds a batch in
  // memory: well below both.
  private static final int BATCH_ENTRIES = 1_000;
  private static final long BATCH_BYTES = 4L << 20;

  private final BigtableGrpc.BigtableBlockingStub stub;
  private final String instance;
  private final String id;

  BigtableTable(ManagedChannel channel, String instance, String id) {
    this.stub = BigtableGrpc.newBlockingStub(channel);
    this.instance = instance;
    this.id = id;
  }

  /** The id within the instance: {@code orders}. */
  public String id() {
    return id;
  }

  /** The full name: {@code projects/…/instances/…/tables/orders}. */
  public String name() {
    return instance + "/tables/" + id;
  }

  /** Writes one cell, at timestamp 0, over what stood there. */
  public void put(String key, String family, String qualifier, String value) {
    put(entry(key, cell(family, qualifier, ByteString.copyFromUtf8(value))));
  }

  /** Writes one row. */
  public void put(MutateRowsRequest.Entry row) {
    stub.withDeadlineAfter(30, TimeUnit.SECONDS)
        .mutateRow(
            MutateRowRequest.newBuilder()
                .setTableName(name())
                .setRowKey(row.getRowKey())
                .addAllMutations(row.getMutationsList())
                .build());
  }

  /**
   * Writes all rows, in batches, and returns how many. Rows are taken from the stream as batches
   * fill, so it may be large.
   *
   * @throws IllegalStateException at the first row that the emulator refuses, named by its key;
   *     earlier ones are written
   */
  public long load(Stream<MutateRowsRequest.Entry> rows) {
    long written = 0;
    List<MutateRowsRequest.Entry> batch = new ArrayList<>();
    long bytes = 0;
    Iterator<MutateRowsRequest.Entry> all = rows.iterator();
    while (all.hasNext()) {
      MutateRowsRequest.Entry row = all.next();
      batch.add(row);
      bytes += row.getSerializedSize();
      if (batch.size() == BATCH_ENTRIES || bytes >= BATCH_BYTES || !all.hasNext()) {
        write(batch);
        written += batch.size();
        batch.clear();
        bytes = 0;
      }
    }
    return written;
  }

  /**
   * One row for {@link #load} and {@link #put(MutateRowsRequest.Entry)}: a key and its {@link #cell
   * cells}.
   */
  public static MutateRowsRequest.Entry entry(String key, Mutation... cells) {
    return MutateRowsRequest.Entry.newBuilder()
        .setRowKey(ByteString.copyFromUtf8(key))
        .addAllMutations(List.of(cells))
        .build();
  }

  /** One cell, at timestamp 0. */
  public static Mutation cell(String family, String qualifier, ByteString value) {
    return Mutation.newBuilder()
        .setSetCell(
            Mutation.SetCell.newBuilder()
                .setFamilyName(family)
                .setColumnQualifier(ByteString.copyFromUtf8(qualifier))
                .setTimestampMicros(0)
                .setValue(value))
        .build();
  }

  private void write(List<MutateRowsRequest.Entry> batch) {
    MutateRowsRequest request =
        MutateRowsRequest.newBuilder().setTableName(name()).addAllEntries(batch).build();
    Iterator<MutateRowsResponse> responses =
        stub.withDeadlineAfter(60, TimeUnit.SECONDS).mutateRows(request);
    int answered = 0;
    while (responses.hasNext()) {
      for (MutateRowsResponse.Entry entry : responses.next().getEntriesList()) {
        answered++;
        Status status = entry.getStatus();
        if (status.getCode() != 0) {
          String key = batch.get((int) entry.getIndex()).getRowKey().toStringUtf8();
          throw new IllegalStateException(
              "row "
                  + key
                  + " of "
                  + name()
                  + " was refused: code "
                  + status.getCode()
                  + " "
                  + status.getMessage());
        }
      }
    }
    if (answered != batch.size()) {
      throw new IllegalStateException(
          "the emulator answered for " + answered + " of " + batch.size() + " rows of " + name());
    }
  }
}
