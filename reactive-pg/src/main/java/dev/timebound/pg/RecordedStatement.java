package dev.timebound.pg;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.reactivestreams.Publisher;

/**
 * A statement before its connection is known: what is called on it is kept, in order, and called
 * again on the statement of the connection it runs on.
 */
final class RecordedStatement implements Statement {
  /** Something after a semicolon. One in a literal is taken for one too, which costs little. */
  private static final Pattern SEVERAL = Pattern.compile(";\\s*\\S");

  private final String sql;
  private final Function<Execution, Publisher<? extends Result>> executor;

  /** What is called once, whatever is bound. */
  private final List<Consumer<Statement>> calls = new ArrayList<>();

  /** What is bound for each execution; the last one is being bound. */
  private final List<List<Consumer<Statement>>> bindings = new ArrayList<>();

  private int fetchSize;

  RecordedStatement(String sql, Function<Execution, Publisher<? extends Result>> executor) {
    this.sql = sql;
    this.executor = executor;
    this.bindings.add(new ArrayList<>());
  }

  private Statement bound(Consumer<Statement> call) {
    bindings.get(bindings.size() - 1).add(call);
    return this;
  }

  @Override
  public Statement add() {
    bindings.add(new ArrayList<>());
    return this;
  }

  @Override
  public Statement bind(int index, Object value) {
    Settings.required("value", value);
    return bound(s -> s.bind(index, value));
  }

  @Override
  public Statement bind(String name, Object value) {
    Settings.required("name", name);
    Settings.required("value", value);
    return bound(s -> s.bind(name, value));
  }

  @Override
  public Statement bindNull(int index, Class<?> type) {
    Settings.required("type", type);
    return bound(s -> s.bindNull(index, type));
  }

  @Override
  public Statement bindNull(String name, Class<?> type) {
    Settings.required("name", name);
    Settings.required("type", type);
    return bound(s -> s.bindNull(name, type));
  }

  @Override
  public Statement returnGeneratedValues(String... columns) {
    Settings.required("columns", columns);
    List.of(columns).forEach(column -> Settings.required("column", column));
    String[] copy = columns.clone();
    calls.add(s -> s.returnGeneratedValues(copy));
    return this;
  }

  @Override
  public Statement fetchSize(int rows) {
    fetchSize = rows;
    calls.add(s -> s.fetchSize(rows));
    return this;
  }

  @Override
  public Publisher<? extends Result> execute() {
    boolean several = SEVERAL.matcher(sql).find();
    List<List<Consumer<Statement>>> all = bindings.stream().map(List::copyOf).toList();
    return executor.apply(new Recorded(List.copyOf(calls), all, several, fetchSize > 0));
  }

  private final class Recorded implements Execution {
    private final List<Consumer<Statement>> calls;
    private final List<List<Consumer<Statement>>> bindings;
    private final boolean several;
    private final boolean streamed;

    Recorded(
        List<Consumer<Statement>> calls,
        List<List<Consumer<Statement>>> bindings,
        boolean several,
        boolean streamed) {
      this.calls = calls;
      this.bindings = bindings;
      this.several = several;
      this.streamed = streamed;
    }

    @Override
    public Publisher<? extends Result> on(Connection connection) {
      Statement statement = connection.createStatement(sql);
      calls.forEach(call -> call.accept(statement));
      for (int i = 0; i < bindings.size(); i++) {
        if (i > 0) {
          statement.add();
        }
        bindings.get(i).forEach(call -> call.accept(statement));
      }
      return statement.execute();
    }

    @Override
    public boolean isSingle() {
      return bindings.size() == 1 && !several;
    }

    @Override
    public boolean isSentLate() {
      return isSingle() && !bindings.get(0).isEmpty();
    }

    @Override
    public List<Execution> each() {
      // an empty one is the caller's mistake, and the driver's to tell
      if (bindings.size() == 1 || several || bindings.stream().anyMatch(List::isEmpty)) {
        return List.of(this);
      }
      return bindings.stream()
          .<Execution>map(one -> new Recorded(calls, List.of(one), false, streamed))
          .toList();
    }

    @Override
    public boolean isStreamed() {
      return streamed;
    }
  }
}
