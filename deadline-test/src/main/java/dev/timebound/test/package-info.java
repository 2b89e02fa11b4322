@NullMarked
package dev.timebound.test;

import org.jspecify.annotations.NullMarked;
