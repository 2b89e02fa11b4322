package dev.timebound.pg;

import reactor.blockhound.BlockHound;
import reactor.blockhound.integration.BlockHoundIntegration;

/**
 * The driver makes its TLS context on the event loop, and the JDK seeds that from /dev/urandom: a
 * read of a file, which never waits. Netty's allocator has a lock of its own, held for a moment.
 */
public final class DriversBlocking implements BlockHoundIntegration {
  @Override
  public void applyTo(BlockHound.Builder builder) {
    builder
        .allowBlockingCallsInside("sun.security.provider.NativePRNG$RandomIO", "readFully")
        .allowBlockingCallsInside(
            "io.netty.buffer.AdaptivePoolingAllocator$MagazineGroup", "tryExpandMagazines");
  }
}
