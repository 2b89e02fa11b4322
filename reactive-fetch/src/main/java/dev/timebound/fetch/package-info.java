/** Reads of many log partitions in one request, each within its share of the deadline. */
@NullMarked
package dev.timebound.fetch;

import org.jspecify.annotations.NullMarked;
