package basalt.testcontainers;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.time.Duration;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/**
 * Basalt's image as a container.
 *
 * <p>HBase's clients connect to the address that a server announces, so the server must know the port of the host
 * before it starts. The container therefore publishes a free port that is chosen beforehand, and passes it to the
 * server as {@code BASALT_SERVER_ADVERTISE}.
 */
public final class BasaltContainer extends GenericContainer<BasaltContainer> {
  /** The image of packages/image. */
  public static final DockerImageName IMAGE = DockerImageName.parse("basalt");

  /** Port of HBase's native protocol and of Thrift inside the container. */
  public static final int PORT = 9090;

  /** Port of HTTP inside the container. */
  public static final int HTTP_PORT = 9095;

  private final int hostPort = freePort();

  /** A container of the image {@code basalt:latest}. */
  public BasaltContainer() {
    this(IMAGE);
  }

  /** A container of this image, which must be Basalt's or declared as a substitute for it. */
  public BasaltContainer(DockerImageName image) {
    super(image);
    image.assertCompatibleWith(IMAGE);
    addFixedExposedPort(hostPort, PORT);
    addExposedPort(HTTP_PORT);
    // Not by HTTP: the server answers only to names of hosts that it knows.
    waitingFor(Wait.forLogMessage(".*basalt serves.*\\n", 1).withStartupTimeout(Duration.ofMinutes(1)));
  }

  @Override
  protected void configure() {
    withEnv("BASALT_SERVER_ADVERTISE", getHost() + ":" + hostPort);
  }

  /** The port of the host at which clients reach the server. It is known before the start. */
  public int port() {
    return hostPort;
  }

  /** Settings of HBase's client for this server. */
  public Configuration configuration() {
    Configuration configuration = HBaseConfiguration.create();
    configuration.set("hbase.client.registry.impl", "org.apache.hadoop.hbase.client.RpcConnectionRegistry");
    configuration.set("hbase.client.bootstrap.servers", getHost() + ":" + hostPort);
    configuration.setInt("hbase.client.pause", 10);
    return configuration;
  }

  /** A connection to this server; the caller closes it. */
  public Connection connect() throws IOException {
    return ConnectionFactory.createConnection(configuration());
  }

  private static int freePort() {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
