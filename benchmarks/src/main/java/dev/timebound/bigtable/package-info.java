@NullMarked
package dev.timebound.bigtable;

import org.jspecify.annotations.NullMarked;
