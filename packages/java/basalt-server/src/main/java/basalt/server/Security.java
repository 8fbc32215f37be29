package basalt.server;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.UnaryOperator;

/** How clients log in at a server with users: its superuser, and files. */
public final class Security {
  private final String user;
  private final Path ca;
  private final Path certificate;
  private final Path token;
  private final Path tokenText;

  private Security(String user, Path ca, Path certificate, Path token, Path tokenText) {
    this.user = user;
    this.ca = ca;
    this.certificate = certificate;
    this.token = token;
    this.tokenText = tokenText;
  }

  /** The parts of the server's line. */
  static Security of(UnaryOperator<String> part) {
    return new Security(
        part.apply("user"),
        Path.of(part.apply("ca")),
        Path.of(part.apply("certificate")),
        Path.of(part.apply("token")),
        Path.of(part.apply("token_text")));
  }

  /** The superuser. */
  public String user() {
    return user;
  }

  /** The certificate of the authority, as PEM. */
  public Path ca() {
    return ca;
  }

  /** Certificate and key of the user, as PEM. */
  public Path certificate() {
    return certificate;
  }

  /** The token file for {@code HADOOP_TOKEN_FILE_LOCATION} of clients in other processes. */
  public Path token() {
    return token;
  }

  /** The header {@code Authorization} of HTTP requests. */
  public String bearer() {
    try {
      return "Bearer " + Files.readString(tokenText).strip();
    } catch (IOException error) {
      throw new BasaltException(tokenText + " cannot be read: " + error, error);
    }
  }

  /** Properties of HBase's client from 2.6 on, which encrypts, and logs in with the certificate. */
  public Map<String, String> client() {
    return Map.of(
        "hbase.client.netty.tls.enabled", "true",
        "hbase.rpc.tls.truststore.location", ca.toString(),
        "hbase.rpc.tls.truststore.type", "PEM",
        "hbase.rpc.tls.keystore.location", certificate.toString(),
        "hbase.rpc.tls.keystore.type", "PEM");
  }
}
