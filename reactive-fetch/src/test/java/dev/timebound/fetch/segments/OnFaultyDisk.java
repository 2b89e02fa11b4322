package dev.timebound.fetch.segments;

import static dev.timebound.fetch.segments.Stores.open;
import static dev.timebound.fetch.segments.Stores.small;

import java.nio.file.Path;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** A store of small segments on a disk that can be made to fail; nothing of it is left. */
@NullUnmarked // fields are set before each test
abstract class OnFaultyDisk {
  @TempDir Path directory;
  final FaultyDisk disk = new FaultyDisk();
  SegmentStore store;

  @BeforeEach
  final void begin() {
    store = open(small(directory).disk(disk).fsync(Fsync.never()));
  }

  @AfterEach
  final void nothingIsLeft() {
    Stores.close(store);
    Left.noThread();
  }

  final void reopen(SegmentStoreBuilder builder) {
    Stores.close(store);
    store = open(builder.disk(disk));
  }
}
