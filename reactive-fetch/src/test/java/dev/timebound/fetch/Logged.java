package dev.timebound.fetch;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.slf4j.LoggerFactory;

/** What a class logs while it is open. */
final class Logged extends AppenderBase<ILoggingEvent> implements AutoCloseable {
  private final Logger logger;
  private final Level before;
  private final List<ILoggingEvent> events = new CopyOnWriteArrayList<>();

  private Logged(Logger logger) {
    this.logger = logger;
    this.before = logger.getLevel();
    logger.setLevel(Level.DEBUG);
    start();
    logger.addAppender(this);
  }

  static Logged of(Class<?> loggedAs) {
    return new Logged((Logger) LoggerFactory.getLogger(loggedAs));
  }

  List<ILoggingEvent> warnings() {
    return events.stream().filter(event -> event.getLevel() == Level.WARN).toList();
  }

  List<ILoggingEvent> debugs() {
    return events.stream().filter(event -> event.getLevel() == Level.DEBUG).toList();
  }

  @Override
  protected void append(ILoggingEvent event) {
    events.add(event);
  }

  @Override
  public void close() {
    logger.detachAppender(this);
    logger.setLevel(before);
    stop();
  }
}
