/** Bigtable reads under a stalled connection: the load, the variants, the account of each row. */
@NullMarked
package dev.timebound.demo.bigtable;

import org.jspecify.annotations.NullMarked;
