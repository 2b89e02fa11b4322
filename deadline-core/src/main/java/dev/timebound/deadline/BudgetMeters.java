package dev.timebound.deadline;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.function.ToDoubleFunction;

/** What a {@link RetryBudget} counts, for Micrometer; never loaded where that is absent. */
final class BudgetMeters {
  private BudgetMeters() {}

  static void register(MeterRegistry registry, String name, RetryBudget budget) {
    count(registry, name, "granted", budget, RetryBudget::granted);
    count(registry, name, "refused", budget, RetryBudget::refused);
    hedges(registry, name, "sent", "Second calls made", budget, RetryBudget::hedges);
    hedges(
        registry, name, "won", "Second calls that answered first", budget, RetryBudget::hedgesWon);
    hedges(registry, name, "lost", "Second calls made in vain", budget, RetryBudget::hedgesLost);
  }

  private static void hedges(
      MeterRegistry registry,
      String name,
      String what,
      String description,
      RetryBudget budget,
      ToDoubleFunction<RetryBudget> counted) {
    FunctionCounter.builder("timebound.hedges." + what, budget, counted)
        .description(description)
        .tag("name", name)
        .register(registry);
  }

  private static void count(
      MeterRegistry registry,
      String name,
      String outcome,
      RetryBudget budget,
      ToDoubleFunction<RetryBudget> counted) {
    FunctionCounter.builder("timebound.retry.budget", budget, counted)
        .description("Retries and hedges asked of the budget")
        .tag("name", name)
        .tag("outcome", outcome)
        .register(registry);
  }
}
