package dev.timebound.cas.kit;

import dev.timebound.cas.Digest;
import dev.timebound.cas.DigestFunction;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A content-addressable store in this JVM that is correct until a test tells it not to be: a real
 * gRPC server on a real port, blobs in memory, digests checked on write.
 *
 * <pre>{@code
 * try (ScriptedCas server = ScriptedCas.start()) {
 *   Digest digest = server.put("content");
 *   server.reads().next(CasScript.status(Status.UNAVAILABLE));   // one call; then it is correct again
 *   // a client for server.hostAndPort() reads; then
 *   assertThat(server.reads().awaitCall(2).resourceName()).isEqualTo("blobs/" + digest);
 *   server.awaitOpenCalls(0);
 * }
 * }</pre>
 *
 * <p>It does not heed the client's {@code grpc-timeout}, as a server does not that hangs: only the
 * client ends a call that is not answered. All methods may be called from any thread.
 */
public final class ScriptedCas implements AutoCloseable {
  private final Builder settings;
  private final BlobStore store = new BlobStore();
  private final Map<CasMethod, CasRoute> routes = new EnumMap<>(CasMethod.class);
  private final CasLog log = new CasLog();
  private final CasRooms house;
  private int port;
  private @Nullable HeldPort held;
  private @Nullable CasEngine engine;

  private ScriptedCas(Builder settings) {
    this.settings = settings;
    this.house = new CasRooms(this::route, settings.instanceName, settings.token);
    for (CasMethod method : CasMethod.values()) {
      routes.put(method, new CasRoute(method, this::calls));
    }
    restart();
  }

  /** Starts one with default settings on a free port of the loopback address. */
  public static ScriptedCas start() {
    return builder().start();
  }

  /** Starts one with other settings. */
  public static Builder builder() {
    return new Builder();
  }

  /** The port it listens on; the same after a {@link #restart()}. */
  public synchronized int port() {
    return port;
  }

  /** The address to point a client at: {@code 127.0.0.1:port}. */
  public String hostAndPort() {
    return "127.0.0.1:" + port();
  }

  // ---- what it has

  /** Puts a blob there, and names it. */
  public Digest put(byte[] content) {
    Digest digest = Digest.of(content);
    store.put(digest, content.clone());
    return digest;
  }

  /** Puts a text there, in UTF-8, and names it. */
  public Digest put(String text) {
    return put(text.getBytes(StandardCharsets.UTF_8));
  }

  /** Puts content there under that name, whether it is the name of that content or not. */
  public void put(Digest digest, byte[] content) {
    store.put(digest, content.clone());
  }

  /** The blob's bytes, a copy; null where it has it not. */
  public byte @Nullable [] get(Digest digest) {
    byte[] blob = store.get(digest);
    return blob == null ? null : blob.clone();
  }

  /** Whether it has that blob. */
  public boolean has(Digest digest) {
    return store.get(digest) != null;
  }

  /** The blobs it has. */
  public Set<Digest> digests() {
    return store.digests();
  }

  /** Loses that blob. */
  public void remove(Digest digest) {
    store.remove(digest);
  }

  /** Loses every blob, and every upload under way. */
  public void clear() {
    store.clear();
  }

  // ---- what it does

  /** What that method does. */
  public CasRoute route(CasMethod method) {
    return Objects.requireNonNull(routes.get(method));
  }

  /** What {@code ByteStream.Read} does. */
  public CasRoute reads() {
    return route(CasMethod.READ);
  }

  /** What {@code ByteStream.Write} does. */
  public CasRoute writes() {
    return route(CasMethod.WRITE);
  }

  /** What {@code QueryWriteStatus} does: right unless told otherwise. */
  public CasRoute writeStatus() {
    return route(CasMethod.QUERY_WRITE_STATUS);
  }

  /** What {@code FindMissingBlobs} does. */
  public CasRoute findMissing() {
    return route(CasMethod.FIND_MISSING);
  }

  /** What {@code BatchReadBlobs} does. */
  public CasRoute batchReads() {
    return route(CasMethod.BATCH_READ);
  }

  /** What {@code BatchUpdateBlobs} does. */
  public CasRoute batchUpdates() {
    return route(CasMethod.BATCH_UPDATE);
  }

  /** What {@code GetCapabilities} does. */
  public CasRoute capabilities() {
    return route(CasMethod.CAPABILITIES);
  }

  /** Every method takes that script from here on, where it has no other. */
  public void always(CasScript script) {
    routes.values().forEach(route -> route.always(script));
  }

  /** Forgets every script of every method. */
  public void heal() {
    routes.values().forEach(CasRoute::heal);
  }

  /** Asks for that token ({@code authorization: Bearer …}) from here on; null asks for none. */
  public void requireToken(@Nullable String expected) {
    house.requireToken(expected);
  }

  // ---- what it saw

  /** All calls, in the order in which they came. */
  public List<CasCall> calls() {
    return log.calls();
  }

  /** Calls that have not ended. */
  public int openCalls() {
    return (int) calls().stream().filter(call -> call.end() == CasCall.End.OPEN).count();
  }

  /** All connections that were ever made, in the order in which they were accepted. */
  public List<CasConnection> connections() {
    return List.copyOf(log.links());
  }

  /** Connections that are open. */
  public int openConnections() {
    return (int) log.links().stream().filter(CasLink::isOpen).count();
  }

  /** Waits, for 30 s at most, until exactly that many calls are open. */
  public void awaitOpenCalls(int n) {
    Wait.until(
        n + " calls are open",
        () -> openCalls() == n,
        () ->
            "these are: "
                + calls().stream().filter(call -> call.end() == CasCall.End.OPEN).toList());
  }

  /** Waits, for 30 s at most, until exactly that many connections are open. */
  public void awaitOpenConnections(int n) {
    Wait.until(
        n + " connections are open", () -> openConnections() == n, () -> "they are " + log.links());
  }

  // ---- its life

  /** GOAWAY on every connection: calls under way go on, new ones need a new connection. */
  public void goAway() {
    log.links().forEach(CasLink::goAway);
  }

  /** Resets every connection (TCP RST); the port stays open. */
  public void resetConnections() {
    log.links().forEach(CasLink::reset);
  }

  /**
   * Ends as a process does that is killed: every connection is reset, the port closed. Blobs,
   * scripts and records stay.
   */
  public synchronized void kill() {
    if (engine != null) {
      log.resetAll(); // a client that connects again at once is ended with the port
    }
    stop();
  }

  /** Ends in order: GOAWAY, calls end, the port is closed. Blobs, scripts and records stay. */
  public synchronized void stop() {
    CasEngine running = engine;
    if (running != null) {
      house.engine(null);
      running.stop();
      engine = null;
      held = HeldPort.of(port);
    }
  }

  /** Whether it listens. */
  public synchronized boolean isRunning() {
    return engine != null;
  }

  /** Starts again what was stopped or killed, on its port; what runs is stopped first. */
  public synchronized void restart() {
    stop();
    try {
      CasEngine started =
          new CasEngine(
              port,
              settings.tls == null ? null : settings.tls.forServer(settings.mutual),
              settings.maxMessage,
              settings.maxStreams,
              log::connected,
              log,
              new ByteStreamService(house, store, settings.capabilities()),
              new StoreService(house, store, settings.capabilities()),
              settings.capabilities().service(house));
      engine = started;
      house.engine(started);
      port = started.port();
      letGo();
    } catch (IOException e) {
      throw new UncheckedIOException("port " + port, e);
    }
  }

  /** Stops it; when it returns no socket and no thread of it is left. Twice does nothing. */
  @Override
  public synchronized void close() {
    stop();
    letGo();
  }

  /** Nobody else was given the port while nothing listened there. */
  private void letGo() {
    if (held != null) {
      held.close();
      held = null;
    }
  }

  @Override
  public String toString() {
    return "ScriptedCas " + hostAndPort() + " " + log.links();
  }

  /** Settings of a {@link ScriptedCas}. */
  public static final class Builder {
    private static final int DEFAULT_MESSAGE = 4 << 20;

    private final Set<DigestFunction> functions = EnumSet.of(DigestFunction.SHA256);
    private boolean zstd;
    private long batchLimit;
    private boolean told = true;
    private int maxMessage = DEFAULT_MESSAGE;
    private int maxStreams = Integer.MAX_VALUE;
    private @Nullable String instanceName;
    private @Nullable String token;
    private @Nullable TestCertificates tls;
    private boolean mutual;

    private Builder() {}

    /** The digest functions it serves; by default SHA-256 alone. */
    public Builder digestFunctions(DigestFunction first, DigestFunction... others) {
      functions.clear();
      functions.add(first);
      functions.addAll(List.of(others));
      return this;
    }

    /** Serves zstd, in streams and batches; by default it does not. Needs zstd-jni. */
    public Builder zstd() {
      zstd = true;
      return this;
    }

    /**
     * Bytes of content that a batch may have in all, as told and as held to; by default 0: no limit
     * is told, and that of a message holds.
     */
    public Builder batchLimit(long bytes) {
      if (bytes < 0) {
        throw new IllegalArgumentException("batchLimit: " + bytes + " (expected: >= 0)");
      }
      batchLimit = bytes;
      return this;
    }

    /** Answers GetCapabilities with UNIMPLEMENTED. */
    public Builder noCapabilities() {
      told = false;
      return this;
    }

    /** The most bytes of a message that it takes; by default 4 MiB, as gRPC's servers do. */
    public Builder maxMessage(int bytes) {
      if (bytes < 1) {
        throw new IllegalArgumentException("maxMessage: " + bytes + " (expected: > 0)");
      }
      maxMessage = bytes;
      return this;
    }

    /** The most streams of a connection, as told and as held to; by default any number. */
    public Builder maxStreams(int streams) {
      if (streams < 1) {
        throw new IllegalArgumentException("maxStreams: " + streams + " (expected: > 0)");
      }
      maxStreams = streams;
      return this;
    }

    /** Refuses calls for another store, with INVALID_ARGUMENT; by default none is. */
    public Builder instanceName(String name) {
      instanceName = Objects.requireNonNull(name);
      return this;
    }

    /** Refuses calls without that token; see {@link ScriptedCas#requireToken}. */
    public Builder token(String expected) {
      token = Objects.requireNonNull(expected);
      return this;
    }

    /** Speaks TLS, with the server's certificate of these. */
    public Builder tls(TestCertificates certificates) {
      tls = Objects.requireNonNull(certificates);
      mutual = false;
      return this;
    }

    /** Speaks TLS, and takes only clients that show the client's certificate of these. */
    public Builder mutualTls(TestCertificates certificates) {
      tls = Objects.requireNonNull(certificates);
      mutual = true;
      return this;
    }

    /** Starts the server on a free port of the loopback address. */
    public ScriptedCas start() {
      return new ScriptedCas(new Builder(this));
    }

    private Builder(Builder of) {
      functions.clear();
      functions.addAll(of.functions);
      zstd = of.zstd;
      batchLimit = of.batchLimit;
      told = of.told;
      maxMessage = of.maxMessage;
      maxStreams = of.maxStreams;
      instanceName = of.instanceName;
      token = of.token;
      tls = of.tls;
      mutual = of.mutual;
    }

    private CasSettings capabilities() {
      return new CasSettings(functions, zstd, batchLimit, told);
    }
  }
}
