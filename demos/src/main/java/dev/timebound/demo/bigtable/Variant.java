package dev.timebound.demo.bigtable;

import java.io.IOException;

/** The clients that the demo puts side by side, in the order in which they run. */
public enum Variant {
  GOOGLE_POOL("Google\npool of 10", GoogleReadClient::pooled),
  GOOGLE_SINGLE("Google\npool of 1", GoogleReadClient::ofEmulatorBuilder),
  TIMEBOUND_RULES_OFF("Timebound\nrules off", TimeboundReadClient::withRulesOff),
  TIMEBOUND("Timebound", TimeboundReadClient::withDefaults);

  private final String title;
  private final Connect connect;

  Variant(String title, Connect connect) {
    this.title = title;
    this.connect = connect;
  }

  /** Heading of its column; {@code \n} parts its lines. */
  public String title() {
    return title;
  }

  /** Its name on one line. */
  public String label() {
    return title.replace("\n", ", ");
  }

  public ReadClient connect(Target target) throws IOException {
    return connect.to(target);
  }

  private interface Connect {
    ReadClient to(Target target) throws IOException;
  }
}
