package dev.timebound.demo.bigtable;

import com.google.protobuf.ByteString;

/**
 * A row as every client gives it, whatever its own model is: its key, and the values of its cells
 * one after the other.
 */
public record DemoRow(String key, ByteString value) {}
