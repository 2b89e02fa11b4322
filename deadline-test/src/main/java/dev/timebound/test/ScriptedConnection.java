package dev.timebound.test;

import io.netty.handler.codec.http2.Http2Error;
import java.net.InetSocketAddress;

/**
 * One HTTP/2 connection to a {@link ScriptedBigtable}. Reads are of the moment, from any thread;
 * what it is told to do is done on the server's event loop, soon after the method returns.
 */
public interface ScriptedConnection {

  /** Its number, from 1, in the order in which they were accepted. */
  int id();

  /** The client's end. */
  InetSocketAddress client();

  /** Whether it is open. */
  boolean isOpen();

  /** Calls on it that have not ended. */
  int openStreams();

  /** The most calls that were open on it at one time. */
  int peakStreams();

  /** RST_STREAM frames that the client sent. */
  int resetsReceived();

  /** GOAWAY frames that the client sent. */
  int goAwaysReceived();

  /** PING frames that the client sent, answers to ours not counted. */
  int pingsReceived();

  /** WINDOW_UPDATE frames that the client sent for the connection as a whole. */
  int windowUpdatesReceived();

  /** Bytes of DATA that have left on it. */
  long bytesPushed();

  /**
   * GOAWAY of NO_ERROR that keeps every call so far: it takes no new call, and is closed once the
   * last has ended.
   */
  void goAway();

  /** GOAWAY of that code that disowns every call on a stream above {@code lastStreamId}. */
  void goAway(int lastStreamId, Http2Error error);

  /** Closes it in order (TCP FIN), with all its calls. */
  void close();

  /** Resets it (TCP RST), with all its calls. */
  void reset();
}
