package dev.timebound.cas;

import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * What gRPC's transport says of a connection or an answer, in one line that can be acted upon: the
 * innermost cause, without pipelines, dumps and class names, and a hint where TLS meets plain text.
 */
final class TransportWords {
  /** What gRPC begins with where HTTP answered, and no gRPC server. */
  private static final String HTTP = "HTTP status code ";

  /** Said of every failure of a socket. */
  private static final String NOTHING = "io exception";

  private static final String NOT_TLS = "not an SSL/TLS record";
  private static final String NOT_SETTINGS = "First received frame was not SETTINGS";

  /** How TLS says on the wire that it did not understand: an alert. */
  private static final String TLS_ALERT = "first 5 bytes: 15";

  private static final Pattern CLASS = Pattern.compile("\\b(\\w+\\.)+[\\w$]*(Exception|Error): ");

  private TransportWords() {}

  /** Whether no gRPC server answered, but something in its place: a proxy whose server is away. */
  static boolean isForeign(@Nullable String description) {
    return description != null && description.startsWith(HTTP);
  }

  /** One line; empty where nothing is said. */
  static String of(@Nullable String description, @Nullable Throwable cause) {
    String text = description == null ? "" : description;
    if (isForeign(text)) {
      return foreign(text);
    }
    String line = line(text);
    String inner = line(innermost(cause));
    if (!line.contains(inner)) {
      line = line.isEmpty() || line.equals(NOTHING) ? inner : line + ": " + inner;
    }
    return hinted(CLASS.matcher(line).replaceAll(""));
  }

  /** The first two lines: the code, and what is wrong with its content type. */
  private static String foreign(String text) {
    String[] lines = text.split("\n", 3);
    String type = lines.length > 1 && lines[1].contains("content-type") ? ", " + lines[1] : "";
    return lines[0] + type + " (no gRPC server answered)";
  }

  private static String hinted(String line) {
    if (line.contains(NOT_TLS)) {
      // without the bytes
      return line.substring(0, line.indexOf(NOT_TLS) + NOT_TLS.length())
          + " (tls is set, and the server answers in plain text)";
    }
    if (line.contains(NOT_SETTINGS)) {
      return line + (line.contains(TLS_ALERT) ? " (the server expects TLS)" : " (no HTTP/2)");
    }
    if (line.contains("Network closed for unknown reason")) {
      return line + " (before HTTP/2 was spoken: does the server expect TLS?)";
    }
    if (line.contains("valid certification path")) {
      return line + " (the server's certificate is none of the trusted)";
    }
    if (line.contains("CERTIFICATE_REQUIRED")) {
      return line + " (the server asks for a client's certificate, and one that it trusts)";
    }
    return line;
  }

  private static String innermost(@Nullable Throwable cause) {
    String message = "";
    for (Throwable inner = cause; inner != null; inner = inner.getCause()) {
      String said = inner.getMessage();
      // one that says more than what it was made of stays
      if (said != null && !message.contains(line(said))) {
        message = said;
      }
    }
    return message;
  }

  private static String line(String text) {
    return text.lines().findFirst().orElse("");
  }
}
