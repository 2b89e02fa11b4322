package dev.timebound.test;

import java.net.InetSocketAddress;

/**
 * One connection that a client made through a {@link FaultProxy}: what it carried, and faults for
 * it alone.
 *
 * <p>Reads are of the moment and may be made from any thread. Faults take effect before the method
 * returns, save on a thread that may not block (an event loop, a Reactor worker), where they take
 * effect soon after. On a connection that is closed they do nothing.
 */
public interface ProxyConnection {

  /** What a connection is doing. */
  enum State {
    /** Accepted; the connection to the server is being made. */
    CONNECTING,
    /** Bytes are passed on. */
    OPEN,
    /** Stalled: the sockets stay open and nothing is passed on. */
    FROZEN,
    /** Accepted and never answered; no connection to the server was made. */
    SILENT,
    /** Over, on both sides. */
    CLOSED
  }

  /** Its number, from 1, in the order in which the proxy accepted. */
  long id();

  /** The client's end, by whose port a test can tell whose connection it is. */
  InetSocketAddress client();

  /** What it is doing now. */
  State state();

  /** Bytes passed on from the client to the server. */
  long bytesToServer();

  /** Bytes passed on from the server to the client. */
  long bytesToClient();

  /** Bytes passed on either way in about the last second. */
  long recentBytes();

  /**
   * How often the direction turned from client to server to client again. On a connection of
   * request and response that is the number of round trips; where many calls share it (HTTP/2) it
   * is a lower bound.
   */
  long roundTrips();

  /** Stalls it, both ways, as {@link FaultProxy#freezeEstablished()} does all of them. */
  void freeze();

  /** Ends its stall; what was held is passed on first, in order. */
  void thaw();

  /** Resets it (TCP RST) on both sides; what was under way is lost. */
  void cut();

  /** Closes it in order (TCP FIN) on both sides, frozen or not; what was still held is lost. */
  void hangUp();
}
