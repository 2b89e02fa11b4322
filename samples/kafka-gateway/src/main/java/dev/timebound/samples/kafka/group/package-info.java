/** Consumer groups: who reads which partition, and how far they came. */
@NullMarked
package dev.timebound.samples.kafka.group;

import org.jspecify.annotations.NullMarked;
