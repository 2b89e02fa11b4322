@org.jspecify.annotations.NullMarked
package dev.timebound.fetch.pg;
