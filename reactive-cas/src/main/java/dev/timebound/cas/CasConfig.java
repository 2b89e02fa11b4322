package dev.timebound.cas;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

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
    shards = copy("shards", shards);
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

  private static void given(String setting, @Nullable Object value) {
    if (value == null) {
      throw new IllegalArgumentException(setting + ": null (expected: a value)");
    }
  }

  private static <T> List<T> copy(String setting, @Nullable List<T> values) {
    if (values == null || values.stream().anyMatch(Objects::isNull)) {
      throw new IllegalArgumentException(setting + ": " + values + " (expected: no null)");
    }
    return List.copyOf(values);
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
      given("shard name", name);
      endpoints = copy("endpoints of shard " + name, endpoints);
      given("instanceName of shard " + name, instanceName);
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
      given("host", host);
      if (host.isBlank()) {
        throw new IllegalArgumentException("host: blank (expected: a name or an address)");
      }
      if (port < 1 || port > MAX_PORT) {
        throw new IllegalArgumentException(
            "port of " + host + ": " + port + " (expected: 1 to " + MAX_PORT + ")");
      }
      if (!isHost(host)) {
        throw new IllegalArgumentException(
            "host: "
                + host
                + " (expected: an address, or a name of letters, digits, hyphens and dots)");
      }
    }

    /** As gRPC sees it, which takes for a name what may stand in a URI. */
    private static boolean isHost(String host) {
      try {
        String read = new URI(null, null, host, 1, null, null, null).getHost();
        return host.equals(read) || ("[" + host + "]").equals(read);
      } catch (URISyntaxException e) {
        return false;
      }
    }

    private static final Pattern PORT = Pattern.compile("[0-9]{1,10}", Pattern.DOTALL);

    /** Reads {@code host:port}; an IPv6 address stands in brackets: {@code [::1]:8980}. */
    public static Endpoint parse(String endpoint) {
      int colon = endpoint.lastIndexOf(':');
      if (colon < 0 || !PORT.matcher(endpoint.substring(colon + 1)).matches()) {
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
