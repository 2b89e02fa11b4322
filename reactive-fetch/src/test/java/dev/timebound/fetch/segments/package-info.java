@NullMarked
package dev.timebound.fetch.segments;

import org.jspecify.annotations.NullMarked;
