package dev.timebound.cas.kit;

import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.CapabilitiesGrpc;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import io.grpc.MethodDescriptor;
import org.jspecify.annotations.Nullable;

/** The methods of a store. */
public enum CasMethod {
  /** {@code ByteStream.Read}. */
  READ(ByteStreamGrpc.getReadMethod()),
  /** {@code ByteStream.Write}. */
  WRITE(ByteStreamGrpc.getWriteMethod()),
  /** {@code ByteStream.QueryWriteStatus}. */
  QUERY_WRITE_STATUS(ByteStreamGrpc.getQueryWriteStatusMethod()),
  /** {@code ContentAddressableStorage.FindMissingBlobs}. */
  FIND_MISSING(ContentAddressableStorageGrpc.getFindMissingBlobsMethod()),
  /** {@code ContentAddressableStorage.BatchReadBlobs}. */
  BATCH_READ(ContentAddressableStorageGrpc.getBatchReadBlobsMethod()),
  /** {@code ContentAddressableStorage.BatchUpdateBlobs}. */
  BATCH_UPDATE(ContentAddressableStorageGrpc.getBatchUpdateBlobsMethod()),
  /** {@code Capabilities.GetCapabilities}. */
  CAPABILITIES(CapabilitiesGrpc.getGetCapabilitiesMethod());

  private final String fullName;

  CasMethod(MethodDescriptor<?, ?> method) {
    this.fullName = method.getFullMethodName();
  }

  /** As gRPC names it: {@code google.bytestream.ByteStream/Read}. */
  public String fullName() {
    return fullName;
  }

  static @Nullable CasMethod of(String fullName) {
    for (CasMethod method : values()) {
      if (method.fullName.equals(fullName)) {
        return method;
      }
    }
    return null;
  }
}
