package dev.timebound.cas;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.CapabilitiesGrpc;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import java.util.UUID;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class ResourceNamesTest {
  private static final UUID UPLOAD = UUID.fromString("0b6e3e4a-3c1a-4c29-9d6b-6f8f2a1e7c55");
  private final Digest sha = Digest.of("abc".getBytes(UTF_8));
  private final Digest blake = Digest.of("abc".getBytes(UTF_8), DigestFunction.BLAKE3);

  @Test
  @DisplayName("names of reads, plain and compressed; no leading slash for an empty instance")
  void reads() {
    assertThat(ResourceNames.read("main", sha)).isEqualTo("main/blobs/" + sha.hash() + "/3");
    assertThat(ResourceNames.read("", sha)).isEqualTo("blobs/" + sha.hash() + "/3");
    assertThat(ResourceNames.readZstd("a/b", sha))
        .isEqualTo("a/b/compressed-blobs/zstd/" + sha.hash() + "/3");
    assertThat(ResourceNames.readZstd("", sha))
        .isEqualTo("compressed-blobs/zstd/" + sha.hash() + "/3");
  }

  @Test
  @DisplayName("names of uploads, plain and compressed")
  void writes() {
    assertThat(ResourceNames.write("main", UPLOAD, sha))
        .isEqualTo("main/uploads/" + UPLOAD + "/blobs/" + sha.hash() + "/3");
    assertThat(ResourceNames.write("", UPLOAD, sha))
        .isEqualTo("uploads/" + UPLOAD + "/blobs/" + sha.hash() + "/3");
    assertThat(ResourceNames.writeZstd("", UPLOAD, sha))
        .isEqualTo("uploads/" + UPLOAD + "/compressed-blobs/zstd/" + sha.hash() + "/3");
  }

  @Test
  @DisplayName("CAS-32 BLAKE3 is named before the hash, SHA-256 never")
  void function() {
    assertThat(ResourceNames.read("", blake)).isEqualTo("blobs/blake3/" + blake.hash() + "/3");
    assertThat(ResourceNames.readZstd("", blake))
        .isEqualTo("compressed-blobs/zstd/blake3/" + blake.hash() + "/3");
    assertThat(ResourceNames.write("", UPLOAD, blake))
        .isEqualTo("uploads/" + UPLOAD + "/blobs/blake3/" + blake.hash() + "/3");
  }

  @Test
  @DisplayName("methods have the public protocol's names")
  void methods() {
    assertThat(ByteStreamGrpc.getReadMethod().getFullMethodName())
        .isEqualTo("google.bytestream.ByteStream/Read");
    assertThat(ContentAddressableStorageGrpc.getFindMissingBlobsMethod().getFullMethodName())
        .isEqualTo("build.bazel.remote.execution.v2.ContentAddressableStorage/FindMissingBlobs");
    assertThat(CapabilitiesGrpc.getGetCapabilitiesMethod().getFullMethodName())
        .isEqualTo("build.bazel.remote.execution.v2.Capabilities/GetCapabilities");
  }
}
