package dev.timebound.deadline;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * A deadline in the headers of a request, in and out (DL-7); of any protocol, since headers are
 * handed in as functions.
 *
 * <pre>{@code
 * var in = headers.read(request.getHeaders()::getFirst);        // at the server's edge
 * return in.isRefused() ? badRequest(in.refusal()) : handle(request).transform(Deadlines.of(in.deadline()));
 *
 * if (!headers.write(deadline, request::header)) { ... }        // at the client's: nothing is left to send
 * }</pre>
 *
 * <p>Read are, by default, {@code grpc-timeout}, {@code X-Request-Timeout} in seconds and {@code
 * x-envoy-expected-rq-timeout-ms} in milliseconds; where several are there, the shortest counts. A
 * caller can shorten the time and never lengthen it beyond the ceiling; without a header the
 * default counts. No value makes these methods throw.
 *
 * <p>Immutable and safe from any thread.
 */
public final class DeadlineHeaders {
  /** 30 s: the default of {@link Builder#defaultBudget}. */
  public static final Duration DEFAULT_BUDGET = Duration.ofSeconds(30);

  /** 60 s: the default of {@link Builder#ceiling}. */
  public static final Duration DEFAULT_CEILING = Duration.ofSeconds(60);

  /** 5 ms: the default of {@link Builder#margin}. */
  public static final Duration DEFAULT_MARGIN = Duration.ofMillis(5);

  private final List<Header> read;
  private final List<Header> send;
  private final @Nullable Duration defaultBudget;
  private final @Nullable Duration ceiling;
  private final Duration margin;
  private final boolean refuseMalformed;
  private final @Nullable Scheduler scheduler;

  private record Header(String name, TimeoutUnit unit) {}

  /**
   * What a request's headers came to.
   *
   * @param deadline from now; {@link Deadline#none()} where neither a header nor a setting gives
   *     one. Of a refused request too
   * @param refusal what was malformed, for the answer to the caller; null where nothing was, or
   *     where it is ignored
   */
  public record Incoming(Deadline deadline, @Nullable String refusal) {
    /** Whether the request is to be refused, as HTTP's 400, for a malformed header. */
    public boolean isRefused() {
      return refusal != null;
    }
  }

  private DeadlineHeaders(Builder settings) {
    this.read = List.copyOf(settings.read);
    this.send = List.copyOf(settings.send);
    this.defaultBudget = settings.defaultBudget;
    this.ceiling = settings.ceiling;
    this.margin = settings.margin;
    this.refuseMalformed = settings.refuseMalformed;
    this.scheduler = settings.scheduler;
  }

  /** With the defaults. */
  public static DeadlineHeaders create() {
    return builder().build();
  }

  /** For other settings than the defaults. */
  public static Builder builder() {
    return new Builder();
  }

  /**
   * The deadline that a request came with, counted from now. A value of zero is a deadline that has
   * passed.
   *
   * @param first gives a header's first value; null where the request has none of that name
   */
  public Incoming read(Function<? super String, ? extends @Nullable String> first) {
    Duration shortest = null;
    String malformed = null;
    for (Header header : read) {
      String value = first.apply(header.name);
      if (value == null) {
        continue;
      }
      Duration parsed = header.unit.parse(value);
      if (parsed == null) {
        malformed = header.name + ": " + shown(value) + " (expected: " + header.unit.form() + ")";
      } else if (shortest == null || parsed.compareTo(shortest) < 0) {
        shortest = parsed;
      }
    }
    Duration given = shortest == null ? defaultBudget : shortest;
    Duration most = ceiling;
    if (most != null && (given == null || most.compareTo(given) < 0)) {
      given = most;
    }
    Deadline deadline = given == null ? Deadline.none() : Deadline.after(given, clock());
    return new Incoming(deadline, refuseMalformed ? malformed : null);
  }

  /**
   * Writes what is left of the deadline, less the margin, rounded down: to the millisecond, in
   * {@code grpc-timeout} to the finest unit that holds it. {@link Deadline#none()} writes nothing.
   *
   * @param set sets a header's only value
   * @return false where nothing would be left for the receiver: nothing was written, and there is
   *     no use in sending the request
   */
  public boolean write(Deadline deadline, BiConsumer<? super String, ? super String> set) {
    if (deadline.isNone()) {
      return true;
    }
    long left = deadline.remainingNanos() - Durations.nanos(margin);
    List<String> values = new ArrayList<>(send.size());
    for (Header header : send) {
      String value = left <= 0 ? null : header.unit.format(left);
      if (value == null) {
        return false;
      }
      values.add(value);
    }
    for (int i = 0; i < values.size(); i++) {
      set.accept(send.get(i).name, values.get(i));
    }
    return left > 0;
  }

  private Scheduler clock() {
    return scheduler == null ? Schedulers.parallel() : scheduler;
  }

  /** It goes into answers and logs: short, and nothing in it but printable ASCII. */
  private static String shown(String value) {
    String start = value.length() <= 32 ? value : value.substring(0, 32) + "...";
    return '"' + start.replaceAll("[^ -~]|\"", "?") + '"';
  }

  /** The settings of {@link DeadlineHeaders}; each is checked at once. Not thread-safe. */
  public static final class Builder {
    private List<Header> read =
        List.of(
            new Header("grpc-timeout", TimeoutUnit.GRPC),
            new Header("X-Request-Timeout", TimeoutUnit.SECONDS),
            new Header("x-envoy-expected-rq-timeout-ms", TimeoutUnit.MILLISECONDS));
    private List<Header> send = List.of(new Header("X-Request-Timeout", TimeoutUnit.SECONDS));
    private boolean ownRead;
    private boolean ownSend;
    private @Nullable Duration defaultBudget = DEFAULT_BUDGET;
    private @Nullable Duration ceiling = DEFAULT_CEILING;
    private Duration margin = DEFAULT_MARGIN;
    private boolean refuseMalformed;
    private @Nullable Scheduler scheduler;

    private Builder() {}

    /** Reads this header; the first call replaces the defaults, further ones add to it. */
    public Builder read(String name, TimeoutUnit unit) {
      read = plus(ownRead ? read : List.of(), "read", name, unit);
      ownRead = true;
      return this;
    }

    /**
     * Writes this header; the first call replaces the default, {@code X-Request-Timeout} in
     * seconds, further ones add to it.
     */
    public Builder send(String name, TimeoutUnit unit) {
      send = plus(ownSend ? send : List.of(), "send", name, unit);
      ownSend = true;
      return this;
    }

    /** What a request without a header, or with an ignored one, has: 30 s by default, above 0. */
    public Builder defaultBudget(Duration budget) {
      this.defaultBudget = positive("defaultBudget", budget);
      return this;
    }

    /** A request without a header has the ceiling, and without a ceiling no deadline. */
    public Builder noDefaultBudget() {
      this.defaultBudget = null;
      return this;
    }

    /** The most that any request has, the default's too: 60 s by default, above 0. */
    public Builder ceiling(Duration ceiling) {
      this.ceiling = positive("ceiling", ceiling);
      return this;
    }

    /** A caller may have as much time as it asks for. */
    public Builder noCeiling() {
      this.ceiling = null;
      return this;
    }

    /** What is kept of the time left when it is sent on: 5 ms by default, 0 or more. */
    public Builder margin(Duration margin) {
      if (margin.isNegative()) {
        throw new IllegalArgumentException("margin: " + margin + " (expected: >= 0)");
      }
      this.margin = margin;
      return this;
    }

    /**
     * Whether a malformed value refuses the request ({@link Incoming#isRefused()}); by default it
     * is ignored, as if the header were not there.
     */
    public Builder refuseMalformed(boolean refuse) {
      this.refuseMalformed = refuse;
      return this;
    }

    /** Whose clock the deadlines run on; {@link Schedulers#parallel()}'s by default. */
    public Builder scheduler(Scheduler scheduler) {
      this.scheduler = Objects.requireNonNull(scheduler, "scheduler");
      return this;
    }

    /** The codec with these settings. */
    public DeadlineHeaders build() {
      return new DeadlineHeaders(this);
    }

    private static List<Header> plus(
        List<Header> before, String setting, String name, TimeoutUnit unit) {
      Objects.requireNonNull(unit, "unit");
      if (name.isBlank()) {
        throw new IllegalArgumentException(setting + ": \"" + name + "\" (expected: a name)");
      }
      List<Header> all = new ArrayList<>(before);
      all.add(new Header(name, unit));
      return all;
    }

    private static Duration positive(String setting, Duration value) {
      if (value.isZero() || value.isNegative()) {
        throw new IllegalArgumentException(setting + ": " + value + " (expected: > 0)");
      }
      return value;
    }
  }
}
