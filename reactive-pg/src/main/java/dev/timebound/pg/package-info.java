/** Postgres reads routed between replicas and the writer, each within its deadline. */
@NullMarked
package dev.timebound.pg;

import org.jspecify.annotations.NullMarked;
