package basalt.host;

import java.io.IOException;

/**
 * Filters by HBase's classes. The implementation is in {@code basalt.host.hbase}, which is loaded
 * with HBase's jars ({@link Generation}); this interface is loaded once.
 */
public interface Filters {
  /** Opens the filter that the input describes; everything but its rows. */
  Run open(Input input) throws IOException;

  /** Whether this is an IOException after which HBase's clients do not repeat the call. */
  boolean isFinal(Throwable thrown);

  /** A filter in use, for one scan. One thread at a time. */
  interface Run {
    boolean hasFilterRow();

    /** Judges the rows of the input, to its end, and writes the verdict. */
    void rows(Input input, Output output) throws IOException;
  }
}
