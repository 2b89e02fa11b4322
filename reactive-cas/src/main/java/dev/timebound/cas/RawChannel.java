package dev.timebound.cas;

import io.grpc.ManagedChannel;
import java.util.function.IntSupplier;

/**
 * gRPC's own channel, on at most one connection of its own at a time.
 *
 * @param streamLimit how many streams the server takes on the connection at once, once it is READY
 */
record RawChannel(ManagedChannel channel, IntSupplier streamLimit) {}
