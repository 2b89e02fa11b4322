@NullMarked
package dev.timebound.fetch.issues;

import org.jspecify.annotations.NullMarked;
