/** Partitions on local disks, as append-only segment files that are read through mappings. */
@NullMarked
package dev.timebound.fetch.segments;

import org.jspecify.annotations.NullMarked;
