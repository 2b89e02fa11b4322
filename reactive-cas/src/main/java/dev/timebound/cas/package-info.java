/** Content-addressable storage on a ring of shards. */
@NullMarked
package dev.timebound.cas;

import org.jspecify.annotations.NullMarked;
