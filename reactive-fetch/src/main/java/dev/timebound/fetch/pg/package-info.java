/** Partitions kept in Postgres, over reactive-pg. */
@NullMarked
package dev.timebound.fetch.pg;

import org.jspecify.annotations.NullMarked;
