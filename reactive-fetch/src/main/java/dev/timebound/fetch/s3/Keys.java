package dev.timebound.fetch.s3;

import dev.timebound.fetch.TopicPartition;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/**
 * Where things are in the bucket.
 *
 * <pre>
 * PREFIX topics/TOPIC                             how many partitions it has
 * PREFIX logs/TOPIC/PARTITION/log/REVERSED-BASE   batches, named by the first one's offset
 * PREFIX logs/TOPIC/PARTITION/0start/REVERSED-OFFSET   where the partition starts
 * </pre>
 *
 * <p>A listing is in the order of its keys, and starts after any one. REVERSED is 2^63 − 1 − the
 * offset, so that the newest object comes first, and one key of a listing tells which object holds
 * an offset: the first that is not above it. Nothing else is part of the name, so that two writers
 * of one offset want the same key.
 */
final class Keys {
  private static final int DIGITS = 20;

  private final String prefix;

  Keys(String prefix) {
    this.prefix = prefix;
  }

  String topic(String topic) {
    return prefix + "topics/" + escaped(topic);
  }

  String topics() {
    return prefix + "topics/";
  }

  /** Of the start and the log, the start first. */
  String partition(TopicPartition of) {
    return prefix + "logs/" + escaped(of.topic()) + "/" + of.partition() + "/";
  }

  String log(TopicPartition of) {
    return partition(of) + "log/";
  }

  String starts(TopicPartition of) {
    return partition(of) + "0start/";
  }

  String object(TopicPartition of, long base) {
    return log(of) + name(base);
  }

  String start(TopicPartition of, long offset) {
    return starts(of) + name(offset);
  }

  /** Sorts before the object of that base, and after those above it. */
  String before(TopicPartition of, long base) {
    return log(of) + reversed(base);
  }

  private static String name(long offset) {
    return reversed(offset) + "-" + digits(offset);
  }

  private static String reversed(long offset) {
    return digits(Long.MAX_VALUE - offset);
  }

  private static String digits(long number) {
    return String.format(Locale.ROOT, "%0" + DIGITS + "d", number);
  }

  /** The offset in an object's key, or a start's. */
  static long offset(String key) {
    String name = key.substring(key.lastIndexOf('/') + 1);
    try {
      long offset = Long.parseLong(name.substring(DIGITS + 1));
      if (name.equals(name(offset))) {
        return offset;
      }
    } catch (NumberFormatException | IndexOutOfBoundsException e) {
      // told below
    }
    throw new S3StoreException("key: " + key + " (expected: one that this store named)", null);
  }

  /** Letters, digits, {@code - _} and dots within; of all else its bytes, as {@code !2F}. */
  static String escaped(String topic) {
    StringBuilder safe = new StringBuilder(topic.length());
    for (byte each : topic.getBytes(StandardCharsets.UTF_8)) {
      char c = (char) (each & 0xff);
      boolean plain =
          (c >= 'a' && c <= 'z')
              || (c >= 'A' && c <= 'Z')
              || (c >= '0' && c <= '9')
              || c == '-'
              || c == '_'
              || (c == '.' && safe.length() > 0);
      if (plain) {
        safe.append(c);
      } else {
        safe.append('!').append(String.format(Locale.ROOT, "%02X", (int) c));
      }
    }
    return safe.toString();
  }
}
