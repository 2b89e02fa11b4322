package dev.timebound.demo.cas;

import dev.timebound.cas.CasConfig;
import dev.timebound.cas.kit.CasServer;
import dev.timebound.cas.kit.CasServers;
import dev.timebound.cas.kit.ScriptedCas;
import dev.timebound.test.FaultProxy;
import java.util.ArrayList;
import java.util.List;

/** The ring's stores: real ones where they are installed, else scripted ones. */
final class Stores implements AutoCloseable {
  static final int COUNT = 4;

  private final List<Store> all;
  private final List<AutoCloseable> closing;
  private final String kind;

  private Stores(String kind, List<? extends Store> all, List<AutoCloseable> closing) {
    this.kind = kind;
    this.all = List.copyOf(all);
    this.closing = List.copyOf(closing);
  }

  static Stores start() {
    if (CasServers.available()) {
      CasServers servers = CasServers.start(COUNT);
      return new Stores(
          "real BuildStream stores, a process each",
          servers.all().stream().map(Real::new).toList(),
          List.of(servers));
    }
    List<Scripted> scripted = new ArrayList<>();
    for (int i = 1; i <= COUNT; i++) {
      scripted.add(new Scripted("cas-" + i));
    }
    return new Stores(
        "scripted stores of this JVM, for " + CasServers.unavailable().orElse("no real ones"),
        scripted,
        List.copyOf(scripted));
  }

  /** What they are, for people. */
  String kind() {
    return kind;
  }

  Store get(int index) {
    return all.get(index);
  }

  List<Store> all() {
    return all;
  }

  /** All of them as a ring, in order, with equal weights. */
  CasConfig ring() {
    return new CasConfig(
        all.stream().map(store -> CasConfig.Shard.of(store.name(), store.hostAndPort())).toList());
  }

  /** One of them as a ring of its own: what is written to it is there, whatever its key. */
  CasConfig alone(int index) {
    Store store = all.get(index);
    return new CasConfig(List.of(CasConfig.Shard.of(store.name(), store.hostAndPort())));
  }

  @Override
  public void close() throws Exception {
    for (AutoCloseable one : closing) {
      one.close();
    }
  }

  private record Real(CasServer server) implements Store {
    @Override
    public String name() {
      return server.name();
    }

    @Override
    public String hostAndPort() {
      return server.hostAndPort();
    }

    @Override
    public void freeze() {
      server.freeze();
    }

    @Override
    public void thaw() {
      server.thaw();
    }

    @Override
    public void kill() {
      server.kill();
    }

    @Override
    public void restart() {
      server.restart();
    }
  }

  /** Behind a proxy, which is what freezes; it is killed with its port. */
  private static final class Scripted implements Store, AutoCloseable {
    private final String name;
    private final ScriptedCas server = ScriptedCas.builder().batchLimit(1 << 20).start();
    private final FaultProxy proxy = FaultProxy.to("127.0.0.1", server.port());

    Scripted(String name) {
      this.name = name;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public String hostAndPort() {
      return proxy.hostAndPort();
    }

    @Override
    public void freeze() {
      proxy.freezeAll();
    }

    @Override
    public void thaw() {
      proxy.thaw();
    }

    @Override
    public void kill() {
      proxy.refuse();
      proxy.cut();
      server.kill();
    }

    @Override
    public void restart() {
      server.restart();
      proxy.accept();
    }

    @Override
    public void close() {
      proxy.close();
      server.close();
    }
  }
}
