/** The contract of a partition store, as tests that any store can run. */
@NullMarked
package dev.timebound.fetch.kit;

import org.jspecify.annotations.NullMarked;
