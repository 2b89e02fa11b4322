package dev.timebound.samples.kafka;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;

/** A socket that sends what a client would not: in any version, any number at once, or garbage. */
final class RawClient implements AutoCloseable {
  private final Socket socket;
  private final DataInputStream in;
  private final DataOutputStream out;
  private final Deque<RequestHeader> sent = new ArrayDeque<>();
  private int correlation;

  /** The length of the last answer, in bytes. */
  int answered;

  RawClient(KafkaGateway gateway) {
    try {
      socket = new Socket();
      socket.setReceiveBufferSize(64 * 1024);
      socket.connect(new java.net.InetSocketAddress("127.0.0.1", gateway.port()));
      socket.setSoTimeout((int) Clients.PATIENCE.toMillis());
      in = new DataInputStream(socket.getInputStream());
      out = new DataOutputStream(socket.getOutputStream());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  RawClient send(ApiMessage request, int version) {
    ApiKeys api = ApiKeys.forId(request.apiKey());
    RequestHeader header = new RequestHeader(api, (short) version, "raw", correlation++);
    sent.add(header);
    sendFrame(frame(header.data(), header.headerVersion(), request, (short) version));
    return this;
  }

  static byte[] frame(
      RequestHeaderData header, short headerVersion, ApiMessage body, short version) {
    ObjectSerializationCache cache = new ObjectSerializationCache();
    ByteBuffer bytes =
        ByteBuffer.allocate(header.size(cache, headerVersion) + body.size(cache, version));
    ByteBufferAccessor to = new ByteBufferAccessor(bytes);
    header.write(to, cache, headerVersion);
    body.write(to, cache, version);
    return bytes.array();
  }

  void sendFrame(byte[] frame) {
    try {
      out.writeInt(frame.length);
      out.write(frame);
      out.flush();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  void sendBytes(byte[] bytes) {
    try {
      out.write(bytes);
      out.flush();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The next answer, which must be that of the request sent first of those unanswered. */
  @SuppressWarnings("unchecked")
  <T extends ApiMessage> T answer() {
    RequestHeader header = sent.remove();
    return (T) AbstractResponse.parseResponse(receive(), header).data();
  }

  <T extends ApiMessage> T ask(ApiMessage request, int version) {
    return send(request, version).answer();
  }

  /** Sends one more, and forgets those before it, which are to have no answer: its batches. */
  int receiveOnlyFor(ApiMessage request, int version) {
    sent.clear();
    org.apache.kafka.common.message.FetchResponseData answer = ask(request, version);
    return Messages.batches(Messages.only(answer));
  }

  ByteBuffer receive() {
    try {
      byte[] frame = new byte[in.readInt()];
      in.readFully(frame);
      answered = frame.length;
      return ByteBuffer.wrap(frame);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Waits for the server's end of the connection. */
  boolean isEnded() {
    try {
      return in.read() < 0;
    } catch (IOException e) {
      return true; // reset: it ended too
    }
  }

  @Override
  public void close() {
    try {
      socket.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
