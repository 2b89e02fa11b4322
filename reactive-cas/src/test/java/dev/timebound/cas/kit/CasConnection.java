package dev.timebound.cas.kit;

import java.net.InetSocketAddress;

/**
 * One HTTP/2 connection to a {@link ScriptedCas}. Reads are of the moment, from any thread; what it
 * is told to do is done soon after the method returns.
 */
public interface CasConnection {

  /** Its number, from 1, in the order in which they were accepted. */
  int id();

  /** The client's end. */
  InetSocketAddress client();

  /** Whether it is open. */
  boolean isOpen();

  /** Calls on it that have not ended. */
  int openCalls();

  /** RST_STREAM frames that the client sent. */
  int resetsReceived();

  /** PING frames that the client sent, answers to the server's not counted. */
  int pingsReceived();

  /** GOAWAY of NO_ERROR that keeps every call so far: it takes no new one. */
  void goAway();

  /**
   * Tells the client that it may have so many calls on it at once from here on; returns when the
   * client knows. Calls under way go on.
   */
  void maxStreams(int streams);

  /** Closes it in order (TCP FIN), with all its calls. */
  void close();

  /** Resets it (TCP RST), with all its calls. */
  void reset();

  /**
   * Direct memory that holds something now in gRPC's Netty in this JVM, in bytes: of all
   * connections, on their clients' side too.
   */
  long memoryInUse();
}
