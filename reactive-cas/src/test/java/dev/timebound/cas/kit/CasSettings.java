package dev.timebound.cas.kit;

import dev.timebound.cas.DigestFunction;
import dev.timebound.cas.wire.CapabilitiesGrpc;
import dev.timebound.cas.wire.RemoteExecution;
import dev.timebound.cas.wire.RemoteExecution.CacheCapabilities;
import dev.timebound.cas.wire.RemoteExecution.Compressor;
import dev.timebound.cas.wire.RemoteExecution.GetCapabilitiesRequest;
import dev.timebound.cas.wire.RemoteExecution.ServerCapabilities;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.util.List;
import java.util.Set;

/** What a scripted store says of itself, and holds to. */
final class CasSettings {
  private final Set<DigestFunction> functions;
  private final boolean zstd;
  private final long batchLimit;
  private final boolean told;

  CasSettings(Set<DigestFunction> functions, boolean zstd, long batchLimit, boolean told) {
    this.functions = Set.copyOf(functions);
    this.zstd = zstd;
    this.batchLimit = batchLimit;
    this.told = told;
  }

  long batchLimit() {
    return batchLimit;
  }

  boolean compresses() {
    return zstd;
  }

  /** OK, or INVALID_ARGUMENT. */
  Status serves(DigestFunction function, boolean compressed) {
    if (!functions.contains(function)) {
      return Status.INVALID_ARGUMENT.withDescription(
          "digest function: " + function + " (expected: one of " + functions + ")");
    }
    if (compressed && !zstd) {
      return Status.INVALID_ARGUMENT.withDescription("compressor: zstd (expected: none)");
    }
    return Status.OK;
  }

  /** One that was not said is SHA-256. */
  static DigestFunction function(RemoteExecution.DigestFunction.Value wire) {
    return wire == RemoteExecution.DigestFunction.Value.BLAKE3
        ? DigestFunction.BLAKE3
        : DigestFunction.SHA256;
  }

  private ServerCapabilities capabilities() {
    CacheCapabilities.Builder cache =
        CacheCapabilities.newBuilder().setMaxBatchTotalSizeBytes(batchLimit);
    functions.stream()
        .sorted()
        .map(f -> RemoteExecution.DigestFunction.Value.valueOf(f.name()))
        .forEach(cache::addDigestFunctions);
    if (zstd) {
      cache
          .addSupportedCompressors(Compressor.Value.ZSTD)
          .addSupportedBatchUpdateCompressors(Compressor.Value.ZSTD);
    }
    return ServerCapabilities.newBuilder().setCacheCapabilities(cache).build();
  }

  /** {@code Capabilities} of these settings. */
  CapabilitiesGrpc.CapabilitiesImplBase service(CasTurn.House house) {
    return new CapabilitiesGrpc.CapabilitiesImplBase() {
      @Override
      public void getCapabilities(
          GetCapabilitiesRequest request, StreamObserver<ServerCapabilities> observer) {
        StoreService.unary(
            house,
            request,
            request.getInstanceName(),
            List.of(),
            ServerCapabilities.class,
            observer,
            turn -> told ? capabilities() : Status.UNIMPLEMENTED);
      }
    };
  }
}
