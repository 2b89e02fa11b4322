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
  private final List<Consumer<Statement>> calls = new ArrayList<>();
  private int bindings = 1;
  private boolean bound;
  private int fetchSize;

  RecordedStatement(String sql, Function<Execution, Publisher<? extends Result>> executor) {
    this.sql = sql;
    this.executor = executor;
  }

  private Statement recorded(Consumer<Statement> call) {
    calls.add(call);
    return this;
  }

  @Override
  public Statement add() {
    bindings++;
    return recorded(Statement::add);
  }

  @Override
  public Statement bind(int index, Object value) {
    Settings.required("value", value);
    bound = true;
    return recorded(s -> s.bind(index, value));
  }

  @Override
  public Statement bind(String name, Object value) {
    Settings.required("name", name);
    Settings.required("value", value);
    bound = true;
    return recorded(s -> s.bind(name, value));
  }

  @Override
  public Statement bindNull(int index, Class<?> type) {
    Settings.required("type", type);
    bound = true;
    return recorded(s -> s.bindNull(index, type));
  }

  @Override
  public Statement bindNull(String name, Class<?> type) {
    Settings.required("name", name);
    Settings.required("type", type);
    bound = true;
    return recorded(s -> s.bindNull(name, type));
  }

  @Override
  public Statement returnGeneratedValues(String... columns) {
    Settings.required("columns", columns);
    List.of(columns).forEach(column -> Settings.required("column", column));
    String[] copy = columns.clone();
    return recorded(s -> s.returnGeneratedValues(copy));
  }

  @Override
  public Statement fetchSize(int rows) {
    fetchSize = rows;
    return recorded(s -> s.fetchSize(rows));
  }

  @Override
  public Publisher<? extends Result> execute() {
    List<Consumer<Statement>> all = List.copyOf(calls);
    boolean single = bindings == 1 && !SEVERAL.matcher(sql).find();
    boolean sentLate = single && bound;
    boolean streamed = fetchSize > 0;
    return executor.apply(
        new Execution() {
          @Override
          public Publisher<? extends Result> on(Connection connection) {
            Statement statement = connection.createStatement(sql);
            all.forEach(call -> call.accept(statement));
            return statement.execute();
          }

          @Override
          public boolean isSingle() {
            return single;
          }

          @Override
          public boolean isSentLate() {
            return sentLate;
          }

          @Override
          public boolean isStreamed() {
            return streamed;
          }
        });
  }
}
