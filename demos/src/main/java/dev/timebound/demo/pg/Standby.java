package dev.timebound.demo.pg;

/** The standby's faults, and what is left of the client on the servers. All methods block. */
interface Standby {
  void freeze();

  void thaw();

  void pauseReplay();

  void resumeReplay();

  void kill();

  void restart();

  /** What has stood on either server for at least half a second. */
  Leftovers leftovers();

  /**
   * Sessions of the client.
   *
   * @param idleInTransaction with a transaction open and nothing running
   * @param running with a statement running
   */
  record Leftovers(long idleInTransaction, long running) {
    Leftovers worse(Leftovers other) {
      return new Leftovers(
          Math.max(idleInTransaction, other.idleInTransaction), Math.max(running, other.running));
    }
  }
}
