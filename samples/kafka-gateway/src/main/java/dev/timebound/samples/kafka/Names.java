package dev.timebound.samples.kafka;

import java.util.regex.Pattern;

/** Which names a topic may have. */
final class Names {
  private static final Pattern TOPIC = Pattern.compile("[a-zA-Z0-9._-]{1,249}");

  private Names() {}

  /** As a broker has it, so that every client can name the topic too. */
  static boolean isTopic(String name) {
    return TOPIC.matcher(name).matches() && !name.equals(".") && !name.equals("..");
  }

  static boolean isPartition(String topic, int partition) {
    return isTopic(topic) && partition >= 0;
  }
}
