@NullMarked
package dev.timebound.bench;

import org.jspecify.annotations.NullMarked;
