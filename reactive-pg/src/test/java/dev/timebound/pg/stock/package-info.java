/**
 * What r2dbc-pool and r2dbc-postgresql by themselves do with a slow, frozen or restarted server:
 * each test shows a symptom that this module exists to end, and goes red when a newer release of
 * theirs has ended it.
 */
@NullMarked
package dev.timebound.pg.stock;

import org.jspecify.annotations.NullMarked;
