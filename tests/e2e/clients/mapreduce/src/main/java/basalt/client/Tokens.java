package basalt.client;

import java.io.IOException;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.protobuf.generated.AuthenticationProtos;
import org.apache.hadoop.hbase.security.token.AuthenticationTokenIdentifier;
import org.apache.hadoop.hbase.security.token.ClientTokenUtil;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.token.Token;

/** The endpoint by which MapReduce gets tokens for its jobs. */
final class Tokens {
  private Tokens() {}

  /** The user, and how the server knows it. */
  static String whoAmI(Connection connection) throws Exception {
    try (Table meta = connection.getTable(TableName.META_TABLE_NAME)) {
      AuthenticationProtos.AuthenticationService.BlockingInterface service =
          AuthenticationProtos.AuthenticationService.newBlockingStub(
              meta.coprocessorService(HConstants.EMPTY_START_ROW));
      AuthenticationProtos.WhoAmIResponse answer =
          service.whoAmI(null, AuthenticationProtos.WhoAmIRequest.getDefaultInstance());
      return answer.getUsername() + " by " + answer.getAuthMethod();
    }
  }

  /** Gets a token and writes it to a file, under the services that clients look for. */
  static String write(Connection connection, String file) throws Exception {
    Token<AuthenticationTokenIdentifier> token;
    try {
      token = ClientTokenUtil.obtainToken(connection);
    } catch (IOException wrapped) {
      Throwable cause = wrapped;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      throw cause instanceof RemoteException remote ? remote.unwrapRemoteException() : wrapped;
    }
    Credentials credentials = new Credentials();
    credentials.addToken(token.getService(), token);
    Token<AuthenticationTokenIdentifier> other = new Token<>(token);
    other.setService(new Text("default-cluster"));
    credentials.addToken(other.getService(), other);
    credentials.writeTokenStorageFile(new org.apache.hadoop.fs.Path(Path.of(file).toUri()), new Configuration());
    return token.getKind() + " of " + token.decodeIdentifier().getUsername();
  }
}
