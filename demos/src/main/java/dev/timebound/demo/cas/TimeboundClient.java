package dev.timebound.demo.cas;

import dev.timebound.cas.CasConfig;
import dev.timebound.cas.CasRing;
import dev.timebound.cas.Digest;
import dev.timebound.deadline.Deadlines;
import dev.timebound.health.HealthEngine;
import dev.timebound.health.HealthEvent;
import dev.timebound.health.MemberStatus;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Timebound's ring with what a demo of mirrored blobs asks for: reads go on in mid-stream. */
final class TimeboundClient implements StoreClient {
  private static final Duration GAP = Duration.ofSeconds(1);

  private final HealthEngine engine = HealthEngine.builder().build();
  private final List<String> names = new ArrayList<>();
  private final Map<String, Long> takenBack = new ConcurrentHashMap<>();
  private final Map<String, MemberStatus> statuses = new ConcurrentHashMap<>();
  private final Disposable events;
  private final CasRing ring;

  TimeboundClient(CasConfig config, Duration cooldown) {
    config.shards().forEach(shard -> names.add(shard.name()));
    events = engine.events().subscribe(this::happened);
    ring =
        CasRing.builder(config)
            .healthEngine(engine)
            .cooldown(cooldown)
            .gapTimeout(GAP)
            .resumeMidStream(true)
            .build();
  }

  private void happened(HealthEvent event) {
    statuses.put(event.member(), event.to());
    if (event.to() == MemberStatus.HEALTHY) {
      takenBack.put(event.member(), System.nanoTime());
    }
  }

  @Override
  public Flux<ByteBuffer> read(Digest digest, Duration time) {
    return ring.read(digest).transform(Deadlines.within(time));
  }

  @Override
  public Mono<Map<Digest, Presence>> check(Set<Digest> digests, Duration time) {
    return ring.findMissing(digests)
        .transform(Deadlines.within(time))
        .map(
            presence -> {
              Map<Digest, Presence> all = new HashMap<>();
              presence.present().forEach(digest -> all.put(digest, Presence.PRESENT));
              presence.missing().forEach(digest -> all.put(digest, Presence.MISSING));
              presence.unknown().keySet().forEach(digest -> all.put(digest, Presence.UNKNOWN));
              return all;
            });
  }

  @Override
  public Mono<Void> write(Digest digest, byte[] content, Duration time) {
    return ring.write(digest, content).transform(Deadlines.within(time)).then();
  }

  @Override
  public long takenBackAt(int shard) {
    return takenBack.getOrDefault(names.get(shard), 0L);
  }

  @Override
  public boolean tellsHealth() {
    return true;
  }

  @Override
  public String state() {
    List<String> bad =
        names.stream()
            .filter(
                name -> statuses.getOrDefault(name, MemberStatus.HEALTHY) != MemberStatus.HEALTHY)
            .map(name -> name + " " + statuses.get(name))
            .toList();
    return bad.isEmpty() ? "" : "; " + String.join(", ", bad);
  }

  @Override
  public void close() {
    ring.close();
    events.dispose();
    engine.close();
  }
}
