package dev.timebound.demo;

import java.util.logging.LogManager;

/** Keeps other libraries' logs out of what a demo or a benchmark prints. */
public final class Logs {
  private Logs() {}

  /**
   * Silences java.util.logging, through which gRPC, Google's client and its emulator speak (the
   * emulator lacks two calls that Google's client tries and warns about). Logback has its own
   * settings.
   */
  public static void quiet() {
    LogManager.getLogManager().reset();
  }
}
