/**
 * For tests of what stands on a content-addressable store: a scripted store ({@link
 * dev.timebound.cas.kit.ScriptedCas}) for all that a real one cannot be made to do, and real ones
 * ({@link dev.timebound.cas.kit.CasServers}) that can be killed, frozen and started again.
 */
@NullMarked
package dev.timebound.cas.kit;

import org.jspecify.annotations.NullMarked;
