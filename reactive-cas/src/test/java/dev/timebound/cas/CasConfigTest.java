package dev.timebound.cas;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.timebound.cas.CasConfig.Endpoint;
import dev.timebound.cas.CasConfig.Shard;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CasConfigTest {
  private static final List<Endpoint> SOMEWHERE = List.of(new Endpoint("cas", 8980));

  @Nested
  class Ring {
    @Test
    @DisplayName("CAS-10 weights and order make the ring")
    void weighted() {
      CasConfig config = new CasConfig(List.of(shard("a", 3), shard("b", 1), shard("c", 2)));
      for (String[] row : Vectors.of("shard-vectors.csv")) {
        Digest digest = Digest.parse(row[0] + "/" + row[1]);
        assertThat(config.weighted().home(digest)).isEqualTo(Integer.parseInt(row[6]));
      }
    }

    @Test
    @DisplayName("CAS-10a names are the keys of the rendezvous")
    void rendezvous() {
      CasConfig config =
          new CasConfig(List.of(shard("shard-0", 3), shard("shard-1", 1), shard("shard-2", 2)));
      for (String[] row : Vectors.of("rendezvous-vectors.csv")) {
        Digest digest = Digest.of(row[0], 1, DigestFunction.SHA256);
        assertThat(config.rendezvous().home(digest)).hasToString(row[2].substring(0, 1));
      }
    }

    @Test
    void copied() {
      List<Shard> shards = new ArrayList<>(List.of(shard("a", 1)));
      CasConfig config = new CasConfig(shards);
      shards.clear();
      assertThat(config.shards()).hasSize(1);
    }

    @Test
    void refused() {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> new CasConfig(List.of()))
          .withMessage("shards: none (expected: at least 1)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> new CasConfig(List.of(shard("a", 1), shard("a", 2))))
          .withMessage("shard name: a twice (expected: different names)");
    }

    private Shard shard(String name, int weight) {
      return new Shard(name, weight, SOMEWHERE, "");
    }
  }

  @Test
  @DisplayName("a null, as a binder may give it, is refused by name")
  @SuppressWarnings("NullAway") // that is what is tested
  void nulls() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new CasConfig(null))
        .withMessage("shards: null (expected: no null)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new Shard(null, 1, SOMEWHERE, ""))
        .withMessage("shard name: null (expected: a value)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new Shard("a", 1, null, ""))
        .withMessage("endpoints of shard a: null (expected: no null)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new Shard("a", 1, SOMEWHERE, null))
        .withMessage("instanceName of shard a: null (expected: a value)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new Endpoint(null, 1))
        .withMessage("host: null (expected: a value)");
  }

  @Nested
  class OfAShard {
    @Test
    void shortForm() {
      assertThat(Shard.of("a", "cas:8980")).isEqualTo(new Shard("a", 1, SOMEWHERE, ""));
    }

    @Test
    void refused() {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> new Shard(" ", 1, SOMEWHERE, ""))
          .withMessage("shard name: blank (expected: a name)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> new Shard("a", 0, SOMEWHERE, ""))
          .withMessage("weight of shard a: 0 (expected: >= 1)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> new Shard("a", 1, List.of(), ""))
          .withMessage("endpoints of shard a: none (expected: at least 1)");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> new Shard("a", 1, List.of(SOMEWHERE.get(0), SOMEWHERE.get(0)), ""))
          .withMessage("endpoints of shard a: [cas:8980, cas:8980] (expected: each once)");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "main", "team/main", "blobs-of-ours"})
    void instanceNames(String name) {
      assertThat(new Shard("a", 1, SOMEWHERE, name).instanceName()).isEqualTo(name);
    }

    @ParameterizedTest
    @DisplayName("an instance name that no resource name could carry is refused")
    @ValueSource(strings = {"/main", "main/", "a//b", "/", "blobs", "team/uploads"})
    void badInstanceNames(String name) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> new Shard("a", 1, SOMEWHERE, name))
          .withMessageStartingWith("instanceName of shard a: " + name + " (expected: ");
    }
  }

  @Nested
  class Endpoints {
    @ParameterizedTest
    @ValueSource(strings = {"cas.example:8980", "127.0.0.1:1", "[::1]:65535"})
    void readAndWritten(String endpoint) {
      assertThat(Endpoint.parse(endpoint)).hasToString(endpoint);
    }

    @ParameterizedTest
    @ValueSource(
        strings = {"cas", "::1:80", "cas:", "cas:http", "cas:99999999999", "cas:+1", "cas:\u0663"})
    void unreadable(String endpoint) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Endpoint.parse(endpoint))
          .withMessage(
              "endpoint: " + endpoint + " (expected: host:port, an IPv6 address in brackets)");
    }

    @ParameterizedTest
    @DisplayName("a host that gRPC would refuse later is refused at once")
    @ValueSource(strings = {"cas_0:80", "h,i:80", "h h:80", "user@h:80", "256.1.1.1:80"})
    void noHost(String endpoint) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Endpoint.parse(endpoint))
          .withMessageStartingWith("host: " + endpoint.substring(0, endpoint.length() - 3) + " (");
    }

    @Test
    void outOfRange() {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> Endpoint.parse(":80"))
          .withMessage("host: blank (expected: a name or an address)");
      for (int port : new int[] {0, -1, 65536}) {
        assertThatIllegalArgumentException()
            .isThrownBy(() -> new Endpoint("cas", port))
            .withMessage("port of cas: " + port + " (expected: 1 to 65535)");
      }
    }
  }
}
