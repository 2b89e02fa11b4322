package dev.timebound.cas;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** What the documentation shows must be so. */
class CasDocsTest {
  private static String page(String name) throws IOException {
    Path docs = Path.of("docs");
    Path root = Files.isDirectory(docs) ? docs : Path.of("..", "docs");
    return Files.readString(root.resolve(name));
  }

  private static List<MatchResult> all(String pattern, String text) {
    return Pattern.compile(pattern).matcher(text).results().toList();
  }

  /** As {@code new Shard("cas-0", 3, List.of(Endpoint.parse("cas-0:50051")), "main")}. */
  private static CasConfig ours(String page) {
    String shard =
        "new Shard\\(\"([^\"]+)\", (\\d+), List\\.of\\(Endpoint\\.parse\\(\"([^\"]+)\"\\)\\),"
            + " \"([^\"]*)\"\\)";
    List<CasConfig.Shard> shards = new ArrayList<>();
    for (MatchResult found : all(shard, page)) {
      shards.add(
          new CasConfig.Shard(
              found.group(1),
              Integer.parseInt(found.group(2)),
              List.of(CasConfig.Endpoint.parse(found.group(3))),
              found.group(4)));
    }
    return new CasConfig(shards);
  }

  /**
   * As {@code { store: { grpc: { instance_name: …, endpoints: [{ address: … }], … } }, weight: }}.
   */
  private static CasConfig nativeLinks(String page) {
    String store =
        "store: \\{ grpc: \\{ instance_name: \"([^\"]*)\", endpoints: \\[\\{ address:"
            + " \"grpc://([^\"]+)\" }], store_type: \"cas\" } }, weight: (\\d+) }";
    List<CasConfig.Shard> shards = new ArrayList<>();
    for (MatchResult found : all(store, page)) {
      CasConfig.Endpoint endpoint = CasConfig.Endpoint.parse(found.group(2));
      shards.add(
          new CasConfig.Shard(
              endpoint.host(),
              Integer.parseInt(found.group(3)),
              List.of(endpoint),
              found.group(1)));
    }
    return new CasConfig(shards);
  }

  @Test
  @DisplayName("CAS-10 the configuration shown makes the ring that the NativeLink one beside it is")
  void configurations() throws IOException {
    String page = page("cas.md");
    CasConfig config = ours(page);

    assertThat(config.shards()).hasSize(3);
    assertThat(nativeLinks(page)).isEqualTo(config);
    CasRing.builder(config).build().close();
    // of the parts that 3, 1 and 2 of 6 give: where the first ends and the second
    long first = 0xFFFF_FFFFL * 3 / 6;
    long second = first + 0xFFFF_FFFFL / 6;
    for (int i = 0; i < 1000; i++) {
      Digest digest = Digest.of(("blob " + i).getBytes(StandardCharsets.UTF_8));
      long key = Integer.toUnsignedLong(digest.ringKey());
      assertThat(config.weighted().home(digest))
          .isEqualTo(key <= first ? 0 : key <= second ? 1 : 2);
    }
  }

  @Test
  @DisplayName("CAS-4 each reported case has the tests that the table names")
  void reportedCases() throws IOException {
    String page = page("rules.md");
    String table = page.substring(page.indexOf("| reported | test |"));
    table = table.substring(0, table.indexOf("\n\n") < 0 ? table.length() : table.indexOf("\n\n"));
    List<MatchResult> tests = all("`([\\w.$]+)\\.(\\w+)`", table);

    assertThat(table.lines().count()).isEqualTo(2 + 15);
    assertThat(tests).hasSizeGreaterThanOrEqualTo(15);
    for (MatchResult test : tests) {
      assertThat(methods("dev.timebound.cas." + test.group(1)))
          .as(test.group(1))
          .contains(test.group(2));
    }
  }

  private static List<String> methods(String type) {
    try {
      return Arrays.stream(Class.forName(type).getDeclaredMethods())
          .map(java.lang.reflect.Method::getName)
          .toList();
    } catch (ClassNotFoundException e) {
      throw new AssertionError("no class " + type, e);
    }
  }
}
