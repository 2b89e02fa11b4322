package dev.timebound.bigtable;

import com.google.protobuf.ByteString;

/**
 * One sample of a table's keys: where the service would split it.
 *
 * @param key a key, which need not exist; empty stands for the table's end
 * @param offsetBytes about how many bytes of storage all rows before {@code key} take
 */
public record KeyOffset(ByteString key, long offsetBytes) {}
