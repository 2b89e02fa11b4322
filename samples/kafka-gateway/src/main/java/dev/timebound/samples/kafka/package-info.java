/** A server that speaks the Kafka protocol, so that unchanged Kafka clients read through it. */
@NullMarked
package dev.timebound.samples.kafka;

import org.jspecify.annotations.NullMarked;
