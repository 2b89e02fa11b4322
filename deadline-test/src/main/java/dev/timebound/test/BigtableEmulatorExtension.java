package dev.timebound.test;

import java.util.Locale;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives tests the {@link BigtableEmulator} of this JVM and a table of their own, as parameters of
 * test methods, lifecycle methods and constructors.
 *
 * <pre>{@code
 * @ExtendWith(BigtableEmulatorExtension.class)
 * class OrdersTest {
 *   @Test
 *   void reads(BigtableEmulator emulator, BigtableTable table) {
 *     table.put("order-1", "cf", "total", "12");
 *     // a client for emulator.hostAndPort() reads table.name()
 *   }
 * }
 * }</pre>
 *
 * <p>A {@link BigtableTable} is fresh for each top-level test class and made when it is first asked
 * for; the methods and nested classes of that class share it. Families other than {@code cf}:
 * register it by field, {@code @RegisterExtension static final BigtableEmulatorExtension bigtable =
 * BigtableEmulatorExtension.withFamilies("a", "b")}.
 *
 * <p>The emulator starts at first use, is shared by all classes (in parallel too) and ends with the
 * JVM.
 */
public final class BigtableEmulatorExtension implements ParameterResolver {
  private static final ExtensionContext.Namespace NAMESPACE =
      ExtensionContext.Namespace.create(BigtableEmulatorExtension.class);

  private final String[] families;

  /** With one column family, {@code cf}. */
  public BigtableEmulatorExtension() {
    this("cf");
  }

  private BigtableEmulatorExtension(String... families) {
    this.families = families.clone();
  }

  /** With these column families in the class's table. */
  public static BigtableEmulatorExtension withFamilies(String... families) {
    return new BigtableEmulatorExtension(families);
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    Class<?> type = parameter.getParameter().getType();
    return type == BigtableEmulator.class || type == BigtableTable.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    BigtableEmulator emulator = BigtableEmulator.shared();
    if (parameter.getParameter().getType() == BigtableEmulator.class) {
      return emulator;
    }
    Class<?> top = context.getRequiredTestClass();
    while (top.getEnclosingClass() != null) {
      top = top.getEnclosingClass();
    }
    String prefix = top.getSimpleName().toLowerCase(Locale.ROOT);
    return context
        .getRoot()
        .getStore(NAMESPACE)
        .computeIfAbsent(
            top, any -> emulator.createFreshTable(prefix, families), BigtableTable.class);
  }
}
