package dev.timebound.samples.kafka;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.ByteBuffer;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.utils.ByteUtils;

/** Writes an answer with its length and header. Records are passed on, all else is copied once. */
final class ResponseFrame extends KafkaRecords.Sink {
  private static final int LENGTH = 4;

  private final ByteBuf plain;
  private final CompositeByteBuf whole;

  private ResponseFrame(ByteBuf plain, CompositeByteBuf whole) {
    this.plain = plain;
    this.whole = whole;
  }

  /** The whole frame, which is the caller's to release. */
  static ByteBuf of(
      ByteBufAllocator allocator, ApiKeys api, short version, int correlationId, ApiMessage body) {
    ObjectSerializationCache cache = new ObjectSerializationCache();
    ResponseHeaderData header = new ResponseHeaderData().setCorrelationId(correlationId);
    short headerVersion = api.responseHeaderVersion(version);
    MessageSizeAccumulator size = new MessageSizeAccumulator();
    header.addSize(size, cache, headerVersion);
    body.addSize(size, cache, version);
    ByteBuf plain = allocator.buffer(LENGTH + size.sizeExcludingZeroCopy());
    CompositeByteBuf whole = allocator.compositeBuffer(Integer.MAX_VALUE);
    ResponseFrame frame = new ResponseFrame(plain, whole);
    try {
      plain.writeInt(size.totalSize());
      header.write(frame, cache, headerVersion);
      body.write(frame, cache, version);
      frame.cut();
      return whole;
    } catch (Throwable e) {
      whole.release();
      throw e;
    } finally {
      plain.release();
    }
  }

  /** What was written since the last cut becomes a piece. */
  private void cut() {
    if (plain.isReadable()) {
      whole.addComponent(true, plain.readRetainedSlice(plain.readableBytes()));
    }
  }

  @Override
  void writeRecordBytes(ByteBuffer bytes) {
    cut();
    whole.addComponent(true, Unpooled.wrappedBuffer(bytes));
  }

  @Override
  public void writeByte(byte value) {
    plain.writeByte(value);
  }

  @Override
  public void writeShort(short value) {
    plain.writeShort(value);
  }

  @Override
  public void writeInt(int value) {
    plain.writeInt(value);
  }

  @Override
  public void writeLong(long value) {
    plain.writeLong(value);
  }

  @Override
  public void writeDouble(double value) {
    plain.writeDouble(value);
  }

  @Override
  public void writeByteArray(byte[] value) {
    plain.writeBytes(value);
  }

  @Override
  public void writeByteBuffer(ByteBuffer value) {
    plain.writeBytes(value.duplicate());
  }

  @Override
  public void writeUnsignedVarint(int value) {
    ByteBuffer bytes = ByteBuffer.allocate(5);
    ByteUtils.writeUnsignedVarint(value, bytes);
    plain.writeBytes(bytes.flip());
  }

  @Override
  public void writeVarint(int value) {
    writeUnsignedVarint((value << 1) ^ (value >> 31));
  }

  @Override
  public void writeVarlong(long value) {
    ByteBuffer bytes = ByteBuffer.allocate(10);
    ByteUtils.writeVarlong(value, bytes);
    plain.writeBytes(bytes.flip());
  }
}
