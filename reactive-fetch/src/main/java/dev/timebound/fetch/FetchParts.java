package dev.timebound.fetch;

import dev.timebound.health.KeyedHealth;

/** What all requests of one fetcher use. */
record FetchParts(
    PartitionStore store,
    FetchSettings settings,
    KeyedHealth<TopicPartition> health,
    FetchMeters meters,
    FetchObservations observations,
    Abandonments abandonments,
    CutLog cuts) {}
