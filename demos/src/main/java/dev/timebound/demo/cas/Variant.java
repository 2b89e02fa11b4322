package dev.timebound.demo.cas;

/** What the demo puts side by side, in the order in which they run. */
enum Variant {
  STOCK("gRPC's defaults"),
  TIMEBOUND("Timebound");

  private final String title;

  Variant(String title) {
    this.title = title;
  }

  String title() {
    return title;
  }
}
