package dev.timebound.bench;

import dev.timebound.demo.bigtable.Target;
import java.io.IOException;

/** The contestants of the scan. */
enum ScanMode {
  RAW("raw ClientCall, parses only", RawScan::new),
  GOOGLE_ASYNC("Google, async observer", GoogleScan::observer),
  GOOGLE_ITERATOR("Google, blocking iterator", GoogleScan::iterator),
  TIMEBOUND("Timebound", TimeboundScan::byDefault),
  TIMEBOUND_LOOP("Timebound, delivery on the loop", TimeboundScan::onTheLoop);

  private final String title;
  private final Connect connect;

  ScanMode(String title, Connect connect) {
    this.title = title;
    this.connect = connect;
  }

  String title() {
    return title;
  }

  ScanClient connect(Target target) throws IOException {
    return connect.to(target);
  }

  private interface Connect {
    ScanClient to(Target target) throws IOException;
  }
}
