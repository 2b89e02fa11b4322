/** The demo's CAS scenario: a ring of stores of which one is killed and another freezes. */
@NullMarked
package dev.timebound.demo.cas;

import org.jspecify.annotations.NullMarked;
