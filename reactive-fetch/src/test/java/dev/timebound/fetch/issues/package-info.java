/** What users of other systems reported of fetches, each named after its symptom. */
@NullMarked
package dev.timebound.fetch.issues;

import org.jspecify.annotations.NullMarked;
