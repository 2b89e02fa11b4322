package dev.timebound.cas.kit;

import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives tests {@link CasServers} of their class as a parameter, and undoes after each test the
 * faults that it made. By {@code @ExtendWith(CasServersExtension.class)} it is four servers; by
 * {@code @RegisterExtension static final CasServersExtension servers = CasServersExtension.of(2)}
 * as many as asked for. They start at the first use in a top-level class and end with it.
 *
 * <p>Where there are none the tests are skipped, with the reason; but they FAIL where servers are
 * to be there: environment variable {@value #VARIABLE} is {@code required}, or {@code CI} is {@code
 * true} and the former is not {@code absent}.
 */
public final class CasServersExtension
    implements ExecutionCondition, ParameterResolver, AfterEachCallback {
  /** {@value}: {@code required}, {@code absent}, or not set. */
  public static final String VARIABLE = "TIMEBOUND_REAL_CAS";

  private static final int DEFAULT_COUNT = 4;
  private static final ExtensionContext.Namespace NAMESPACE =
      ExtensionContext.Namespace.create(CasServersExtension.class);

  private final int count;

  /** With four servers. */
  public CasServersExtension() {
    this(DEFAULT_COUNT);
  }

  private CasServersExtension(int count) {
    this.count = count;
  }

  /** With so many servers. */
  public static CasServersExtension of(int count) {
    return new CasServersExtension(count);
  }

  @Override
  public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
    return decide(CasServers.unavailable(), System.getenv());
  }

  static ConditionEvaluationResult decide(
      Optional<String> unavailable, Map<String, String> environment) {
    if (unavailable.isEmpty()) {
      return ConditionEvaluationResult.enabled("real servers are there");
    }
    String told = environment.getOrDefault(VARIABLE, "");
    boolean ci = Boolean.parseBoolean(environment.get("CI"));
    if (told.equals("required") || (ci && !told.equals("absent"))) {
      throw new IllegalStateException(
          unavailable.get() + " (" + VARIABLE + "=" + told + ", CI=" + ci + ": must be there)");
    }
    return ConditionEvaluationResult.disabled(unavailable.get());
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == CasServers.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    return ofTheClass(context)
        .computeIfAbsent(this, any -> CasServers.start(count), CasServers.class);
  }

  @Override
  public void afterEach(ExtensionContext context) {
    CasServers used = ofTheClass(context).get(this, CasServers.class);
    if (used != null) {
      used.heal();
    }
  }

  /** The store of the top-level class: nested ones share its servers, and it closes them. */
  private static ExtensionContext.Store ofTheClass(ExtensionContext context) {
    ExtensionContext top = context;
    ExtensionContext parent = top.getParent().orElse(null);
    while (parent != null && parent.getTestClass().isPresent()) {
      top = parent;
      parent = top.getParent().orElse(null);
    }
    return top.getStore(NAMESPACE);
  }
}
