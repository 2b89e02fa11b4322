package dev.timebound.health;

/**
 * The member that served this request was quarantined: the request failed locally and may be sent
 * to another member.
 */
public final class QuarantinedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public QuarantinedException(String group, String member, String reason) {
    super("quarantine: " + group + "/" + member + " (" + reason + ")", null, false, false);
  }
}
