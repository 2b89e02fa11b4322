package dev.timebound.samples.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MainArgsTest {
  @Test
  void nothingSaid() {
    assertThat(MainArgs.parse().port()).isEqualTo(9092);
    assertThat(MainArgs.parse().topics()).isEmpty();
  }

  @Test
  void allSaid() {
    MainArgs args =
        MainArgs.parse(
            "--host",
            "0.0.0.0",
            "--port",
            "0",
            "--advertise",
            "me:19092",
            "--topic",
            "orders:12",
            "--postgres",
            "embedded",
            "--node",
            "3");

    assertThat(args.host()).isEqualTo("0.0.0.0");
    assertThat(args.port()).isZero();
    assertThat(args.advertise()).isEqualTo("me:19092");
    assertThat(args.topics()).containsEntry("orders", 12);
    assertThat(args.postgres()).isEqualTo(MainArgs.EMBEDDED);
    assertThat(args.nodeId()).isEqualTo(3);
  }

  @Test
  void aLogOnDisk() {
    assertThat(MainArgs.parse("--segments", "/var/log/kafka").segments())
        .isEqualTo("/var/log/kafka");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--port",
        "--port x",
        "--port -1",
        "--port 99999",
        "--topic a:0",
        "--topic a:100000000",
        "--advertise me:0",
        "--postgres nope",
        "--node -1",
        "--topic a",
        "--topic a/b:1",
        "--advertise me",
        "--segments a --postgres embedded",
        "--what"
      })
  void noSense(String line) {
    assertThatThrownBy(() -> MainArgs.parse(line.split(" ")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(line.split(" ")[0]);
  }
}
