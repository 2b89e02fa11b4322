/** Side by side against the peers: one run, alternating, fresh JVMs. */
@NullMarked
package dev.timebound.bench;

import org.jspecify.annotations.NullMarked;
