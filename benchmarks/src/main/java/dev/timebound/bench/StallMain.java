package dev.timebound.bench;

import dev.timebound.demo.Logs;
import dev.timebound.demo.bigtable.DemoTable;
import dev.timebound.demo.bigtable.LoadFigures;
import dev.timebound.demo.bigtable.LoadPlan;
import dev.timebound.demo.bigtable.Phases;
import dev.timebound.demo.bigtable.StallReport;
import dev.timebound.demo.bigtable.StallTrial;
import dev.timebound.demo.bigtable.Target;
import dev.timebound.demo.bigtable.Variant;

/**
 * A JVM that puts one client through one stall: {@code variant port warmUp normal stalled after}
 * (seconds). Says how it stands once a second.
 */
final class StallMain {
  private StallMain() {}

  public static void main(String[] args) throws Exception {
    Logs.quiet();
    Variant variant = Variant.valueOf(args[0]);
    Target server = new Target(Integer.parseInt(args[1]), "timebound", "bench", Replies.DEMO);
    Phases phases =
        new Phases(
            Integer.parseInt(args[2]),
            Integer.parseInt(args[3]),
            Integer.parseInt(args[4]),
            Integer.parseInt(args[5]));
    StallTrial trial =
        new StallTrial(
            server, new DemoTable(Replies.DEMO_ROWS), LoadPlan.forFastServer(), phases, System.out);
    Usage before = Usage.now();
    StallReport report = trial.run(variant);
    Usage used = Usage.now().since(before);
    if (!report.stalledBusy()) {
      throw new IllegalStateException("no busy connection could be kept stalled");
    }
    LoadFigures f = report.figures();
    System.out.println(
        Figures.none()
            .with("max_ms", f.slowestMillis())
            .with("silence_ms", f.silenceMillis())
            .with("p99_ms", f.p99Millis())
            // load, proxy and client together, the warm-up too: to compare, not to quote
            .with("cpu_us", used.cpuNanos() / 1e3 / f.requests())
            .with("over_1s", f.overOneSecond())
            .with("requests", f.requests())
            .with("errors", f.errors())
            .with("bad_rows", f.lost() + f.doubled() + f.wrong()));
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }
}
