@NullMarked
package dev.timebound.fetch.s3;

import org.jspecify.annotations.NullMarked;
