@NullMarked
package dev.timebound.fetch;

import org.jspecify.annotations.NullMarked;
