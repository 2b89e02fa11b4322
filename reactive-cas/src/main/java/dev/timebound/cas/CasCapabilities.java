package dev.timebound.cas;

import dev.timebound.cas.wire.RemoteExecution;
import dev.timebound.cas.wire.RemoteExecution.CacheCapabilities;
import dev.timebound.cas.wire.RemoteExecution.Compressor;
import java.util.List;

/**
 * What a shard's server says of itself (CAS-32).
 *
 * @param digestFunctions names of the functions it knows, as the protocol has them ({@code
 *     SHA256}); empty where it names none, which is taken for SHA-256
 * @param batchBytes bytes of content that it takes in one batch; 0 where it names no limit
 * @param zstd whether byte streams may travel compressed
 */
public record CasCapabilities(List<String> digestFunctions, long batchBytes, boolean zstd) {
  /** Of a server that does not know the question. */
  static final CasCapabilities UNTOLD = new CasCapabilities(List.of(), 0, false);

  public CasCapabilities {
    digestFunctions = List.copyOf(digestFunctions);
  }

  static CasCapabilities of(CacheCapabilities wire) {
    return new CasCapabilities(
        wire.getDigestFunctionsList().stream()
            .filter(f -> f != RemoteExecution.DigestFunction.Value.UNRECOGNIZED)
            .map(Enum::name)
            .toList(),
        Math.max(0, wire.getMaxBatchTotalSizeBytes()),
        wire.getSupportedCompressorsList().contains(Compressor.Value.ZSTD));
  }

  /** Whether it knows digests of this function. */
  public boolean knows(DigestFunction function) {
    return digestFunctions.isEmpty()
        ? function == DigestFunction.SHA256
        : digestFunctions.contains(function.name());
  }
}
