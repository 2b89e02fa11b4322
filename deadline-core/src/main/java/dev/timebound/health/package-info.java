@NullMarked
package dev.timebound.health;

import org.jspecify.annotations.NullMarked;
