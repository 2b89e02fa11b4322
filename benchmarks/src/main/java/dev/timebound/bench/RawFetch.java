package dev.timebound.bench;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * A Kafka client that does next to nothing: sends a Fetch, reads of its answer the lengths and the
 * heads of the batches, and skips the rest, one request after the other as clients do. The protocol
 * is written out here (Fetch 11, no session), so that no client library is what is measured.
 * Blocks; of one thread.
 */
final class RawFetch implements AutoCloseable {
  static final long FOLLOWED = Long.MAX_VALUE;

  private static final short FETCH = 1;
  private static final short VERSION = 11;
  private static final int MAX_WAIT_MS = 500;
  private static final int MOST_IN_VAIN = 10;
  private static final int MAX_BYTES = 50 << 20;
  private static final int PARTITION_BYTES = 1 << 20;

  /** Of a batch: up to its last offset's delta. */
  private static final int BATCH_HEAD = 27;

  private static final int BATCH_LENGTH_AT = 8;
  private static final int BATCH_MAGIC_AT = 16;
  private static final int LAST_OFFSET_DELTA_AT = 23;
  private static final int LENGTH_ENDS = 12;

  private final SocketChannel channel;
  private final byte[] topic;
  private final ByteBuffer in = ByteBuffer.allocateDirect(256 << 10).flip();
  private final ByteBuffer out = ByteBuffer.allocateDirect(64 << 10);
  private int correlation;

  /** Of the answer that is being read. */
  private int left;

  private long requests;
  private long batches;
  private long bytes;

  RawFetch(int port, String topic) throws IOException {
    this.topic = topic.getBytes(StandardCharsets.UTF_8);
    channel = SocketChannel.open();
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
    channel.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
  }

  /**
   * What was read.
   *
   * @param batches whole ones; a broker cuts the last one short
   * @param bytes of whole batches
   */
  record Totals(long requests, long batches, long bytes) {}

  /**
   * Reads each partition from its begin to a given end. A partition that fails ends it, and so do
   * too many answers in a row that bring nothing.
   *
   * @param ends of partition 0, 1, …: the offset after the last record; {@link #FOLLOWED} for one
   *     that is asked for as long as another one is read
   */
  Totals readAll(long... ends) throws IOException {
    requests = 0;
    batches = 0;
    bytes = 0;
    long[] positions = new long[ends.length];
    int inVain = 0;
    while (send(positions, ends)) {
      long before = batches;
      receive(positions);
      requests++;
      inVain = batches == before ? inVain + 1 : 0;
      if (inVain == MOST_IN_VAIN) {
        throw new IOException(
            inVain + " answers without a batch, at " + Arrays.toString(positions));
      }
    }
    return new Totals(requests, batches, bytes);
  }

  /** Asks once for each partition's begin. */
  Totals readOnce(int partitions) throws IOException {
    requests = 1;
    batches = 0;
    bytes = 0;
    long[] ends = new long[partitions];
    Arrays.fill(ends, 1);
    long[] positions = new long[partitions];
    send(positions, ends);
    receive(positions);
    return new Totals(requests, batches, bytes);
  }

  /** False where nothing is left to ask for. */
  private boolean send(long[] positions, long[] ends) throws IOException {
    out.clear().position(4);
    out.putShort(FETCH).putShort(VERSION).putInt(++correlation).putShort((short) -1);
    out.putInt(-1).putInt(MAX_WAIT_MS).putInt(1).putInt(MAX_BYTES).put((byte) 0);
    out.putInt(0).putInt(-1); // no session
    out.putInt(1).putShort((short) topic.length).put(topic);
    int countAt = out.position();
    out.putInt(0);
    int wanted = 0;
    boolean unread = false;
    for (int i = 0; i < ends.length; i++) {
      if (positions[i] < ends[i]) {
        out.putInt(i).putInt(-1).putLong(positions[i]).putLong(-1).putInt(PARTITION_BYTES);
        wanted++;
        unread |= ends[i] != FOLLOWED;
      }
    }
    out.putInt(countAt, wanted);
    out.putInt(0).putShort((short) 0); // nothing forgotten, no rack
    out.putInt(0, out.position() - 4).flip();
    if (!unread) {
      return false;
    }
    while (out.hasRemaining()) {
      channel.write(out);
    }
    return true;
  }

  private void receive(long[] positions) throws IOException {
    left = 4;
    left = nextInt();
    if (nextInt() != correlation) {
      throw new IOException("the answer is not that of request " + correlation);
    }
    nextInt(); // throttle time
    check("the request", nextShort());
    nextInt(); // session
    for (int topics = nextInt(); topics > 0; topics--) {
      skip(nextShort());
      for (int partitions = nextInt(); partitions > 0; partitions--) {
        partition(positions);
      }
    }
    if (left != 0) {
      throw new IOException(left + " bytes of the answer were not understood");
    }
  }

  private void partition(long[] positions) throws IOException {
    int index = nextInt();
    check("partition " + index, nextShort());
    skip(3 * Long.BYTES); // watermarks and start
    int aborted = nextInt();
    skip(Math.max(0, aborted) * 2 * Long.BYTES);
    nextInt(); // preferred replica
    int records = nextInt();
    while (records >= BATCH_HEAD) {
      need(BATCH_HEAD);
      int start = in.position();
      long baseOffset = in.getLong(start);
      int size = LENGTH_ENDS + in.getInt(start + BATCH_LENGTH_AT);
      if (in.get(start + BATCH_MAGIC_AT) != 2) {
        throw new IOException("partition " + index + ": not a batch of format 2");
      }
      if (size > records) {
        break;
      }
      positions[index] = baseOffset + in.getInt(start + LAST_OFFSET_DELTA_AT) + 1;
      batches++;
      bytes += size;
      records -= size;
      skip(size);
    }
    skip(Math.max(0, records));
  }

  private static void check(String what, short error) throws IOException {
    if (error != 0) {
      throw new IOException(what + ": error " + error);
    }
  }

  private int nextInt() throws IOException {
    need(Integer.BYTES);
    left -= Integer.BYTES;
    return in.getInt();
  }

  private short nextShort() throws IOException {
    need(Short.BYTES);
    left -= Short.BYTES;
    return in.getShort();
  }

  /** So many bytes are in the buffer, from its position on. */
  private void need(int count) throws IOException {
    if (count > left) {
      throw new IOException("the answer ends too early");
    }
    if (in.remaining() < count) {
      in.compact();
      while (in.position() < count) {
        fill();
      }
      in.flip();
    }
  }

  private void skip(int count) throws IOException {
    if (count > left) {
      throw new IOException("the answer ends too early");
    }
    left -= count;
    int rest = count;
    while (rest > in.remaining()) {
      rest -= in.remaining();
      in.clear();
      fill();
      in.flip();
    }
    in.position(in.position() + rest);
  }

  private void fill() throws IOException {
    if (channel.read(in) < 0) {
      throw new EOFException("the server ended the connection");
    }
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
