package dev.timebound.cas;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.grpc.Status;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.util.Random;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class DigestTest {
  private static final String ABC =
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  private static final String BLAKE3_ABC =
      "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";

  @Nested
  class Making {
    @Test
    @DisplayName("hash, size and function of bytes; the published values of both functions")
    void ofBytes() {
      Digest sha = Digest.of("abc".getBytes(UTF_8));
      assertThat(sha.hash()).isEqualTo(ABC);
      assertThat(sha.sizeBytes()).isEqualTo(3);
      assertThat(sha.function()).isEqualTo(DigestFunction.SHA256);
      assertThat(Digest.of("abc".getBytes(UTF_8), DigestFunction.BLAKE3).hash())
          .isEqualTo(BLAKE3_ABC);
    }

    @Test
    @DisplayName("hash/size is read and written")
    void parsed() {
      Digest digest = Digest.parse(ABC + "/3");
      assertThat(digest).isEqualTo(Digest.of("abc".getBytes(UTF_8))).hasToString(ABC + "/3");
      assertThat(digest).hasSameHashCodeAs(Digest.of(digest.hashBytes(), 3, digest.function()));
      assertThat(digest).isNotEqualTo(Digest.parse(ABC + "/4"));
      assertThat(digest).isNotEqualTo(Digest.parse(ABC + "/3", DigestFunction.BLAKE3));
    }

    @ParameterizedTest
    @DisplayName("CAS-10 a hash that is not 32 bytes of lower-case hex is refused by its name")
    @ValueSource(
        strings = {
          "",
          "ba78",
          ABC + "00",
          "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
          "zz7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        })
    void badHash(String hash) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Digest.parse(hash + "/3"))
          .withMessage("hash: " + hash + " (expected: 64 lower-case hex digits)");
    }

    @Test
    @DisplayName("CAS-10 a hash of other than 32 bytes is refused")
    void badHashBytes() {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Digest.of(new byte[20], 3, DigestFunction.SHA256))
          .withMessage("hash: 20 bytes (expected: 32 bytes)");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "-1", "+3", "3 ", "0x3", "3/4", "٣"})
    void badSize(String size) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Digest.parse(ABC + "/" + size))
          .withMessage("size: " + size + " (expected: a decimal number >= 0)");
    }

    @Test
    void sizeOutOfRange() {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Digest.parse(ABC + "/9223372036854775808"))
          .withMessage("size: 9223372036854775808 (expected: <= 9223372036854775807)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Digest.of(ABC, -1, DigestFunction.SHA256))
          .withMessage("size: -1 (expected: >= 0)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Digest.parse(ABC))
          .withMessage("digest: " + ABC + " (expected: hash/size)");
    }

    @ParameterizedTest
    @EnumSource
    @DisplayName("CAS-30 the empty blob is known without asking or hashing")
    void empty(DigestFunction function) {
      assertThat(Digest.empty(function)).isEqualTo(Digest.of(new byte[0], function));
      assertThat(Digest.empty(function).isEmpty()).isTrue();
      assertThat(Digest.of(new byte[1], function).isEmpty()).isFalse();
      assertThat(Digest.of(ABC, 0, function).isEmpty()).as("another hash").isFalse();
    }
  }

  @Nested
  class PieceByPiece {
    @ParameterizedTest
    @EnumSource
    @DisplayName("CAS-30 pieces of any size and kind give the digest of the whole")
    void pieces(DigestFunction function) {
      byte[] blob = new byte[100_000];
      new Random(7).nextBytes(blob);
      Random cuts = new Random(11);
      for (int round = 0; round < 20; round++) {
        DigestHasher hasher = DigestHasher.of(function);
        for (int at = 0; at < blob.length; ) {
          int n = Math.min(blob.length - at, cuts.nextInt(30_000));
          ByteBuffer piece =
              cuts.nextBoolean() ? direct(blob, at, n) : ByteBuffer.wrap(blob, at, n);
          int position = piece.position();
          hasher.update(piece.asReadOnlyBuffer()).update(ByteBuffer.allocate(0));
          assertThat(piece.position()).isEqualTo(position);
          at += n;
        }
        assertThat(hasher.digest()).isEqualTo(Digest.of(blob, function));
      }
    }

    private ByteBuffer direct(byte[] blob, int at, int n) {
      return ByteBuffer.allocateDirect(n + 5).position(5).put(blob, at, n).position(5);
    }

    @Test
    @DisplayName("the caller's buffer keeps its position")
    void positionStays() {
      ByteBuffer piece = ByteBuffer.wrap("xabc".getBytes(UTF_8)).position(1);
      assertThat(DigestHasher.of(DigestFunction.SHA256).update(piece).digest().hash())
          .isEqualTo(ABC);
      assertThat(DigestHasher.of(DigestFunction.BLAKE3).update(piece).digest().hash())
          .isEqualTo(BLAKE3_ABC);
      assertThat(piece.position()).isEqualTo(1);
    }

    @Test
    void oneDigestEach() {
      DigestHasher hasher = DigestHasher.of(DigestFunction.SHA256);
      hasher.digest();
      assertThatIllegalStateException().isThrownBy(hasher::digest);
      assertThatIllegalStateException().isThrownBy(() -> hasher.update(ByteBuffer.allocate(1)));
    }
  }

  @Nested
  class Verifying {
    private final Digest abc = Digest.of("abc".getBytes(UTF_8));

    @Test
    @DisplayName("CAS-30 the right bytes pass")
    void right() {
      DigestVerifier verifier = DigestVerifier.of(abc);
      verifier.update(bytes("a"));
      assertThat(verifier.remaining()).isEqualTo(2);
      verifier.update(bytes("bc")).finish();
    }

    @Test
    @DisplayName("CAS-30 other bytes are DATA_LOSS naming the digest")
    void other() {
      DigestVerifier verifier = DigestVerifier.of(abc).update(bytes("abd"));
      DataLossException lost = catchThrowableOfType(DataLossException.class, verifier::finish);
      assertThat(lost.digest()).isEqualTo(abc);
      assertThat(lost.getStatus().getCode()).isEqualTo(Status.Code.DATA_LOSS);
      assertThat(lost).hasMessageContaining(abc.toString());
      assertThat(lost).hasMessageContaining(Digest.of("abd".getBytes(UTF_8)).toString());
    }

    @Test
    @DisplayName("CAS-30 too few bytes are DATA_LOSS")
    void tooFew() {
      DigestVerifier verifier = DigestVerifier.of(abc).update(bytes("ab"));
      assertThatThrownBy(verifier::finish).isInstanceOf(DataLossException.class);
    }

    @Test
    @DisplayName("CAS-30a the piece that goes beyond the size is refused at once")
    void tooMany() {
      DigestVerifier verifier = DigestVerifier.of(abc).update(bytes("abc"));
      assertThatThrownBy(() -> verifier.update(bytes("d")))
          .isInstanceOf(DataLossException.class)
          .hasMessageContaining("more than 3 bytes");
    }

    private ByteBuffer bytes(String text) {
      return ByteBuffer.wrap(text.getBytes(UTF_8));
    }
  }

  @Nested
  class WithoutBouncyCastle {
    @Test
    @DisplayName("CAS-32 BLAKE3 without its library says what to add; SHA-256 does without it")
    void blake3Absent() throws Exception {
      Class<?> functions = new Hidden().loadClass("dev.timebound.cas.DigestFunction");
      var start = functions.getDeclaredMethod("start");
      start.setAccessible(true);
      Object[] values = functions.getEnumConstants();

      assertThat(start.invoke(values[DigestFunction.SHA256.ordinal()])).isNotNull();
      assertThatThrownBy(() -> start.invoke(values[DigestFunction.BLAKE3.ordinal()]))
          .isInstanceOf(InvocationTargetException.class)
          .cause()
          .isInstanceOf(IllegalStateException.class)
          .hasMessage(
              "digestFunction: BLAKE3 (expected: org.bouncycastle:bcprov-jdk18on on the class"
                  + " path)");
    }
  }

  /** Sees this module's classes anew, and no Bouncy Castle. */
  private static final class Hidden extends ClassLoader {
    Hidden() {
      super(DigestTest.class.getClassLoader());
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      if (name.startsWith("org.bouncycastle.")) {
        throw new ClassNotFoundException(name);
      }
      if (!name.startsWith("dev.timebound.cas.")) {
        return super.loadClass(name, resolve);
      }
      synchronized (getClassLoadingLock(name)) {
        Class<?> loaded = findLoadedClass(name);
        return loaded != null ? loaded : define(name);
      }
    }

    private Class<?> define(String name) throws ClassNotFoundException {
      try (InputStream in = getResourceAsStream(name.replace('.', '/') + ".class")) {
        if (in == null) {
          throw new ClassNotFoundException(name);
        }
        byte[] bytes = in.readAllBytes();
        return defineClass(name, bytes, 0, bytes.length);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
