package dev.timebound.test;

import com.google.bigtable.admin.v2.ColumnFamily;
import com.google.bigtable.admin.v2.CreateTableRequest;
import com.google.bigtable.admin.v2.Table;
import com.google.cloud.bigtable.emulator.v2.Emulator;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.MethodDescriptor;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Google's own Bigtable emulator as a process on a free port of this machine, with what a test
 * needs to fill it.
 *
 * <p>The binary comes with a Maven artifact, so nothing has to be installed. It is right but slow
 * (10 to 20 thousand rows a second) and never sends resets, scan markers or GOAWAY: measure against
 * something else, and script such a server with {@code ScriptedBigtable}.
 *
 * <p>All methods block and may be called from any thread; none belongs on an event loop. A failed
 * call throws the gRPC {@link io.grpc.StatusRuntimeException}.
 */
public final class BigtableEmulator implements AutoCloseable {
  /** The project under which {@link #createTable} puts its tables. The emulator takes any. */
  public static final String PROJECT_ID = "timebound";

  /** The instance, by its short id, under which {@link #createTable} puts its tables. */
  public static final String INSTANCE_ID = "test";

  /** The full name of that instance. */
  public static final String INSTANCE = "projects/" + PROJECT_ID + "/instances/" + INSTANCE_ID;

  private static final int LARGEST_MESSAGE = 256 << 20;

  // The admin service's generated stub is not on Maven Central in this release; its messages are.
  private static final MethodDescriptor<CreateTableRequest, Table> CREATE_TABLE =
      MethodDescriptor.<CreateTableRequest, Table>newBuilder()
          .setType(MethodDescriptor.MethodType.UNARY)
          .setFullMethodName(
              MethodDescriptor.generateFullMethodName(
                  "google.bigtable.admin.v2.BigtableTableAdmin", "CreateTable"))
          .setRequestMarshaller(ProtoUtils.marshaller(CreateTableRequest.getDefaultInstance()))
          .setResponseMarshaller(ProtoUtils.marshaller(Table.getDefaultInstance()))
          .build();

  private final Emulator emulator;
  private final boolean shared;
  private final int port;
  private final ManagedChannel channel;
  private final AtomicBoolean closed = new AtomicBoolean();
  private final AtomicInteger tables = new AtomicInteger();

  private BigtableEmulator(Emulator emulator, boolean shared) {
    this.emulator = emulator;
    this.shared = shared;
    this.port = emulator.getPort();
    this.channel =
        ManagedChannelBuilder.forAddress("localhost", port)
            .usePlaintext()
            .maxInboundMessageSize(LARGEST_MESSAGE)
            .build();
  }

  /**
   * Starts an emulator of its own. It takes about half a second.
   *
   * @throws IllegalStateException when the process does not come up
   */
  public static BigtableEmulator start() {
    return launch(false);
  }

  private static BigtableEmulator launch(boolean shared) {
    try {
      Emulator emulator = Emulator.createBundled();
      emulator.start();
      return new BigtableEmulator(emulator, shared);
    } catch (IOException e) {
      throw new UncheckedIOException("the Bigtable emulator did not start", e);
    } catch (TimeoutException e) {
      throw new IllegalStateException("the Bigtable emulator did not answer in time", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while the Bigtable emulator started", e);
    }
  }

  /**
   * The emulator that all tests of this JVM share: started at the first call, stopped when the JVM
   * ends. {@link #close()} on it does nothing, so that no test takes it from the others; keep tests
   * apart by tables.
   */
  public static BigtableEmulator shared() {
    return Shared.EMULATOR;
  }

  /** The port it listens on, of {@code localhost}. */
  public int port() {
    return port;
  }

  /** {@code localhost:port}, as {@code BIGTABLE_EMULATOR_HOST} wants it. */
  public String hostAndPort() {
    return "localhost:" + port;
  }

  /**
   * Makes a table of that id with these column families, which keep every version of a cell.
   *
   * @throws io.grpc.StatusRuntimeException ALREADY_EXISTS where the id is taken
   */
  public BigtableTable createTable(String id, String... families) {
    Table.Builder table = Table.newBuilder();
    for (String family : families) {
      table.putColumnFamilies(family, ColumnFamily.getDefaultInstance());
    }
    CreateTableRequest request =
        CreateTableRequest.newBuilder().setParent(INSTANCE).setTableId(id).setTable(table).build();
    ClientCalls.blockingUnaryCall(
        channel,
        CREATE_TABLE,
        CallOptions.DEFAULT.withDeadlineAfter(10, TimeUnit.SECONDS),
        request);
    return new BigtableTable(channel, INSTANCE, id);
  }

  /**
   * Makes a table under an id that no other one of this emulator has, beginning with {@code
   * prefix}.
   */
  public BigtableTable createFreshTable(String prefix, String... families) {
    return createTable(prefix + "-" + tables.incrementAndGet(), families);
  }

  /**
   * Stops the process. Its tables are gone. Closing twice, or closing the shared one, does nothing.
   */
  @Override
  public void close() {
    if (!shared && closed.compareAndSet(false, true)) {
      stop();
    }
  }

  private void stop() {
    channel.shutdownNow();
    try {
      if (!channel.awaitTermination(5, TimeUnit.SECONDS)) {
        throw new IllegalStateException(
            "the channel to the Bigtable emulator did not end within 5 s");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      emulator.stop();
    }
  }

  private static final class Shared {
    // its process ends by a shutdown hook of the emulator's own library
    static final BigtableEmulator EMULATOR = launch(true);
  }
}
