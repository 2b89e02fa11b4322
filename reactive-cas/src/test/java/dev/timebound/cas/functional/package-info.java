/** On real servers. */
@NullMarked
package dev.timebound.cas.functional;

import org.jspecify.annotations.NullMarked;
