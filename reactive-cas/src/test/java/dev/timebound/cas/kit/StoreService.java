package dev.timebound.cas.kit;

import com.google.protobuf.ByteString;
import com.google.protobuf.MessageLite;
import com.google.protobuf.UnsafeByteOperations;
import dev.timebound.cas.Digest;
import dev.timebound.cas.DigestFunction;
import dev.timebound.cas.wire.ContentAddressableStorageGrpc;
import dev.timebound.cas.wire.RemoteExecution;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.BatchReadBlobsResponse;
import dev.timebound.cas.wire.RemoteExecution.BatchUpdateBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.BatchUpdateBlobsResponse;
import dev.timebound.cas.wire.RemoteExecution.Compressor;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsRequest;
import dev.timebound.cas.wire.RemoteExecution.FindMissingBlobsResponse;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.util.List;
import java.util.function.Function;

/** {@code ContentAddressableStorage} over a {@link BlobStore}. */
final class StoreService extends ContentAddressableStorageGrpc.ContentAddressableStorageImplBase {
  private final CasTurn.House house;
  private final BlobStore store;
  private final CasSettings settings;

  StoreService(CasTurn.House house, BlobStore store, CasSettings settings) {
    this.house = house;
    this.store = store;
    this.settings = settings;
  }

  /** A call of one request and one answer. */
  static <A extends MessageLite> void unary(
      CasTurn.House house,
      MessageLite request,
      String instance,
      List<Digest> digests,
      Class<A> type,
      StreamObserver<A> observer,
      Function<CasTurn, Object> correct) {
    ServerCallStreamObserver<A> out = (ServerCallStreamObserver<A>) observer;
    CasTurn turn = new CasTurn(house, CasCallRecord.KEY.get(), out);
    turn.call().about("", instance, digests);
    turn.call().came(request, 0);
    turn.begin(
        () -> {
          MessageLite scripted = turn.terms().reply;
          Object answer = scripted != null ? scripted : correct.apply(turn);
          if (answer instanceof Status refused) {
            turn.fail(refused);
          } else {
            out.onNext(type.cast(answer));
            turn.complete();
          }
        });
  }

  @Override
  public void findMissingBlobs(
      FindMissingBlobsRequest request, StreamObserver<FindMissingBlobsResponse> observer) {
    DigestFunction function = CasSettings.function(request.getDigestFunction());
    unary(
        house,
        request,
        request.getInstanceName(),
        request.getBlobDigestsList().stream().map(wire -> digest(wire, function)).toList(),
        FindMissingBlobsResponse.class,
        observer,
        turn -> {
          Status serves = settings.serves(function, false);
          if (!serves.isOk()) {
            return serves;
          }
          FindMissingBlobsResponse.Builder answer = FindMissingBlobsResponse.newBuilder();
          for (Digest digest : turn.call().digests()) {
            if (store.get(digest) == null) {
              answer.addMissingBlobDigests(wire(digest));
            }
          }
          return answer.build();
        });
  }

  @Override
  public void batchReadBlobs(
      BatchReadBlobsRequest request, StreamObserver<BatchReadBlobsResponse> observer) {
    DigestFunction function = CasSettings.function(request.getDigestFunction());
    boolean zstd =
        settings.compresses()
            && request.getAcceptableCompressorsList().contains(Compressor.Value.ZSTD);
    unary(
        house,
        request,
        request.getInstanceName(),
        request.getDigestsList().stream().map(wire -> digest(wire, function)).toList(),
        BatchReadBlobsResponse.class,
        observer,
        turn -> {
          Status refused = batch(turn, function);
          if (!refused.isOk()) {
            return refused;
          }
          BatchReadBlobsResponse.Builder answer = BatchReadBlobsResponse.newBuilder();
          turn.call().digests().forEach(digest -> answer.addResponses(read(turn, digest, zstd)));
          return answer.build();
        });
  }

  private BatchReadBlobsResponse.Response read(CasTurn turn, Digest digest, boolean zstd) {
    BatchReadBlobsResponse.Response.Builder answer =
        BatchReadBlobsResponse.Response.newBuilder().setDigest(wire(digest));
    Status scripted = turn.terms().blobStatus.get(digest);
    byte[] blob = store.get(digest);
    if (scripted != null) {
      return answer.setStatus(wire(scripted)).build();
    }
    if (blob == null) {
      return answer.setStatus(wire(Status.NOT_FOUND)).build();
    }
    byte[] content = ByteStreamService.scripted(blob, turn.terms());
    if (zstd) {
      ByteString compressed = UnsafeByteOperations.unsafeWrap(Zstd.compress(content));
      return answer.setCompressor(Compressor.Value.ZSTD).setData(compressed).build();
    }
    return answer.setData(UnsafeByteOperations.unsafeWrap(content)).build();
  }

  @Override
  public void batchUpdateBlobs(
      BatchUpdateBlobsRequest request, StreamObserver<BatchUpdateBlobsResponse> observer) {
    DigestFunction function = CasSettings.function(request.getDigestFunction());
    unary(
        house,
        request,
        request.getInstanceName(),
        request.getRequestsList().stream().map(r -> digest(r.getDigest(), function)).toList(),
        BatchUpdateBlobsResponse.class,
        observer,
        turn -> {
          Status refused = batch(turn, function);
          if (!refused.isOk()) {
            return refused;
          }
          BatchUpdateBlobsResponse.Builder answer = BatchUpdateBlobsResponse.newBuilder();
          for (BatchUpdateBlobsRequest.Request blob : request.getRequestsList()) {
            answer.addResponses(
                BatchUpdateBlobsResponse.Response.newBuilder()
                    .setDigest(blob.getDigest())
                    .setStatus(wire(update(turn, blob, function))));
          }
          return answer.build();
        });
  }

  private Status update(
      CasTurn turn, BatchUpdateBlobsRequest.Request blob, DigestFunction function) {
    Digest digest = digest(blob.getDigest(), function);
    Status scripted = turn.terms().blobStatus.get(digest);
    if (scripted != null) {
      return scripted;
    }
    boolean zstd = blob.getCompressor() == Compressor.Value.ZSTD;
    Status serves = settings.serves(function, zstd);
    return serves.isOk() ? store.take(digest, blob.getData().toByteArray(), zstd) : serves;
  }

  /** A batch as a whole: OK, or INVALID_ARGUMENT. */
  private Status batch(CasTurn turn, DigestFunction function) {
    long limit = settings.batchLimit();
    long total = turn.call().digests().stream().mapToLong(Digest::sizeBytes).sum();
    if (limit > 0 && total > limit) {
      return Status.INVALID_ARGUMENT.withDescription(
          "batch of " + total + " bytes (expected: <= " + limit + ")");
    }
    return settings.serves(function, false);
  }

  private static Digest digest(RemoteExecution.Digest wire, DigestFunction function) {
    return Digest.of(wire.getHash(), wire.getSizeBytes(), function);
  }

  private static RemoteExecution.Digest wire(Digest digest) {
    return RemoteExecution.Digest.newBuilder()
        .setHash(digest.hash())
        .setSizeBytes(digest.sizeBytes())
        .build();
  }

  private static com.google.rpc.Status wire(Status status) {
    String description = status.getDescription();
    return com.google.rpc.Status.newBuilder()
        .setCode(status.getCode().value())
        .setMessage(description == null ? "" : description)
        .build();
  }
}
