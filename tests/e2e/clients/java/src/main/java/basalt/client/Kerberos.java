package basalt.client;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import javax.security.auth.Subject;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;
import javax.security.auth.login.LoginContext;
import javax.security.sasl.Sasl;
import javax.security.sasl.SaslClient;
import org.apache.hadoop.hbase.thrift2.generated.TColumnFamilyDescriptor;
import org.apache.hadoop.hbase.thrift2.generated.TColumnValue;
import org.apache.hadoop.hbase.thrift2.generated.TGet;
import org.apache.hadoop.hbase.thrift2.generated.THBaseService;
import org.apache.hadoop.hbase.thrift2.generated.TPut;
import org.apache.hadoop.hbase.thrift2.generated.TResult;
import org.apache.hadoop.hbase.thrift2.generated.TTableDescriptor;
import org.apache.hadoop.hbase.thrift2.generated.TTableName;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.transport.TSaslClientTransport;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;
import org.ietf.jgss.GSSContext;
import org.ietf.jgss.GSSManager;
import org.ietf.jgss.GSSName;
import org.ietf.jgss.Oid;

/**
 * Logs in with the Kerberos tickets of a file, through the GSSAPI of the JDK.
 *
 * <p>Arguments: the file, a command, and those of the command:
 *
 * <ul>
 *   <li>{@code thrift PORT QOP}: puts and gets rows of the table {@code t} through Thrift 2; makes the
 *       table if it is not there.
 *   <li>{@code token}: prints the first token for {@code hbase@localhost}.
 *   <li>{@code native PORT}: logs in at the native port, and prints the server's refusal.
 *   <li>{@code pieces PORT}: logs in at the native port with encryption, once for each kind of wrong
 *       piece, sends that, and prints how the server ends the connection.
 * </ul>
 */
public final class Kerberos {
  private static final String SERVICE = "hbase";
  private static final String HOST = "localhost";

  private Kerberos() {}

  public static void main(String[] arguments) throws Exception {
    Subject.doAs(
        login(arguments[0]),
        (PrivilegedExceptionAction<Void>)
            () -> {
              switch (arguments[1]) {
                case "thrift":
                  thrift(Integer.parseInt(arguments[2]), arguments[3]);
                  break;
                case "token":
                  System.out.println(Base64.getEncoder().encodeToString(token()));
                  break;
                case "native":
                  refused(Integer.parseInt(arguments[2]));
                  break;
                default:
                  pieces(Integer.parseInt(arguments[2]));
              }
              return null;
            });
  }

  private static Subject login(String tickets) throws Exception {
    Configuration file =
        new Configuration() {
          @Override
          public AppConfigurationEntry[] getAppConfigurationEntry(String name) {
            return new AppConfigurationEntry[] {
              new AppConfigurationEntry(
                  "com.sun.security.auth.module.Krb5LoginModule",
                  AppConfigurationEntry.LoginModuleControlFlag.REQUIRED,
                  Map.of("useTicketCache", "true", "ticketCache", tickets, "doNotPrompt", "true"))
            };
          }
        };
    LoginContext context = new LoginContext("client", null, null, file);
    context.login();
    return context.getSubject();
  }

  private static byte[] token() throws Exception {
    GSSManager manager = GSSManager.getInstance();
    GSSName name = manager.createName(SERVICE + "@" + HOST, GSSName.NT_HOSTBASED_SERVICE);
    GSSContext context =
        manager.createContext(name, new Oid("1.2.840.113554.1.2.2"), null, GSSContext.DEFAULT_LIFETIME);
    context.requestMutualAuth(true);
    return context.initSecContext(new byte[0], 0, 0);
  }

  private static void thrift(int port, String qop) throws Exception {
    Map<String, String> properties = new HashMap<>(Map.of(Sasl.QOP, qop, Sasl.SERVER_AUTH, "true"));
    try (TTransport transport =
        new TSaslClientTransport(
            "GSSAPI", null, SERVICE, HOST, properties, null, new TSocket("127.0.0.1", port))) {
      transport.open();
      THBaseService.Client client = new THBaseService.Client(new TBinaryProtocol(transport));
      ByteBuffer table = bytes("t");
      TTableName name = new TTableName(bytes("t"));
      if (!client.tableExists(name)) {
        TColumnFamilyDescriptor family = new TColumnFamilyDescriptor(bytes("f"));
        client.createTable(new TTableDescriptor(name).setColumns(Arrays.asList(family)), Arrays.asList());
      }
      // The last is more than a piece holds.
      for (int length : new int[] {1, 1_000, 300_000}) {
        byte[] value = new byte[length];
        Arrays.fill(value, (byte) 'v');
        TColumnValue cell = new TColumnValue(bytes("f"), bytes("q"), ByteBuffer.wrap(value));
        client.put(table, new TPut(bytes("row" + length), Arrays.asList(cell)));
        TResult found = client.get(table, new TGet(bytes("row" + length)));
        boolean isEqual = Arrays.equals(value, found.getColumnValues().get(0).getValue());
        System.out.println(length + " -> " + isEqual);
      }
    }
    System.out.println("thrift done");
  }

  private static ByteBuffer bytes(String text) {
    return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
  }

  /** A native connection that has logged in with encryption. */
  private static final class Native implements AutoCloseable {
    final Socket socket;
    final DataInputStream in;
    final DataOutputStream out;
    final SaslClient client;

    Native(int port) throws Exception {
      socket = new Socket("127.0.0.1", port);
      socket.setSoTimeout(60_000);
      in = new DataInputStream(socket.getInputStream());
      out = new DataOutputStream(socket.getOutputStream());
      Map<String, String> properties = new HashMap<>(Map.of(Sasl.QOP, "auth-conf"));
      client = Sasl.createSaslClient(new String[] {"GSSAPI"}, null, SERVICE, HOST, properties, null);
      out.write(new byte[] {'H', 'B', 'a', 's', 0, 81});
      send(client.evaluateChallenge(new byte[0]));
      while (!client.isComplete()) {
        if (in.readInt() != 0) {
          byte[] type = new byte[in.readInt()];
          in.readFully(type);
          byte[] text = new byte[in.readInt()];
          in.readFully(text);
          throw new IOException(new String(type, StandardCharsets.UTF_8) + ": " + new String(text, StandardCharsets.UTF_8));
        }
        byte[] challenge = new byte[in.readInt()];
        in.readFully(challenge);
        send(client.evaluateChallenge(challenge));
      }
    }

    void send(byte[] message) throws IOException {
      out.writeInt(message.length);
      out.write(message);
      out.flush();
    }

    byte[] wrap(byte[] message) throws IOException {
      return client.wrap(message, 0, message.length);
    }

    /** Whether the server ends the connection without an answer. */
    String end() {
      try {
        return in.read() < 0 ? "closed" : "answered";
      } catch (java.net.SocketTimeoutException error) {
        return "open";
      } catch (IOException error) {
        return "closed";
      }
    }

    @Override
    public void close() throws IOException {
      socket.close();
    }
  }

  private static void refused(int port) throws Exception {
    try (Native connection = new Native(port)) {
      System.out.println("logged in");
    } catch (IOException error) {
      System.out.println(error.getMessage());
    }
  }

  private interface Piece {
    void send(Native connection) throws IOException;
  }

  private static void pieces(int port) throws Exception {
    byte[] half = new byte[] {0, 0, 0, 9};
    wrong(port, "nothing", connection -> connection.send(new byte[0]));
    wrong(port, "plain bytes", connection -> connection.send("a header without protection".getBytes()));
    wrong(port, "a huge length", connection -> connection.out.writeInt(Integer.MAX_VALUE));
    wrong(port, "a negative length", connection -> connection.out.writeInt(-1));
    wrong(
        port,
        "a piece twice",
        connection -> {
          byte[] wrapped = connection.wrap(half);
          connection.send(wrapped);
          connection.send(wrapped);
        });
    wrong(
        port,
        "the second piece first",
        connection -> {
          byte[] first = connection.wrap(half);
          connection.send(connection.wrap(half));
          connection.send(first);
        });
    for (int at = 0; at < 60; at += 4) {
      int index = at;
      wrong(
          port,
          "byte " + at + " changed",
          connection -> {
            byte[] wrapped = connection.wrap(half);
            wrapped[index % wrapped.length] ^= 1;
            connection.send(wrapped);
          });
    }
    System.out.println("pieces done");
  }

  private static void wrong(int port, String what, Piece piece) throws Exception {
    try (Native connection = new Native(port)) {
      try {
        piece.send(connection);
        connection.out.flush();
      } catch (IOException error) {
        // The server has closed already.
      }
      System.out.println(what + " -> " + connection.end());
    }
  }
}
