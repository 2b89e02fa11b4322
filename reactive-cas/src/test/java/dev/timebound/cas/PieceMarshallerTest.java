package dev.timebound.cas;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteOutput;
import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import com.google.protobuf.UnsafeByteOperations;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import io.grpc.KnownLength;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PieceMarshallerTest {
  private static final MethodDescriptor.Marshaller<ReadResponse> ORDINARY =
      ByteStreamGrpc.getReadMethod().getResponseMarshaller();

  private final MethodDescriptor.Marshaller<ReadResponse> pieces =
      PieceMarshaller.READ.getResponseMarshaller();

  @Nested
  class AMessageThatIsItsData {
    @ParameterizedTest(name = "of {0} bytes")
    @ValueSource(ints = {1, 127, 128, 16_383, 16_384, 65_536, 1 << 20, (4 << 20) + 1})
    @DisplayName("is read with one copy, into the array that the caller is given")
    void isReadOnce(int length) {
      byte[] data = new byte[length];
      new Random(length).nextBytes(data);
      Transport stream = new Transport(message(data));

      ByteString read = pieces.parse(stream).getData();

      assertThat(read.toByteArray()).isEqualTo(data);
      assertThat(stream.into).containsOnly(backing(read));
    }

    @Test
    @DisplayName("an empty message, and one with empty data, have no data")
    void empty() {
      assertThat(pieces.parse(new Transport(new byte[0])).getData()).isEmpty();
      assertThat(pieces.parse(new Transport(new byte[] {82, 0})).getData()).isEmpty();
    }

    @Test
    @DisplayName("a stream that ends before its own length says so as INTERNAL")
    void cutShort() {
      byte[] whole = message(new byte[1000]);
      Transport stream = new Transport(Arrays.copyOf(whole, 500), whole.length);

      assertThatThrownBy(() -> pieces.parse(stream))
          .isInstanceOfSatisfying(
              StatusRuntimeException.class,
              e -> {
                assertThat(e.getStatus().getCode()).isEqualTo(Status.Code.INTERNAL);
                assertThat(e.getCause()).hasMessageContaining("1000 bytes ends after");
              });
    }
  }

  @Nested
  class AnyOtherMessage {
    @Test
    @DisplayName("unknown fields and data given twice are read as protobuf reads them")
    void others() throws IOException {
      byte[] data = {1, 2, 3};
      byte[] unknown =
          UnknownFieldSet.newBuilder()
              .addField(3, UnknownFieldSet.Field.newBuilder().addVarint(7).build())
              .build()
              .toByteArray();

      assertSame(join(unknown, message(data)));
      assertSame(join(message(data), unknown));
      assertSame(join(message(new byte[] {9, 9}), message(data)));
      assertThat(pieces.parse(new Transport(join(message(new byte[9]), message(data)))).getData())
          .isEqualTo(ByteString.copyFrom(data));
    }

    @Test
    @DisplayName("lengths that are not true are refused as protobuf refuses them")
    void wrongLengths() {
      assertSame(82);
      assertSame(82, 5, 1, 2);
      assertSame(82, 2, 1, 2, 3);
      assertSame(82, 0x83, 0, 1, 2, 3); // 3, in two bytes
      assertSame(82, 0xff, 0xff, 0xff, 0xff, 0x0f);
      assertSame(82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
      assertSame(82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01);
    }

    @Test
    @DisplayName("of 20,000 messages made by chance each is read or refused as protobuf does")
    void byChance() {
      Random random = new Random(42);
      for (int i = 0; i < 20_000; i++) {
        byte[] bytes = new byte[random.nextInt(12)];
        random.nextBytes(bytes);
        if (bytes.length > 0 && random.nextInt(4) > 0) {
          bytes[0] = 82;
        }
        if (bytes.length > 1 && random.nextBoolean()) {
          bytes[1] = (byte) (bytes.length - 2 + random.nextInt(3) - 1);
        }
        assertSame(bytes);
      }
    }

    @Test
    @DisplayName("a stream whose length is not known is left to gRPC's own reader")
    void gzipped() {
      byte[] data = {1, 2, 3};
      assertThat(pieces.parse(new ByteArrayInputStream(message(data))).getData().toByteArray())
          .isEqualTo(data);
    }

    @Test
    @DisplayName("is written as ever")
    void written() throws IOException {
      ReadResponse message =
          ReadResponse.newBuilder().setData(ByteString.copyFromUtf8("abc")).build();
      assertThat(pieces.stream(message).readAllBytes()).isEqualTo(message.toByteArray());
    }
  }

  // --- what they need

  private void assertSame(int... bytes) {
    byte[] message = new byte[bytes.length];
    for (int i = 0; i < bytes.length; i++) {
      message[i] = (byte) bytes[i];
    }
    assertSame(message);
  }

  private void assertSame(byte[] bytes) {
    assertThat(outcome(pieces, bytes))
        .as(Arrays.toString(bytes))
        .isEqualTo(outcome(ORDINARY, bytes));
  }

  /** The message, or the status. */
  private static Object outcome(
      MethodDescriptor.Marshaller<ReadResponse> marshaller, byte[] bytes) {
    try {
      return marshaller.parse(new Transport(bytes));
    } catch (StatusRuntimeException refused) {
      return refused.getStatus().getCode() + " " + refused.getStatus().getDescription();
    }
  }

  private static byte[] message(byte[] data) {
    return ReadResponse.newBuilder().setData(ByteString.copyFrom(data)).build().toByteArray();
  }

  private static byte[] join(byte[] first, byte[] second) throws IOException {
    ByteArrayOutputStream both = new ByteArrayOutputStream();
    both.write(first);
    both.write(second);
    return both.toByteArray();
  }

  private static byte[] backing(ByteString read) {
    List<byte[]> arrays = new ArrayList<>();
    try {
      UnsafeByteOperations.unsafeWriteTo(
          read,
          new ByteOutput() {
            @Override
            public void write(byte value) {}

            @Override
            public void write(byte[] value, int offset, int length) {
              arrays.add(value);
            }

            @Override
            public void writeLazy(byte[] value, int offset, int length) {
              arrays.add(value);
            }

            @Override
            public void write(ByteBuffer value) {}

            @Override
            public void writeLazy(ByteBuffer value) {}
          });
    } catch (IOException e) {
      throw new AssertionError("in memory", e);
    }
    return arrays.get(0);
  }

  /** As the transport gives a message: its length is known. It keeps what it was read into. */
  private static final class Transport extends InputStream implements KnownLength {
    final List<byte[]> into = new ArrayList<>();
    private final InputStream bytes;
    private int left;

    Transport(byte[] bytes) {
      this(bytes, bytes.length);
    }

    Transport(byte[] bytes, int length) {
      this.bytes = new ByteArrayInputStream(bytes);
      this.left = length;
    }

    @Override
    public int available() {
      return left;
    }

    @Override
    public int read() throws IOException {
      int b = bytes.read();
      left -= b < 0 ? 0 : 1;
      return b;
    }

    @Override
    public int read(byte[] to, int offset, int length) throws IOException {
      if (length > 0) {
        into.add(to);
      }
      int n = bytes.read(to, offset, length);
      left -= Math.max(n, 0);
      return n;
    }
  }
}
