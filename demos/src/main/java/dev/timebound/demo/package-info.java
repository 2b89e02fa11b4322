@NullMarked
package dev.timebound.demo;

import org.jspecify.annotations.NullMarked;
