/** The demo's Postgres scenario: a standby that freezes, falls behind, and dies. */
@NullMarked
package dev.timebound.demo.pg;

import org.jspecify.annotations.NullMarked;
