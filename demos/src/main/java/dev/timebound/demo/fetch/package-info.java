/** The demo's Fetch scenario: one partition of three stalls while unchanged Kafka clients read. */
@NullMarked
package dev.timebound.demo.fetch;

import org.jspecify.annotations.NullMarked;
