package basalt.client;

import static org.apache.hadoop.hbase.util.Bytes.toBytes;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HColumnDescriptor;
import org.apache.hadoop.hbase.HTableDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.security.access.AccessControlClient;
import org.apache.hadoop.hbase.security.access.Permission.Action;
import org.apache.hadoop.hbase.security.access.UserPermission;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Grants and revokes as HBase 1.x does, by the endpoint of the table {@code hbase:acl}, and prints each request
 * with its answer on one line.
 *
 * <p>Arguments: {@code zookeeper}, host and port; then {@code grant} for a user that may, or {@code ask} for one
 * that has been granted something.
 */
public final class Rights {
  private static final TableName NAME = TableName.valueOf("t");
  private static final TableName ACL = TableName.valueOf("hbase:acl");
  private static final byte[] F = toBytes("f");
  private static final byte[] G = toBytes("g");
  private static final byte[] Q = toBytes("q");

  private final Connection connection;

  private Rights(Connection connection) {
    this.connection = connection;
  }

  public static void main(String[] arguments) throws Exception {
    Configuration conf = HBaseConfiguration.create();
    conf.set("hbase.zookeeper.quorum", arguments[1]);
    conf.set("hbase.zookeeper.property.clientPort", arguments[2]);
    conf.setInt("hbase.client.retries.number", 2);
    try (Connection connection = ConnectionFactory.createConnection(conf)) {
      Rights rights = new Rights(connection);
      if (arguments[3].equals("grant")) {
        rights.grant();
      } else {
        rights.ask();
      }
    }
    System.out.println("tour done");
  }

  private void grant() {
    ask("create", () -> {
      try (Admin admin = connection.getAdmin()) {
        HTableDescriptor table = new HTableDescriptor(NAME);
        admin.createTable(table.addFamily(new HColumnDescriptor(F)).addFamily(new HColumnDescriptor(G)));
        return "done";
      }
    });
    ask("put", () -> {
      try (Table table = connection.getTable(NAME)) {
        table.put(new Put(toBytes("r")).addColumn(F, Q, toBytes("seen")).addColumn(G, Q, toBytes("hidden")));
        return "done";
      }
    });
    ask("is authorization on", () -> AccessControlClient.isAuthorizationEnabled(connection));
    act("grant on a family", () -> AccessControlClient.grant(connection, NAME, "bob", F, null, Action.READ));
    act("grant more",
        () -> AccessControlClient.grant(connection, NAME, "bob", F, null, Action.READ, Action.WRITE));
    act("grant on a column", () -> AccessControlClient.grant(connection, NAME, "@readers", G, Q, Action.READ));
    act("grant on a namespace", () -> AccessControlClient.grant(connection, "default", "bob", Action.EXEC));
    act("grant everywhere", () -> AccessControlClient.grant(connection, "eve", Action.CREATE));
    ask("of the table", () -> permissions("t"));
    ask("of the namespace", () -> permissions("@default"));
    ask("rows", this::rows);
    act("revoke", () -> AccessControlClient.revoke(connection, NAME, "bob", F, null, Action.WRITE));
    act("revoke everywhere", () -> AccessControlClient.revoke(connection, "eve", Action.CREATE));
    ask("rows that are left", this::rows);
    ask("one row", () -> {
      try (Table acl = connection.getTable(ACL)) {
        return show(acl.get(new Get(toBytes("@default"))));
      }
    });
    ask("put into it", () -> {
      try (Table acl = connection.getTable(ACL)) {
        acl.put(new Put(toBytes("t")).addColumn(toBytes("l"), toBytes("bob"), toBytes("A")));
        return "done";
      }
    });
  }

  private void ask() {
    ask("get", () -> {
      try (Table table = connection.getTable(NAME)) {
        return show(table.get(new Get(toBytes("r"))));
      }
    });
    ask("rows", this::rows);
    act("grant", () -> AccessControlClient.grant(connection, NAME, "bob", G, null, Action.READ));
    ask("of the table", () -> permissions("t"));
  }

  /** The permissions of a table or namespace, sorted, since their order is the server's. */
  private Object permissions(String of) throws Throwable {
    List<String> shown = new ArrayList<>();
    for (UserPermission permission : AccessControlClient.getUserPermissions(connection, of)) {
      shown.add(permission.toString().replaceAll("^UserPermission: ", ""));
    }
    Collections.sort(shown);
    return shown;
  }

  private Object rows() throws Exception {
    List<String> shown = new ArrayList<>();
    try (Table acl = connection.getTable(ACL); ResultScanner scanner = acl.getScanner(new Scan())) {
      for (Result row : scanner) {
        shown.add(show(row));
      }
    }
    return shown;
  }

  private static String show(Result row) {
    StringBuilder shown = new StringBuilder(Bytes.toStringBinary(row.getRow()));
    for (Cell cell : row.rawCells()) {
      shown.append(' ').append(Bytes.toString(CellUtil.cloneFamily(cell)));
      shown.append(':').append(Bytes.toStringBinary(CellUtil.cloneQualifier(cell)));
      shown.append('=').append(Bytes.toStringBinary(CellUtil.cloneValue(cell)));
    }
    return shown.toString();
  }

  /** A request without a reply; the client's own methods throw everything. */
  private interface Step {
    void run() throws Throwable;
  }

  private interface Question {
    Object run() throws Throwable;
  }

  private static void act(String what, Step action) {
    ask(what, () -> {
      action.run();
      return "done";
    });
  }

  private static void ask(String what, Question question) {
    String answer;
    try {
      answer = String.valueOf(question.run());
    } catch (Throwable error) {
      answer = "throws " + causes(error);
    }
    System.out.println(what + " -> " + answer.replace('\n', ' '));
  }

  private static String causes(Throwable error) {
    StringBuilder text = new StringBuilder();
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      text.append(text.length() == 0 ? "" : "; by ").append(cause);
    }
    return text.toString();
  }
}
