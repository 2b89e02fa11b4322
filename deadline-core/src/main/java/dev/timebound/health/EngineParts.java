package dev.timebound.health;

import reactor.core.scheduler.Scheduler;

/** What the groups of an engine share. */
record EngineParts(Scheduler scheduler, Clock clock, Telling telling, boolean dryRun) {}
