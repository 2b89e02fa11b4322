package dev.timebound.bigtable;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.bigtable.v2.ReadRowsResponse;
import com.google.cloud.conformance.bigtable.v2.TestDefinition.ReadRowsTest;
import com.google.cloud.conformance.bigtable.v2.TestDefinition.ReadRowsTest.Result;
import com.google.cloud.conformance.bigtable.v2.TestDefinition.TestFile;
import com.google.protobuf.util.JsonFormat;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The public conformance cases for merging cell chunks. */
@DisplayName("conformance: rows from chunks")
class RowMergerConformanceTest {
  private static final String CASES = "/com/google/cloud/conformance/bigtable/v2/readrows.json";

  static TestFile cases() throws IOException {
    try (InputStream in = TestFile.class.getResourceAsStream(CASES)) {
      assertThat(in).as("resource %s", CASES).isNotNull();
      Reader reader = new InputStreamReader(in, StandardCharsets.UTF_8);
      TestFile.Builder file = TestFile.newBuilder();
      JsonFormat.parser().merge(reader, file);
      return file.build();
    }
  }

  static Stream<Arguments> each() throws IOException {
    return cases().getReadRowsTestsList().stream().map(c -> Arguments.of(c.getDescription(), c));
  }

  @Test
  @DisplayName("there are all 48 of them")
  void all() throws IOException {
    assertThat(cases().getReadRowsTestsCount()).isEqualTo(48);
  }

  @ParameterizedTest(name = "{0}, all chunks in one message")
  @MethodSource("each")
  void oneMessage(String description, ReadRowsTest test) throws IOException {
    ReadRowsResponse message =
        ReadRowsResponse.newBuilder().addAllChunks(test.getChunksList()).build();
    // once over the wire form, as a real stream comes
    ReadRowsResponse received = ReadRowsResponse.parseFrom(message.toByteArray());
    check(test, Merged.of(received));
  }

  @ParameterizedTest(name = "{0}, each chunk in a message of its own")
  @MethodSource("each")
  void oneChunkEach(String description, ReadRowsTest test) {
    List<ReadRowsResponse> stream =
        test.getChunksList().stream()
            .map(chunk -> ReadRowsResponse.newBuilder().addChunks(chunk).build())
            .toList();
    check(test, Merged.of(stream, false));
  }

  private static void check(ReadRowsTest test, Merged merged) {
    List<Result> expected = new ArrayList<>(test.getResultsList());
    boolean error = expected.removeIf(Result::getError);
    assertThat(results(merged.rows)).isEqualTo(expected);
    assertThat(merged.error != null).as("error: %s", merged.error).isEqualTo(error);
  }

  private static List<Result> results(List<Row> rows) {
    List<Result> results = new ArrayList<>();
    for (Row row : rows) {
      for (Cell cell : row.cells()) {
        results.add(
            Result.newBuilder()
                .setRowKey(row.key().toStringUtf8())
                .setFamilyName(cell.family())
                .setQualifier(cell.qualifier().toStringUtf8())
                .setTimestampMicros(cell.timestampMicros())
                .setValue(cell.value().toStringUtf8())
                .setLabel(cell.labels().isEmpty() ? "" : cell.labels().get(0))
                .build());
      }
    }
    return results;
  }
}
