package dev.timebound.demo.pg;

/**
 * What a load came to.
 *
 * @param reads reads begun since measuring began
 * @param errors reads that failed or had no answer after the last wait, from the first second on
 * @param p50Millis half of the reads took no longer, from the moment each should have begun
 * @param overThreeSeconds reads that took more than 3 s
 * @param byReader answers of the reader
 * @param byWriter answers of the writer
 * @param left reads whose caller left
 * @param stale answers older than the demo's reads ask for
 * @param writes writes committed
 * @param writeErrors writes that failed or never ended
 * @param slowestWriteMillis the slowest write
 * @param firstError the first error's text; empty where there was none
 */
record Figures(
    long reads,
    long errors,
    double p50Millis,
    double p99Millis,
    long slowestMillis,
    long overThreeSeconds,
    long byReader,
    long byWriter,
    long left,
    long stale,
    long writes,
    long writeErrors,
    long slowestWriteMillis,
    String firstError) {}
