@NullMarked
package dev.timebound.pg;

import org.jspecify.annotations.NullMarked;
