@NullMarked
package dev.timebound.grpc;

import org.jspecify.annotations.NullMarked;
