package basalt.junit;

import java.io.IOException;
import org.apache.hadoop.hbase.client.Connection;

/**
 * Tables that the tests of a class begin with. The class needs a constructor without parameters:
 *
 * <pre>{@code
 * final class Library implements BasaltTemplate {
 *   @Override
 *   public void fill(Connection connection) throws IOException { ... }
 * }
 *
 * @BasaltTest(template = Library.class)
 * class LibraryTest { ... }
 * }</pre>
 */
public interface BasaltTemplate {
  /** Creates and fills tables on an empty server. Called once in a row of tests with this template. */
  void fill(Connection connection) throws IOException;

  /** No tables. */
  final class Empty implements BasaltTemplate {
    @Override
    public void fill(Connection connection) {}
  }
}
