package dev.timebound.health;

/**
 * How a probe ended, where it ended by itself. A probe that runs into its limit is the engine's to
 * see.
 */
public enum ProbeAnswer {
  /** The backend said something, an error status too: the member lives. */
  ANSWERED,
  /** The connection failed under the probe. */
  CONNECTION_FAILED,
  /** It could not be sent for a reason that says nothing about the member: counts neither way. */
  NOT_SENT
}
