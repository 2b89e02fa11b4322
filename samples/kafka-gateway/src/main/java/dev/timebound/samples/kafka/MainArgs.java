package dev.timebound.samples.kafka;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What the command line says.
 *
 * @param advertise HOST:PORT; null for where it listens
 * @param postgres its r2dbc URL, or {@link #EMBEDDED}; null for a log in memory
 * @param segments the directory of a log in segment files; null for none
 * @param nodeId among the gateways of one database
 * @param topics to be made, with their number of partitions
 */
record MainArgs(
    String host,
    int port,
    @Nullable String advertise,
    @Nullable String postgres,
    @Nullable String segments,
    int nodeId,
    Map<String, Integer> topics) {
  /** A Postgres of this process's own, which ends with it. */
  static final String EMBEDDED = "embedded";

  private static final int KAFKA_PORT = 9092;
  private static final int LAST_PORT = 65_535;

  /** More than anybody means, and few enough to be made at once. */
  private static final int MOST_PARTITIONS = 10_000;

  /**
   * @throws IllegalArgumentException whose message is for the one who typed
   */
  static MainArgs parse(String... args) {
    String host = "127.0.0.1";
    int port = KAFKA_PORT;
    String advertise = null;
    String postgres = null;
    String segments = null;
    int nodeId = 0;
    Map<String, Integer> topics = new LinkedHashMap<>();
    Iterator<String> words = List.of(args).iterator();
    while (words.hasNext()) {
      String option = words.next();
      switch (option) {
        case "--host" -> host = value(option, words);
        case "--port" -> port = number(option, value(option, words), 0, LAST_PORT);
        case "--advertise" -> {
          advertise = value(option, words);
          split(option, advertise, 1, LAST_PORT);
        }
        case "--postgres" -> postgres = postgres(option, value(option, words));
        case "--segments" -> segments = value(option, words);
        case "--node" -> nodeId = number(option, value(option, words), 0, Integer.MAX_VALUE);
        case "--topic" -> {
          String[] topic = split(option, value(option, words), 1, MOST_PARTITIONS);
          topics.put(topicName(topic[0]), Integer.parseInt(topic[1]));
        }
        default -> throw new IllegalArgumentException("Unknown option " + option);
      }
    }
    if (postgres != null && segments != null) {
      throw new IllegalArgumentException("--segments: there is a log in --postgres already");
    }
    return new MainArgs(host, port, advertise, postgres, segments, nodeId, topics);
  }

  private static String value(String option, Iterator<String> words) {
    if (!words.hasNext()) {
      throw new IllegalArgumentException(option + " needs a value");
    }
    return words.next();
  }

  private static int number(String option, String value, int least, int most) {
    return number(option, value, value, least, most);
  }

  private static int number(String option, String value, String number, int least, int most) {
    try {
      int parsed = Integer.parseInt(number);
      if (parsed >= least && parsed <= most) {
        return parsed;
      }
    } catch (NumberFormatException e) {
      // told below
    }
    String range = most == Integer.MAX_VALUE ? ">= " + least : least + " to " + most;
    throw new IllegalArgumentException(
        option + ": " + value + " (expected: a number, " + range + ")");
  }

  private static String[] split(String option, String value, int least, int most) {
    int colon = value.lastIndexOf(':');
    if (colon < 1) {
      throw new IllegalArgumentException(option + ": " + value + " (expected: NAME:NUMBER)");
    }
    String number = value.substring(colon + 1);
    number(option, value, number, least, most);
    return new String[] {value.substring(0, colon), number};
  }

  private static String postgres(String option, String value) {
    if (!value.equals(EMBEDDED) && !value.startsWith("r2dbc:postgresql://")) {
      throw new IllegalArgumentException(
          option + ": " + value + " (expected: embedded, or r2dbc:postgresql://…)");
    }
    return value;
  }

  private static String topicName(String name) {
    if (!Names.isTopic(name)) {
      throw new IllegalArgumentException("--topic: " + name + " is no topic's name");
    }
    return name;
  }

  KafkaGatewayBuilder apply(KafkaGatewayBuilder builder) {
    builder.listen(host, port).nodeId(nodeId);
    if (advertise != null) {
      String[] as = split("--advertise", advertise, 1, LAST_PORT);
      builder.advertise(as[0], Integer.parseInt(as[1]));
    }
    return builder;
  }
}
