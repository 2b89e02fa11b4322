package dev.timebound.cas.kit;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import dev.timebound.cas.Digest;
import dev.timebound.cas.kit.CasScript.Terms;
import dev.timebound.cas.wire.ByteStreamGrpc;
import dev.timebound.cas.wire.ByteStreams.QueryWriteStatusRequest;
import dev.timebound.cas.wire.ByteStreams.QueryWriteStatusResponse;
import dev.timebound.cas.wire.ByteStreams.ReadRequest;
import dev.timebound.cas.wire.ByteStreams.ReadResponse;
import dev.timebound.cas.wire.ByteStreams.WriteRequest;
import dev.timebound.cas.wire.ByteStreams.WriteResponse;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** {@code google.bytestream.ByteStream} over a {@link BlobStore}. */
final class ByteStreamService extends ByteStreamGrpc.ByteStreamImplBase {
  private final CasTurn.House house;
  private final BlobStore store;
  private final CasSettings settings;

  ByteStreamService(CasTurn.House house, BlobStore store, CasSettings settings) {
    this.house = house;
    this.store = store;
    this.settings = settings;
  }

  private static @Nullable CasResource about(CasCallRecord call, String resourceName) {
    CasResource resource = CasResource.parse(resourceName);
    call.about(
        resourceName,
        resource == null ? "" : resource.instance(),
        resource == null ? List.of() : List.of(resource.digest()));
    return resource;
  }

  private Status serves(@Nullable CasResource resource, String resourceName) {
    if (resource == null) {
      return Status.INVALID_ARGUMENT.withDescription("resource name: " + resourceName);
    }
    return settings.serves(resource.digest().function(), resource.compressed());
  }

  // ---- reads

  @Override
  public void read(ReadRequest request, StreamObserver<ReadResponse> observer) {
    ServerCallStreamObserver<ReadResponse> out = (ServerCallStreamObserver<ReadResponse>) observer;
    CasTurn turn = new CasTurn(house, CasCallRecord.KEY.get(), out);
    CasResource resource = about(turn.call(), request.getResourceName());
    turn.call().came(request, 0);
    Reading reading = new Reading(turn, out);
    out.setOnReadyHandler(() -> turn.guarded(reading::pump));
    turn.begin(
        () -> {
          Status status = serves(resource, request.getResourceName());
          if (resource == null || !status.isOk()) {
            turn.fail(status);
            return;
          }
          serve(turn, reading, request, resource);
        });
  }

  private void serve(CasTurn turn, Reading reading, ReadRequest request, CasResource resource) {
    Terms terms = turn.terms();
    byte[] blob = store.get(resource.digest());
    if (blob == null) {
      turn.fail(Status.NOT_FOUND.withDescription("no blob " + resource.digest()));
      return;
    }
    byte[] content = scripted(blob, terms);
    long offset = terms.ignoreOffset ? 0 : request.getReadOffset();
    long limit = terms.ignoreLimit ? 0 : request.getReadLimit();
    if (offset < 0 || limit < 0 || (offset > content.length && !terms.emptyPastEnd)) {
      turn.fail(Status.OUT_OF_RANGE.withDescription("read_offset " + offset));
      return;
    }
    int from = (int) Math.min(offset, content.length);
    int to = limit == 0 ? content.length : (int) Math.min(content.length, from + limit);
    if (resource.compressed()) {
      byte[] compressed = Zstd.compress(Arrays.copyOfRange(content, from, to));
      reading.start(compressed, 0, compressed.length);
    } else {
      reading.start(content, from, to);
    }
  }

  /** The blob as the script has it: itself where nothing is to be wrong with it. */
  static byte[] scripted(byte[] blob, Terms terms) {
    if (terms.wrongByteAt < 0 && terms.extra == 0) {
      return blob;
    }
    byte[] changed = Arrays.copyOf(blob, Math.max(0, blob.length + terms.extra));
    if (terms.wrongByteAt >= 0 && terms.wrongByteAt < changed.length) {
      changed[(int) terms.wrongByteAt] ^= 0x55;
    }
    return changed;
  }

  /** Sends content as fast as the client takes it. Its turn's lock guards it. */
  private static final class Reading {
    private static final ReadResponse KEEP_ALIVE = ReadResponse.getDefaultInstance();

    private final CasTurn turn;
    private final ServerCallStreamObserver<ReadResponse> out;
    private byte @Nullable [] content;
    private int position;
    private int end;
    private int messages;
    private boolean pausing;

    Reading(CasTurn turn, ServerCallStreamObserver<ReadResponse> out) {
      this.turn = turn;
      this.out = out;
    }

    void start(byte[] bytes, int from, int to) {
      content = bytes;
      position = from;
      end = to;
      pump();
    }

    void pump() {
      byte[] bytes = content;
      if (bytes == null || pausing) {
        return;
      }
      Terms terms = turn.terms();
      while (out.isReady() && position < end && !turn.isOver()) {
        if (messages > 0) {
          keepAlives(terms);
        }
        int length = Math.min(terms.chunkSize, end - position);
        ByteString chunk = UnsafeByteOperations.unsafeWrap(bytes, position, length);
        out.onNext(ReadResponse.newBuilder().setData(chunk).build());
        position += length;
        messages++;
        turn.call().sent(length);
        if (turn.stopsAt(messages)) {
          return;
        }
        if (!terms.pace.isZero()) {
          pausing = true;
          turn.later(terms.pace, this::resume);
          return;
        }
      }
      if (position >= end && !turn.isOver()) {
        keepAlives(terms);
        turn.complete();
      }
    }

    private void resume() {
      pausing = false;
      pump();
    }

    private void keepAlives(Terms terms) {
      for (int i = 0; i < terms.keepAlives; i++) {
        out.onNext(KEEP_ALIVE);
      }
    }
  }

  // ---- writes

  @Override
  public StreamObserver<WriteRequest> write(StreamObserver<WriteResponse> observer) {
    ServerCallStreamObserver<WriteResponse> out =
        (ServerCallStreamObserver<WriteResponse>) observer;
    out.disableAutoRequest();
    Writing writing = new Writing(new CasTurn(house, CasCallRecord.KEY.get(), out), out);
    out.request(1);
    return writing;
  }

  /** Takes one request at a time. Its turn's lock guards it. */
  private final class Writing implements StreamObserver<WriteRequest> {
    private final CasTurn turn;
    private final ServerCallStreamObserver<WriteResponse> out;
    private @Nullable CasResource resource;
    private BlobStore.@Nullable Upload upload;
    private String name = "";
    private int messages;
    private boolean busy;
    private boolean halfClosed;

    Writing(CasTurn turn, ServerCallStreamObserver<WriteResponse> out) {
      this.turn = turn;
      this.out = out;
    }

    @Override
    public void onNext(WriteRequest request) {
      turn.guarded(
          () -> {
            busy = true;
            if (messages == 0) {
              name = request.getResourceName();
              resource = about(turn.call(), name);
              turn.call().came(request, request.getData().size());
              turn.begin(() -> first(request));
            } else {
              turn.call().came(request, request.getData().size());
              take(request);
            }
          });
    }

    private void first(WriteRequest request) {
      CasResource known = resource;
      Status status = serves(known, name);
      if (known == null || !status.isOk()) {
        turn.fail(status);
        return;
      }
      if (known.upload().isEmpty()) {
        turn.fail(Status.INVALID_ARGUMENT.withDescription("no upload: " + name));
        return;
      }
      Digest digest = known.digest();
      boolean there = store.get(digest) != null && store.uploadUnderWay(name) == null;
      if (turn.terms().early || there) {
        messages++;
        answer(known, digest.sizeBytes(), true);
        return;
      }
      BlobStore.Upload going = store.upload(name);
      upload = going;
      if (!going.goBackTo(request.getWriteOffset())) {
        turn.fail(
            Status.OUT_OF_RANGE.withDescription(
                "write_offset " + request.getWriteOffset() + " of " + going.size()));
        return;
      }
      take(request);
    }

    private void take(WriteRequest request) {
      BlobStore.Upload going = upload;
      CasResource known = resource;
      if (going == null || known == null) {
        return;
      }
      if (request.getWriteOffset() != going.size()) {
        turn.fail(
            Status.INVALID_ARGUMENT.withDescription(
                "write_offset " + request.getWriteOffset() + " (expected: " + going.size() + ")"));
        return;
      }
      if (!request.getResourceName().isEmpty() && !request.getResourceName().equals(name)) {
        turn.fail(Status.INVALID_ARGUMENT.withDescription("another resource name in mid-stream"));
        return;
      }
      going.add(request.getData().toByteArray());
      messages++;
      if (turn.stopsAt(messages)) {
        return;
      }
      if (request.getFinishWrite()) {
        finish(known, going);
        return;
      }
      if (turn.terms().pace.isZero()) {
        more();
      } else {
        turn.later(turn.terms().pace, this::more);
      }
    }

    private void more() {
      busy = false;
      if (halfClosed) {
        unfinished();
      } else {
        out.request(1);
      }
    }

    private void finish(CasResource known, BlobStore.Upload going) {
      store.over(name);
      Status taken = store.take(known.digest(), going.content(), known.compressed());
      if (taken.isOk()) {
        answer(known, going.size(), false);
      } else {
        turn.fail(taken);
      }
    }

    private void answer(CasResource known, long travelled, boolean early) {
      long size =
          switch (turn.terms().committed) {
            case CORRECT -> early && known.compressed() ? -1 : travelled;
            case UNCOMPRESSED -> known.digest().sizeBytes();
            case TRAVELLED -> travelled;
            case MINUS_ONE -> -1;
            case WRONG -> travelled - 1;
          };
      out.onNext(WriteResponse.newBuilder().setCommittedSize(size).build());
      turn.complete();
    }

    /** The client ended its part without a last request: what came is kept. */
    private void unfinished() {
      BlobStore.Upload going = upload;
      out.onNext(
          WriteResponse.newBuilder().setCommittedSize(going == null ? 0 : going.size()).build());
      turn.complete();
    }

    @Override
    public void onError(Throwable cancelled) {
      // what came is kept: the client may go on
    }

    @Override
    public void onCompleted() {
      turn.guarded(
          () -> {
            halfClosed = true;
            if (!busy) {
              unfinished();
            }
          });
    }
  }

  @Override
  public void queryWriteStatus(
      QueryWriteStatusRequest request, StreamObserver<QueryWriteStatusResponse> observer) {
    ServerCallStreamObserver<QueryWriteStatusResponse> out =
        (ServerCallStreamObserver<QueryWriteStatusResponse>) observer;
    CasTurn turn = new CasTurn(house, CasCallRecord.KEY.get(), out);
    CasResource resource = about(turn.call(), request.getResourceName());
    turn.call().came(request, 0);
    turn.begin(
        () -> {
          if (turn.terms().reply instanceof QueryWriteStatusResponse reply) {
            out.onNext(reply);
            turn.complete();
            return;
          }
          BlobStore.Upload going = store.uploadUnderWay(request.getResourceName());
          QueryWriteStatusResponse.Builder answer = QueryWriteStatusResponse.newBuilder();
          if (going != null) {
            answer.setCommittedSize(going.size());
          } else if (resource != null && store.get(resource.digest()) != null) {
            answer.setCommittedSize(resource.digest().sizeBytes()).setComplete(true);
          } else {
            turn.fail(Status.NOT_FOUND.withDescription("no upload " + request.getResourceName()));
            return;
          }
          out.onNext(answer.build());
          turn.complete();
        });
  }
}
