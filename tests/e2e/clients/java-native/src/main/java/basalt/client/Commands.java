package basalt.client;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Consistency;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.security.access.Permission;
import org.apache.hadoop.hbase.security.access.UserPermission;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * Makes the requests that stand on the lines of its standard input, and prints an answer to each before
 * it reads the next, so that a test can change the server between two of them.
 *
 * <p>Arguments: as those of {@link Tour}. An exception is printed with all its causes.
 */
public final class Commands {
  private final Configuration conf;
  private Connection connection;

  private Commands(Configuration conf) {
    this.conf = conf;
  }

  public static void main(String[] arguments) throws Exception {
    Commands commands = new Commands(Tour.configuration(arguments));
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String answer;
      try {
        answer = Transcript.show(commands.run(line.split(" ")));
      } catch (Throwable error) {
        answer = "throws " + causes(error);
      }
      System.out.println(line + " -> " + answer.replace('\n', ' '));
      System.out.flush();
    }
    System.exit(0);
  }

  /** The exception and its causes, each with its text. */
  private static String causes(Throwable error) {
    StringBuilder text = new StringBuilder();
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      text.append(text.length() == 0 ? "" : "; by ").append(cause);
    }
    return text.toString();
  }

  private Connection connection() throws Exception {
    if (connection == null) {
      connection = ConnectionFactory.createConnection(conf);
    }
    return connection;
  }

  private void close() throws Exception {
    if (connection != null) {
      connection.close();
      connection = null;
    }
  }

  private Object run(String[] words) throws Exception {
    switch (words[0]) {
      case "close":
        close();
        return "done";
      case "as":
        // The rest of the line, by a connection of a proxy user of the user that is logged in.
        UserGroupInformation proxy =
            UserGroupInformation.createProxyUser(words[1], UserGroupInformation.getLoginUser());
        String[] rest = java.util.Arrays.copyOfRange(words, 2, words.length);
        return proxy.doAs(
            (PrivilegedExceptionAction<Object>)
                () -> {
                  Commands own = new Commands(conf);
                  try {
                    return own.run(rest);
                  } finally {
                    own.close();
                  }
                });
      case "tables":
        return withAdmin(admin -> java.util.Arrays.asList(admin.listTableNames()).toString());
      case "descriptors":
        return withAdmin(admin -> admin.listTableDescriptors().size());
      case "create":
        return withAdmin(admin -> create(admin, words));
      case "replicate":
        return withAdmin(admin -> replicate(admin, words));
      case "has":
        return withAdmin(
            admin ->
                admin.hasUserPermissions(
                    words[1],
                    List.of(
                        Permission.newBuilder(TableName.valueOf(words[2]))
                            .withActions(Permission.Action.valueOf(words[3]))
                            .build())));
      case "grant":
        return withAdmin(
            admin -> {
              admin.grant(permission(words), true);
              return "done";
            });
      case "revoke":
        return withAdmin(
            admin -> {
              admin.revoke(permission(words));
              return "done";
            });
      case "snapshot":
        return withAdmin(
            admin -> {
              admin.snapshot(words[2], TableName.valueOf(words[1]));
              return "done";
            });
      case "snapshots":
        return withAdmin(
            admin ->
                admin.listSnapshots().stream()
                    .map(snapshot -> snapshot.getName() + " of " + snapshot.getOwner())
                    .sorted()
                    .collect(java.util.stream.Collectors.joining(", ", "[", "]")));
      case "restore":
      case "clone":
      case "forget":
      case "disable":
      case "drop":
        return withAdmin(
            admin -> {
              onSnapshot(admin, words);
              return "done";
            });
      case "meta":
        return withTable("hbase:meta", table -> count(table, new Scan()) > 0);
      default:
        return withTable(words[1], table -> onTable(table, words));
    }
  }

  private static UserPermission permission(String[] words) {
    Permission permission =
        Permission.newBuilder(TableName.valueOf(words[2]))
            .withActions(Permission.Action.valueOf(words[3]))
            .build();
    return new UserPermission(words[1], permission);
  }

  private static void onSnapshot(Admin admin, String[] words) throws Exception {
    switch (words[0]) {
      case "restore":
        admin.restoreSnapshot(words[1]);
        break;
      case "clone":
        admin.cloneSnapshot(words[1], TableName.valueOf(words[2]));
        break;
      case "forget":
        admin.deleteSnapshot(words[1]);
        break;
      case "disable":
        admin.disableTable(TableName.valueOf(words[1]));
        break;
      default:
        admin.deleteTable(TableName.valueOf(words[1]));
    }
  }

  private static Object create(Admin admin, String[] words) throws Exception {
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(TableName.valueOf(words[1]));
    for (int i = 2; i < words.length; i++) {
      table.setColumnFamily(ColumnFamilyDescriptorBuilder.of(words[i]));
    }
    admin.createTable(table.build());
    return "done";
  }

  /** A table whose regions have a replica. */
  private static Object replicate(Admin admin, String[] words) throws Exception {
    admin.createTable(
        TableDescriptorBuilder.newBuilder(TableName.valueOf(words[1]))
            .setColumnFamily(ColumnFamilyDescriptorBuilder.of(words[2]))
            .setRegionReplication(2)
            .build());
    return "done";
  }

  private static byte[] family(String column) {
    return Bytes.toBytes(column.split(":")[0]);
  }

  private static byte[] qualifier(String column) {
    return Bytes.toBytes(column.split(":")[1]);
  }

  private static Object onTable(Table table, String[] words) throws Exception {
    switch (words[0]) {
      case "put":
        table.put(
            new Put(Bytes.toBytes(words[2]))
                .addColumn(family(words[3]), qualifier(words[3]), Bytes.toBytes(words[4])));
        return "done";
      case "delete":
        table.delete(new Delete(Bytes.toBytes(words[2])));
        return "done";
      case "get":
        return table.get(new Get(Bytes.toBytes(words[2])));
      case "timeline":
        Result found = table.get(new Get(Bytes.toBytes(words[2])).setConsistency(Consistency.TIMELINE));
        return (found.isStale() ? "stale " : "current ") + Transcript.show(found);
      case "check":
        // If the first column is equal, put the second.
        return table
            .checkAndMutate(Bytes.toBytes(words[2]), family(words[3]))
            .qualifier(qualifier(words[3]))
            .ifMatches(CompareOperator.EQUAL, Bytes.toBytes(words[4]))
            .thenPut(
                new Put(Bytes.toBytes(words[2]))
                    .addColumn(family(words[5]), qualifier(words[5]), Bytes.toBytes(words[6])));
      case "scan":
        return table.getScanner(new Scan());
      default:
        throw new IllegalArgumentException("there is no command " + words[0]);
    }
  }

  private static int count(Table table, Scan scan) throws Exception {
    int rows = 0;
    for (Result row : table.getScanner(scan)) {
      rows += row.isEmpty() ? 0 : 1;
    }
    return rows;
  }

  private interface OnAdmin {
    Object run(Admin admin) throws Exception;
  }

  private interface OnTable {
    Object run(Table table) throws Exception;
  }

  private Object withAdmin(OnAdmin action) throws Exception {
    try (Admin admin = connection().getAdmin()) {
      return action.run(admin);
    }
  }

  private Object withTable(String name, OnTable action) throws Exception {
    try (Table table = connection().getTable(TableName.valueOf(name))) {
      return action.run(table);
    }
  }
}
