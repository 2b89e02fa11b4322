package dev.timebound.cas;

/**
 * A blob that is on its home shard.
 *
 * @param wasThere the server said before it had all bytes that it needs no more: it has the blob
 *     already
 */
public record WriteResult(Digest digest, boolean wasThere) {}
