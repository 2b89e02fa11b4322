/** Partitions kept as objects in S3, or in a store that speaks its protocol. */
@NullMarked
package dev.timebound.fetch.s3;

import org.jspecify.annotations.NullMarked;
