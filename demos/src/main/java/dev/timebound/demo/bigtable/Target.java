package dev.timebound.demo.bigtable;

/** Where the rows stand: a plaintext server on this machine, and a table of it. */
public record Target(int port, String project, String instance, String table) {}
