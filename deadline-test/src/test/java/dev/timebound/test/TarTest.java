package dev.timebound.test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TarTest {
  @TempDir Path target;

  @Test
  @DisplayName("files, directories and links come out as they went in")
  void unpacks() throws IOException {
    byte[] archive =
        join(
            header("bin/", '5', 0, ""),
            header("bin/run", '0', 3, ""),
            block("abc"),
            header("lib/link", '2', 0, "../bin/run"),
            new byte[1024]);
    Tar.unpack(new ByteArrayInputStream(archive), target);
    assertThat(target.resolve("bin/run")).hasContent("abc").isExecutable();
    assertThat(Files.isSymbolicLink(target.resolve("lib/link"))).isTrue();
    assertThat(target.resolve("lib/link")).hasContent("abc");
  }

  @Test
  @DisplayName("a path that leads out, another kind of entry and a short archive are refused")
  void refuses() {
    assertThatThrownBy(() -> unpack(header("../out", '0', 0, "")))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("leads out");
    assertThatThrownBy(() -> unpack(header("device", '3', 0, "")))
        .hasMessageContaining("of kind 3");
    assertThatThrownBy(() -> unpack(header("short", '0', 600, ""), block("abc")))
        .isInstanceOf(EOFException.class);
    assertThatThrownBy(() -> unpack(Arrays.copyOf(header("short", '0', 0, ""), 200)))
        .isInstanceOf(EOFException.class);
  }

  private void unpack(byte[]... parts) throws IOException {
    Tar.unpack(new ByteArrayInputStream(join(parts)), target);
  }

  private static byte[] header(String name, char kind, int size, String link) {
    byte[] header = new byte[512];
    put(header, 0, name);
    put(header, 100, "0000755");
    put(header, 124, String.format("%011o", size));
    header[156] = (byte) kind;
    put(header, 157, link);
    return header;
  }

  private static void put(byte[] header, int at, String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    System.arraycopy(bytes, 0, header, at, bytes.length);
  }

  private static byte[] block(String text) {
    return Arrays.copyOf(text.getBytes(StandardCharsets.UTF_8), 512);
  }

  private static byte[] join(byte[]... parts) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      all.writeBytes(part);
    }
    return all.toByteArray();
  }
}
