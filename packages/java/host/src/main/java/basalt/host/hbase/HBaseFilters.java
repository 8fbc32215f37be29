package basalt.host.hbase;

import basalt.host.Filters;
import basalt.host.Input;
import java.io.IOException;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.ComparatorProtos;
import org.apache.hadoop.hbase.shaded.protobuf.generated.FilterProtos;

/** Makes filters of their protobuf messages, as HBase's region server does. */
public final class HBaseFilters implements Filters {
  public HBaseFilters() {
    // The first filter is not to wait for these.
    FilterProtos.Filter.getDefaultInstance();
    ComparatorProtos.Comparator.getDefaultInstance();
    try {
      Class.forName(ProtobufUtil.class.getName() + "$ClassLoaderHolder", true, ProtobufUtil.class.getClassLoader());
    } catch (ClassNotFoundException error) {
      // Another version of HBase has another place for it, which is loaded when it is needed.
      System.err.println("basalt host: " + error);
    }
  }

  @Override
  public Run open(Input input) throws IOException {
    Filter filter = ProtobufUtil.toFilter(FilterProtos.Filter.parseFrom(input.bytes()));
    return new FilterRun(filter, input);
  }

  @Override
  public boolean isFinal(Throwable thrown) {
    return thrown instanceof DoNotRetryIOException;
  }
}
