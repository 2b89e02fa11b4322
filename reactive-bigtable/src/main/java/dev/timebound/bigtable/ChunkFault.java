package dev.timebound.bigtable;

/** The ways in which a stream of cell chunks can be broken. */
enum ChunkFault {
  MALFORMED("a message that is no read response"),
  NO_ROW_KEY("a row begins without its key"),
  NO_FAMILY("a row begins without a column family"),
  NO_QUALIFIER("a column family begins without a qualifier"),
  KEY_OUT_OF_ORDER("a row comes again or out of order"),
  OTHER_ROW("a chunk of another row before the commit of this one"),
  RESET_WITHOUT_ROW("a reset with no row under way"),
  RESET_WITH_DATA("a reset that carries data"),
  NEGATIVE_VALUE_SIZE("a negative value size"),
  EMPTY_FIRST_PIECE("a split value whose first piece is empty"),
  COMMIT_IN_VALUE("a commit in the middle of a split value"),
  CELL_IN_VALUE("a new cell begins in the middle of a split value"),
  VALUE_SIZE_CHANGED("a split value changes its announced size"),
  VALUE_TOO_LONG("a split value is longer than announced"),
  VALUE_TOO_SHORT("a split value is shorter than announced"),
  MARKER_IN_ROW("a scan marker in the middle of a row"),
  MARKER_OUT_OF_ORDER("a scan marker comes again or out of order"),
  END_IN_ROW("the stream ends in the middle of a row");

  final String text;

  ChunkFault(String text) {
    this.text = text;
  }
}
