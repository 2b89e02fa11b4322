package dev.timebound.demo.cas;

/** One store of the ring, and what befalls it. Every method blocks until it has. */
interface Store {
  String name();

  String hostAndPort();

  /** Its sockets stay open, and it answers nothing. */
  void freeze();

  void thaw();

  /** It is gone, its connections with it; what it holds stays. */
  void kill();

  /** It is there again, at its address, with what it held. */
  void restart();
}
