package dev.timebound.demo.bigtable;

/**
 * What a load came to.
 *
 * @param requests reads begun since measuring began, open scans included
 * @param errors reads that ended with an error or were still unanswered after the last wait, from
 *     the first second of the run on
 * @param lost rows that should have come and did not
 * @param doubled rows that came twice
 * @param wrong rows out of order, with a content not theirs, or that nobody asked for
 * @param p50Millis half of the reads (points and short scans) took no longer, from the moment they
 *     should have begun
 * @param overOneSecond reads that took more than 1 s
 * @param slowestMillis the slowest of all reads
 * @param silenceMillis the longest time an open scan gave nothing though its reader wanted rows
 * @param rows rows received
 * @param firstError the first error's text; empty where there was none
 */
public record LoadFigures(
    long requests,
    long errors,
    long lost,
    long doubled,
    long wrong,
    double p50Millis,
    double p99Millis,
    double p999Millis,
    long overOneSecond,
    long slowestMillis,
    long silenceMillis,
    long rows,
    String firstError) {}
