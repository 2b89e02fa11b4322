package dev.timebound.demo.bigtable;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

class RowCheckTest {
  private final DemoTable table = new DemoTable(4_000);
  private final RowCheck check = new RowCheck(table, 10, 20);

  @Test
  @DisplayName("each row once, in order, with its content: nothing to complain of")
  void right() {
    rows(10, 20);
    check.completed();

    account(0, 0, 0);
    assertThat(check.rows()).isEqualTo(10);
    assertThat(check.next()).isEqualTo(20);
  }

  @Test
  @DisplayName("a row that a later one overtook is lost, at once")
  void gap() {
    rows(10, 12);
    rows(14, 20);

    account(2, 0, 0);
  }

  @Test
  @DisplayName("what a completed read never gave is lost; what an open one has not given is not")
  void tail() {
    rows(10, 17);
    account(0, 0, 0);

    check.completed();
    account(3, 0, 0);
  }

  @Test
  @DisplayName("a row that comes again is doubled, each time")
  void again() {
    rows(10, 15);
    rows(13, 15);
    rows(14, 20);
    check.completed();

    account(0, 3, 0);
  }

  @Test
  @DisplayName("a row that comes late is out of order, not lost and not doubled")
  void late() {
    rows(10, 12);
    rows(13, 15);
    rows(12, 13);
    rows(15, 20);
    check.completed();

    account(0, 0, 1);
  }

  @Test
  @DisplayName("a row nobody asked for, and one that is not of the table, is wrong")
  void foreign() {
    rows(9, 10);
    rows(20, 21);
    check.row(new DemoRow("nonsense", ByteString.EMPTY));

    account(0, 0, 3);
  }

  @Test
  @DisplayName("a content of another row, of another length, or with one bit changed is wrong")
  void content() {
    byte[] changed = value(12).toByteArray();
    changed[changed.length - 1] ^= 1;

    check.row(new DemoRow(table.key(10), value(11)));
    check.row(new DemoRow(table.key(11), value(11).substring(1)));
    check.row(new DemoRow(table.key(12), ByteString.copyFrom(changed)));

    account(0, 0, 3);
  }

  @Nested
  class Table {
    @Test
    @DisplayName("keys and indices turn into each other, in the order of the keys")
    void keys() {
      assertThat(table.key(0)).isEqualTo("row-00000000");
      assertThat(table.index(table.key(3_999))).isEqualTo(3_999);
      assertThat(table.index(table.key(4_000))).isEqualTo(-1);
      assertThat(table.index("row-0000000x")).isEqualTo(-1);
      assertThat(table.index("")).isEqualTo(-1);
      assertThat(table.key(99)).isLessThan(table.key(100));
    }

    @Test
    @DisplayName("rows of every size are what their rule says")
    void sizes() {
      for (int i = 0; i < table.rows(); i++) {
        assertThat(table.holds(i, value(i))).isTrue();
        assertThat(value(i).size()).isEqualTo(DemoTable.size(i));
      }
      assertThat(table.cells(95)).hasSize(4);
      assertThat(DemoTable.size(1_999)).isEqualTo(200 << 10);
    }
  }

  private void rows(int from, int to) {
    for (int i = from; i < to; i++) {
      check.row(new DemoRow(table.key(i), value(i)));
    }
  }

  private ByteString value(int index) {
    return table.cells(index).stream().reduce(ByteString.EMPTY, ByteString::concat);
  }

  private void account(long lost, long doubled, long wrong) {
    assertThat(check.lost()).as("lost").isEqualTo(lost);
    assertThat(check.doubled()).as("doubled").isEqualTo(doubled);
    assertThat(check.wrong()).as("wrong").isEqualTo(wrong);
  }
}
