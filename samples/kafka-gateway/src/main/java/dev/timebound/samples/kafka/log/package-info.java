/** Where the gateway keeps topics and takes appends; reads go through reactive-fetch. */
@NullMarked
package dev.timebound.samples.kafka.log;

import org.jspecify.annotations.NullMarked;
