package dev.timebound.cas;

import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * A ring of shards as a configuration file has it. Everything is checked when it is made; an {@link
 * IllegalArgumentException} names the setting, its value and what was expected.
 *
 * @param shards at least one, with different names; their order is part of the mapping (CAS-10)
 */
public record CasConfig(List<Shard> shards) {
  /** Elements that end an instance name in the protocol's resource names. */
  private static final Set<String> RESERVED =
      Set.of(
          "blobs",
          "uploads",
          "actions",
          "actionResults",
          "operations",
          "capabilities",
          "compressed-blobs");

  public CasConfig {
    shards = List.copyOf(shards);
    if (shards.isEmpty()) {
      throw new IllegalArgumentException("shards: none (expected: at least 1)");
    }
    Set<String> names = new HashSet<>();
    for (Shard shard : shards) {
      if (!names.add(shard.name())) {
        throw new IllegalArgumentException(
            "shard name: " + shard.name() + " twice (expected: different names)");
      }
    }
  }

  /** The mapping by weights and order (CAS-10). */
  public ShardSelector weighted() {
    return ShardSelector.weighted(weights());
  }

  /** The mapping by weights and the shards' names as keys, whatever their order (CAS-10a). */
  public ShardSelector rendezvous() {
    return ShardSelector.rendezvous(shards.stream().map(Shard::name).toList(), weights());
  }

  private int[] weights() {
    return shards.stream().mapToInt(Shard::weight).toArray();
  }

  /**
   * One shard.
   *
   * @param name what events, meters and errors call it; not blank
   * @param weight its part of the keys beside the others', at least 1
   * @param endpoints where it can be reached, at least one; all lead to the same store
   * @param instanceName what its server calls the store; empty where the server wants none. No
   *     leading or trailing slash, and no element that the protocol keeps for itself
   */
  public record Shard(String name, int weight, List<Endpoint> endpoints, String instanceName) {
    public Shard {
      endpoints = List.copyOf(endpoints);
      if (name.isBlank()) {
        throw new IllegalArgumentException("shard name: blank (expected: a name)");
      }
      if (weight < 1) {
        throw new IllegalArgumentException(
            "weight of shard " + name + ": " + weight + " (expected: >= 1)");
      }
      if (endpoints.isEmpty()) {
        throw new IllegalArgumentException(
            "endpoints of shard " + name + ": none (expected: at least 1)");
      }
      if (new HashSet<>(endpoints).size() < endpoints.size()) {
        throw new IllegalArgumentException(
            "endpoints of shard " + name + ": " + endpoints + " (expected: each once)");
      }
      requireInstanceName(name, instanceName);
    }

    private static void requireInstanceName(String shard, String instanceName) {
      if (instanceName.isEmpty()) {
        return;
      }
      for (String element : instanceName.split("/", -1)) {
        if (element.isEmpty() || RESERVED.contains(element)) {
          throw new IllegalArgumentException(
              "instanceName of shard "
                  + shard
                  + ": "
                  + instanceName
                  + " (expected: elements with single slashes between them, none of "
                  + RESERVED.stream().sorted().toList()
                  + ")");
        }
      }
    }

    /** A shard of weight 1 with one endpoint and no instance name. */
    public static Shard of(String name, String endpoint) {
      return new Shard(name, 1, List.of(Endpoint.parse(endpoint)), "");
    }
  }

  /**
   * A server's address.
   *
   * @param host a name or an address; an IPv6 address without its brackets
   * @param port 1 to 65535
   */
  public record Endpoint(String host, int port) {
    private static final int MAX_PORT = 65535;

    public Endpoint {
      if (host.isBlank()) {
        throw new IllegalArgumentException("host: blank (expected: a name or an address)");
      }
      if (port < 1 || port > MAX_PORT) {
        throw new IllegalArgumentException(
            "port of " + host + ": " + port + " (expected: 1 to " + MAX_PORT + ")");
      }
    }

    /** Reads {@code host:port}; an IPv6 address stands in brackets: {@code [::1]:8980}. */
    public static Endpoint parse(String endpoint) {
      int colon = endpoint.lastIndexOf(':');
      if (colon < 0) {
        throw unreadable(endpoint);
      }
      String host = endpoint.substring(0, colon);
      if (host.startsWith("[") && host.endsWith("]")) {
        host = host.substring(1, host.length() - 1);
      } else if (host.indexOf(':') >= 0) {
        throw unreadable(endpoint);
      }
      try {
        return new Endpoint(host, Integer.parseInt(endpoint.substring(colon + 1)));
      } catch (NumberFormatException noNumber) {
        throw (IllegalArgumentException) unreadable(endpoint).initCause(noNumber);
      }
    }

    private static IllegalArgumentException unreadable(String endpoint) {
      return new IllegalArgumentException(
          "endpoint: " + endpoint + " (expected: host:port, an IPv6 address in brackets)");
    }

    /** As {@link #parse} reads it. */
    @Override
    public String toString() {
      return (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + port;
    }
  }
}
