package dev.timebound.pg;

import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.ConnectionMetadata;

/** Asked for before anything is bound; frameworks find their dialect by the name. */
final class Metadata {
  private static final String PRODUCT = "PostgreSQL";

  static final ConnectionFactoryMetadata FACTORY = () -> PRODUCT;

  static final ConnectionMetadata CONNECTION =
      new ConnectionMetadata() {
        @Override
        public String getDatabaseProductName() {
          return PRODUCT;
        }

        @Override
        public String getDatabaseVersion() {
          return "";
        }
      };

  private Metadata() {}
}
