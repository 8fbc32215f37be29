package basalt.junit;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.hbase.HBaseTestingUtility;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * The counterpart of BasaltExtension for HBase's mini cluster: one for all tests, emptied before each. The cluster is
 * the smallest possible: one master, one region server, ZooKeeper, HDFS with one data node.
 */
public final class MiniClusterExtension implements BeforeEachCallback, ParameterResolver {
  private static final Namespace NAMESPACE = Namespace.create(MiniClusterExtension.class);

  @Override
  public void beforeEach(ExtensionContext context) throws IOException {
    try (Admin admin = cluster(context).utility.getConnection().getAdmin()) {
      for (TableName name : admin.listTableNames()) {
        admin.disableTable(name);
        admin.deleteTable(name);
      }
    }
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == Connection.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    try {
      return cluster(context).utility.getConnection();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static Cluster cluster(ExtensionContext context) {
    return context.getRoot().getStore(NAMESPACE).getOrComputeIfAbsent(Cluster.class, key -> new Cluster(), Cluster.class);
  }

  private static final class Cluster implements AutoCloseable {
    private final HBaseTestingUtility utility = new HBaseTestingUtility();

    Cluster() {
      try {
        utility.startMiniCluster();
      } catch (Exception error) {
        throw new IllegalStateException("the mini cluster did not start", error);
      }
    }

    @Override
    public void close() {
      try {
        utility.shutdownMiniCluster();
      } catch (Exception error) {
        throw new IllegalStateException("the mini cluster did not stop", error);
      }
    }
  }
}
