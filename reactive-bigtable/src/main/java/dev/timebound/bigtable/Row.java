package dev.timebound.bigtable;

import com.google.protobuf.ByteString;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.RandomAccess;

/**
 * One row as the server sent it: its key and its cells, in the server's order (within a column the
 * newest first, unless the filter says otherwise). Immutable, and free of the message it came in:
 * keeping a row keeps nothing else.
 */
public final class Row {
  private final ByteString key;
  private final Cell[] cells;

  /** Takes the array as it is: the caller gives it away. */
  Row(ByteString key, Cell[] cells) {
    this.key = key;
    this.cells = cells;
  }

  /** A row for a user's own tests. */
  public static Row of(ByteString key, Collection<Cell> cells) {
    return new Row(key, cells.toArray(new Cell[0]));
  }

  public ByteString key() {
    return key;
  }

  /** All cells, in the server's order. Unmodifiable; a view, no copy. */
  public List<Cell> cells() {
    return new CellList(cells);
  }

  /** The cells of one family, in the server's order; empty where it has none. */
  public List<Cell> cells(String family) {
    List<Cell> found = new ArrayList<>();
    for (Cell cell : cells) {
      if (cell.family().equals(family)) {
        found.add(cell);
      }
    }
    return Collections.unmodifiableList(found);
  }

  /**
   * The first cell of a column in the server's order: the newest, unless the filter says otherwise.
   */
  public Optional<Cell> first(String family, ByteString qualifier) {
    for (Cell cell : cells) {
      if (cell.family().equals(family) && cell.qualifier().equals(qualifier)) {
        return Optional.of(cell);
      }
    }
    return Optional.empty();
  }

  /** As {@link #first(String, ByteString)}, the qualifier in UTF-8. */
  public Optional<Cell> first(String family, String qualifier) {
    return first(family, ByteString.copyFromUtf8(qualifier));
  }

  @Override
  public boolean equals(Object o) {
    return o instanceof Row other && key.equals(other.key) && Arrays.equals(cells, other.cells);
  }

  @Override
  public int hashCode() {
    return 31 * key.hashCode() + Arrays.hashCode(cells);
  }

  /** The key and the number of cells; never the values. */
  @Override
  public String toString() {
    return "Row{" + Keys.show(key) + ", " + cells.length + " cells}";
  }

  private static final class CellList extends AbstractList<Cell> implements RandomAccess {
    private final Cell[] cells;

    CellList(Cell[] cells) {
      this.cells = cells;
    }

    @Override
    public Cell get(int index) {
      return cells[index];
    }

    @Override
    public int size() {
      return cells.length;
    }
  }
}
