@NullMarked
package dev.timebound.deadline;

import org.jspecify.annotations.NullMarked;
