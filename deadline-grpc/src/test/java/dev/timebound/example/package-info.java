/** The examples of the docs, as tests, by the public API alone. */
@NullMarked
package dev.timebound.example;

import org.jspecify.annotations.NullMarked;
