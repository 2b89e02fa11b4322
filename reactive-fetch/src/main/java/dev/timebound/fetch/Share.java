package dev.timebound.fetch;

/**
 * One partition's part of a request's time, fixed when its turn starts; in nanoseconds from the
 * start of the request.
 *
 * @param cap the end: what is not there by then is abandoned
 * @param margin how long before the cap the store's budget ends at the latest, so that what it
 *     assembled is handed over before it is abandoned (FE-3)
 */
record Share(long start, long cap, long margin) {
  long length() {
    return cap - start;
  }
}
