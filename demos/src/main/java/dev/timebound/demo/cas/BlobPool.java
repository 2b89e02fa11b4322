package dev.timebound.demo.cas;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The mirrored blobs by what a load draws them by. */
final class BlobPool {
  private final List<Blob> small;
  private final Map<Long, List<Blob>> bySize;

  BlobPool(Blobs blobs) {
    small = blobs.mirrored().stream().filter(blob -> blob.size() <= Blobs.SMALL).toList();
    bySize = blobs.mirrored().stream().collect(Collectors.groupingBy(Blob::size));
  }

  /** Up to 16 KiB. */
  List<Blob> small() {
    return small;
  }

  List<Blob> ofSize(long size) {
    List<Blob> all = bySize.get(size);
    if (all == null) {
      throw new IllegalArgumentException(
          "size: " + size + " (expected: one of " + bySize.keySet() + ")");
    }
    return all;
  }
}
