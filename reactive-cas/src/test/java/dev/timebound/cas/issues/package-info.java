/** What users of content-addressable stores have reported, each by its symptom. */
@NullMarked
package dev.timebound.cas.issues;

import org.jspecify.annotations.NullMarked;
