package dev.timebound.bigtable;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.bigtable.v2.ReadRowsRequest;
import com.google.bigtable.v2.RowSet;
import com.google.protobuf.ByteString;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.NavigableSet;
import java.util.Random;
import java.util.TreeSet;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Resumed reads against a brute-force model: a sorted set of keys for the table, and a server that
 * tests every one of them against the request.
 */
class ReadProgressPropertyTest {
  private static final byte[] ALPHABET = {0, 1, 'a', 'b', (byte) 0xfe, (byte) 0xff};

  static LongStream seeds() {
    return LongStream.range(0, 40);
  }

  /** One table and one query over it. */
  private static final class Case {
    final NavigableSet<ByteString> table =
        new TreeSet<>(ByteString.unsignedLexicographicalComparator());
    final ReadRowsRequest request;
    final List<ByteString> whole;

    Case(Random random) {
      for (int n = random.nextInt(40); n > 0; n--) {
        table.add(key(random));
      }
      Query.Builder query = Query.builder("t").reversed(random.nextBoolean());
      for (int n = random.nextInt(4); n > 0; n--) {
        query.key(key(random));
      }
      for (int n = random.nextInt(4); n > 0; n--) {
        RowRange range = range(random);
        if (range != null) {
          query.range(range);
        }
      }
      query.limit(random.nextBoolean() ? 0 : 1 + random.nextInt(12));
      request = query.build().toRequest("table", "");
      whole = server(table, request);
    }
  }

  private static ByteString key(Random random) {
    byte[] key = new byte[1 + random.nextInt(3)];
    for (int i = 0; i < key.length; i++) {
      key[i] = ALPHABET[random.nextInt(ALPHABET.length)];
    }
    return ByteString.copyFrom(key);
  }

  private static @Nullable RowRange range(Random random) {
    ByteString a = key(random);
    ByteString b = random.nextInt(5) == 0 ? Keys.next(a) : key(random);
    try {
      return switch (random.nextInt(10)) {
        case 0 -> RowRange.all();
        case 1 -> RowRange.atLeast(a);
        case 2 -> RowRange.after(a);
        case 3 -> RowRange.before(a);
        case 4 -> RowRange.atMost(a);
        case 5 -> RowRange.prefix(a);
        case 6 -> RowRange.closed(a, b);
        case 7 -> RowRange.open(a, b);
        case 8 -> RowRange.openClosed(a, b);
        default -> RowRange.closedOpen(a, b);
      };
    } catch (IllegalArgumentException noKey) {
      return null;
    }
  }

  /** Reads by looking at every key; refuses requests that a real server would misread. */
  private static List<ByteString> server(NavigableSet<ByteString> table, ReadRowsRequest request) {
    RowSet rows = request.getRows();
    boolean all = !request.hasRows();
    if (!all) {
      assertThat(rows.getRowKeysCount() + rows.getRowRangesCount())
          .as("BT-32 an empty row set would be the whole table")
          .isPositive();
    }
    List<ByteString> found = new ArrayList<>();
    for (ByteString key : table) {
      if (all
          || rows.getRowKeysList().contains(key)
          || rows.getRowRangesList().stream().anyMatch(r -> holds(r, key))) {
        found.add(key);
      }
    }
    if (request.getReversed()) {
      Collections.reverse(found);
    }
    long limit = request.getRowsLimit();
    return limit == 0 ? found : found.subList(0, (int) Math.min(limit, found.size()));
  }

  private static boolean holds(com.google.bigtable.v2.RowRange range, ByteString key) {
    var order = ByteString.unsignedLexicographicalComparator();
    boolean fromStart =
        switch (range.getStartKeyCase()) {
          case START_KEY_CLOSED -> order.compare(key, range.getStartKeyClosed()) >= 0;
          case START_KEY_OPEN -> order.compare(key, range.getStartKeyOpen()) > 0;
          case STARTKEY_NOT_SET -> true;
        };
    boolean toEnd =
        switch (range.getEndKeyCase()) {
          case END_KEY_CLOSED -> order.compare(key, range.getEndKeyClosed()) <= 0;
          case END_KEY_OPEN -> order.compare(key, range.getEndKeyOpen()) < 0;
          case ENDKEY_NOT_SET -> true;
        };
    return fromStart && toEnd;
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  @DisplayName("BT-31 BT-32 cut anywhere: rows before the cut + rows of the resumed request = all")
  void everyCut(long seed) {
    Random random = new Random(seed);
    for (int i = 0; i < 100; i++) {
      Case c = new Case(random);
      for (int cut = 0; cut <= c.whole.size(); cut++) {
        ReadProgress progress = new ReadProgress(c.request);
        int received = cut + random.nextInt(c.whole.size() - cut + 1);
        for (int n = 0; n < received; n++) {
          progress.received();
        }
        c.whole.subList(0, cut).forEach(progress::delivered);

        ReadRowsRequest next = progress.next();
        List<ByteString> rest = next == null ? List.of() : server(c.table, next);
        assertThat(rest)
            .as("%s cut at %s of %s", c.request, cut, c.whole)
            .isEqualTo(c.whole.subList(cut, c.whole.size()));
        if (next != null && cut > 0) {
          assertNothingImpossible(next);
        }
      }
    }
  }

  /** Each key and each range of the request could still bring a row. */
  private static void assertNothingImpossible(ReadRowsRequest next) {
    for (var range : next.getRows().getRowRangesList()) {
      ByteString start = range.hasStartKeyOpen() ? range.getStartKeyOpen() : ByteString.EMPTY;
      ByteString least = range.hasStartKeyClosed() ? range.getStartKeyClosed() : Keys.next(start);
      assertThat(holds(range, least)).as("%s can hold a key", range).isTrue();
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  @DisplayName("BT-31 many faults, scan markers and rows lost in between: each row once, in order")
  void manyFaults(long seed) {
    Random random = new Random(500 + seed);
    for (int i = 0; i < 100; i++) {
      Case c = new Case(random);
      ReadProgress progress = new ReadProgress(c.request);
      List<ByteString> delivered = new ArrayList<>();
      int attempts = 0;
      for (ReadRowsRequest next = progress.next(); next != null; next = progress.next()) {
        boolean last = ++attempts > 30;
        if (attempt(c, next, progress, delivered, last ? null : random)) {
          break;
        }
      }
      assertThat(delivered).as("%s", c.request).isEqualTo(c.whole);
      assertThat(progress.deliveredRows()).isEqualTo(c.whole.size());
    }
  }

  /** Runs one attempt that fails somewhere; true where it came to its end. No faults: null. */
  private static boolean attempt(
      Case c,
      ReadRowsRequest request,
      ReadProgress progress,
      List<ByteString> delivered,
      @Nullable Random faults) {
    List<ByteString> rows = server(c.table, request);
    int fails =
        faults == null || faults.nextInt(4) == 0
            ? Integer.MAX_VALUE
            : faults.nextInt(rows.size() + 1);
    Deque<ByteString> buffer = new ArrayDeque<>();
    ByteString at = progress.resumePoint();
    for (int i = 0; i <= rows.size(); i++) {
      ByteString ahead = i < rows.size() ? rows.get(i) : null;
      if (faults != null && faults.nextInt(3) == 0) {
        ByteString marker = key(faults);
        if (between(marker, at, ahead, request.getReversed())) {
          progress.scanned(marker);
          at = marker;
        }
      }
      if (faults != null && i == fails) {
        drain(buffer, progress, delivered, faults.nextInt(buffer.size() + 1));
        return false;
      }
      if (ahead != null) {
        progress.received();
        buffer.add(ahead);
        at = ahead;
      }
      drain(buffer, progress, delivered, faults == null ? buffer.size() : faults.nextInt(2));
    }
    drain(buffer, progress, delivered, buffer.size());
    return true;
  }

  private static boolean between(
      ByteString marker, @Nullable ByteString at, @Nullable ByteString ahead, boolean reversed) {
    int past = at == null ? 1 : Keys.compare(marker, at);
    int before = ahead == null ? -1 : Keys.compare(marker, ahead);
    return reversed
        ? (at == null || past < 0) && (ahead == null || before > 0)
        : past > 0 && before < 0;
  }

  private static void drain(
      Deque<ByteString> buffer, ReadProgress progress, List<ByteString> delivered, int n) {
    for (int i = 0; i < n && !buffer.isEmpty(); i++) {
      ByteString row = buffer.remove();
      delivered.add(row);
      progress.delivered(row);
    }
  }
}
