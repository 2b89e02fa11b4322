package dev.timebound.demo.cas;

import java.util.Map;

/**
 * What a load came to.
 *
 * @param calls calls begun since measuring began
 * @param unanswered calls not answered long after their deadline; these and all that is wrong or
 *     failed from the first second on
 * @param errors calls that failed, by status
 * @param p50Millis half of the calls took no longer, from the moment each should have begun
 * @param unknownKeys keys of which a check said that it does not know
 * @param wrong reads with wrong bytes, and keys said to be there that are not
 * @param falseMissing blobs said to be missing that are there
 * @param mirroredReads reads of mirrored blobs
 * @param failedMirroredReads of these, those that failed or were not answered
 * @param firstFailedMirrored why the first of them failed; empty where none did
 */
record Figures(
    long calls,
    long unanswered,
    Map<String, Long> errors,
    double p50Millis,
    double p99Millis,
    long slowestMillis,
    long unknownKeys,
    long wrong,
    long falseMissing,
    long mirroredReads,
    long failedMirroredReads,
    String firstFailedMirrored) {}
