package dev.timebound.demo.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class AccountTest {
  private final Account account = new Account();

  @Test
  @DisplayName("each partition in its own order, once: nothing lost, nothing doubled")
  void whole() {
    for (int number = 0; number < 5; number++) {
      account.received(0, number);
      account.received(2, number);
    }
    account.received(1, 0);

    assertThat(account.received(0)).isEqualTo(5);
    assertThat(account.healthy()).isEqualTo(6);
    assertThat(account.lost()).isZero();
    assertThat(account.doubled()).isZero();
  }

  @Test
  @DisplayName("a gap is as many lost as are in it; the beginning too")
  void gaps() {
    account.received(1, 2);
    account.received(1, 6);

    assertThat(account.lost()).isEqualTo(5);
    assertThat(account.doubled()).isZero();
  }

  @Test
  @DisplayName("what comes again, or late, is doubled")
  void again() {
    account.received(1, 0);
    account.received(1, 0);
    account.received(1, 1);
    account.received(1, 0);

    assertThat(account.doubled()).isEqualTo(2);
    assertThat(account.lost()).isZero();
    assertThat(account.received(1)).isEqualTo(4);
  }

  @Test
  @DisplayName("speed counts the healthy ones from the mark on")
  void mark() {
    account.received(1, 0);
    account.received(0, 0);
    account.mark();
    account.received(1, 1);
    account.received(2, 0);
    account.received(0, 1);

    assertThat(account.healthySinceMark()).isEqualTo(2);
    assertThat(account.healthy()).isEqualTo(3);
  }

  @Test
  @DisplayName("kcat's lines: whole ones count, one that was cut off does not")
  void kcat() {
    KcatClient.read("1 0;", account);
    KcatClient.read("1 1;", account);
    KcatClient.read("1 1", account);
    KcatClient.read("1 ", account);
    KcatClient.read("", account);

    assertThat(account.received(1)).isEqualTo(2);
    assertThat(account.doubled()).isZero();
    assertThat(account.lost()).isZero();
  }
}
