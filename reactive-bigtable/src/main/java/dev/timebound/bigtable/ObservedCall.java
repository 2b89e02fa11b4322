package dev.timebound.bigtable;

/** The calls that are observed, as they are named to those who watch. */
enum ObservedCall {
  READ_ROWS("read-rows", "read-rows"),
  /** A read like any other, and told apart by its method only. */
  READ_ROW("read-rows", "read-row"),
  SAMPLE_ROW_KEYS("sample-row-keys", "sample-row-keys"),
  PING_AND_WARM("ping-and-warm", "ping-and-warm");

  /** What the deadline's ledger calls it. */
  final String operation;

  final String observation;
  final String method;
  final String contextualName;

  ObservedCall(String operation, String method) {
    this.operation = "bigtable." + operation;
    this.observation = "timebound." + this.operation;
    this.method = method;
    this.contextualName = "bigtable " + method;
  }
}
