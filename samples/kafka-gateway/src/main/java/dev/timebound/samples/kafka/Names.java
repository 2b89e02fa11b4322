package dev.timebound.samples.kafka;

import java.util.regex.Pattern;

/** Which names a topic and a group may have. */
final class Names {
  private static final Pattern TOPIC = Pattern.compile("[a-zA-Z0-9._-]{1,249}");

  private Names() {}

  /** As a broker has it, so that every client can name the topic too. */
  static boolean isTopic(String name) {
    return TOPIC.matcher(name).matches() && !name.equals(".") && !name.equals("..");
  }

  /** Postgres takes no NUL in a text. */
  static boolean isGroup(String id) {
    return !id.isEmpty() && id.indexOf('\0') < 0;
  }

  static boolean isPartition(String topic, int partition) {
    return isTopic(topic) && partition >= 0;
  }
}
