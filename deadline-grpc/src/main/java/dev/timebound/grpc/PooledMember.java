package dev.timebound.grpc;

import dev.timebound.health.Member;

/** A channel of the pool, as the health engine sees it. */
interface PooledMember extends Member {}
