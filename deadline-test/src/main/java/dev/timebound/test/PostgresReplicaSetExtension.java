package dev.timebound.test;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives tests the {@link PostgresReplicaSet} of this JVM as a parameter of test methods, lifecycle
 * methods and constructors, and undoes after each test the faults that it made.
 *
 * <pre>{@code
 * @ExtendWith(PostgresReplicaSetExtension.class)
 * class OrdersTest {
 *   @Test
 *   void readsWhileTheStandbyIsFrozen(PostgresReplicaSet postgres) {
 *     postgres.standby().freeze();
 *     // a client for postgres.primary() and postgres.standby() …
 *   }   // thawed
 * }
 * }</pre>
 *
 * <p>The servers start at first use, are shared by all classes and end with the JVM. A fault is
 * felt by all who use the set at that time: classes that make faults are not to run in parallel. A
 * class that needs settings or faults of its own registers its own set by field,
 * {@code @RegisterExtension static final PostgresReplicaSetExtension postgres =
 * PostgresReplicaSetExtension.of(PostgresReplicaSet.builder().standbys(2))}; it starts at the first
 * use in each top-level class and ends with the class.
 */
public final class PostgresReplicaSetExtension implements ParameterResolver, AfterEachCallback {
  private static final ExtensionContext.Namespace NAMESPACE =
      ExtensionContext.Namespace.create(PostgresReplicaSetExtension.class);

  private final PostgresReplicaSet.@Nullable Builder builder;

  /** With the shared set. */
  public PostgresReplicaSetExtension() {
    this(null);
  }

  private PostgresReplicaSetExtension(PostgresReplicaSet.@Nullable Builder builder) {
    this.builder = builder;
  }

  /** With a set of the class's own. */
  public static PostgresReplicaSetExtension of(PostgresReplicaSet.Builder builder) {
    return new PostgresReplicaSetExtension(builder);
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == PostgresReplicaSet.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    PostgresReplicaSet.Builder own = builder;
    if (own == null) {
      // known to the class's store, so that afterEach heals only what was used, and closes nothing
      return ofTheClass(context)
          .computeIfAbsent(this, any -> PostgresReplicaSet.shared(), PostgresReplicaSet.class);
    }
    return ofTheClass(context).computeIfAbsent(this, any -> own.start(), PostgresReplicaSet.class);
  }

  @Override
  public void afterEach(ExtensionContext context) {
    PostgresReplicaSet used = ofTheClass(context).get(this, PostgresReplicaSet.class);
    if (used != null) {
      used.heal();
    }
  }

  /** The store of the top-level class: nested ones share its set, and it closes it at its end. */
  private static ExtensionContext.Store ofTheClass(ExtensionContext context) {
    ExtensionContext top = context;
    ExtensionContext parent = top.getParent().orElse(null);
    // above the top-level class there is only the engine's context, which has no class
    while (parent != null && parent.getTestClass().isPresent()) {
      top = parent;
      parent = top.getParent().orElse(null);
    }
    return top.getStore(NAMESPACE);
  }
}
