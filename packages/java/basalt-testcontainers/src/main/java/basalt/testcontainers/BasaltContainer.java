package basalt.testcontainers;

import basalt.server.Controls;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.net.URI;
import java.time.Duration;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/**
 * Basalt's image as a container, with a server that the test owns: {@code basalt serve --ephemeral --insecure}.
 *
 * <p>Its data is gone with it. {@link #reset} empties the server between two tests, {@link #faults} lets the next calls
 * fail, {@link #controls} has all calls of this kind.
 *
 * <p>HBase's clients connect to the address that a server announces, so the server must know the port of the host
 * before it starts. The container therefore publishes a free port that is chosen beforehand, and passes it to the
 * server as {@code BASALT_SERVER_ADVERTISE}.
 */
public class BasaltContainer extends GenericContainer<BasaltContainer> {
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
    setCommand("serve", "--ephemeral", "--insecure");
    // The server prints this line of JSON when it accepts calls.
    waitingFor(Wait.forLogMessage(".*\"listen\".*\\n", 1).withStartupTimeout(Duration.ofMinutes(1)));
  }

  @Override
  protected void configure() {
    withEnv("BASALT_SERVER_ADVERTISE", getHost() + ":" + hostPort);
    // The HTTP port answers only to names that it knows.
    withEnv("BASALT_HTTP_ALLOWED_HOSTS", getHost());
  }

  /** The address of the HTTP port, as the test reaches it. */
  public URI http() {
    return URI.create("http://" + getHost() + ":" + getMappedPort(HTTP_PORT));
  }

  /** The calls that only servers of tests answer. */
  public Controls controls() {
    return new Controls(http(), this::getLogs);
  }

  /** As {@link Controls#reset}. */
  public void reset() {
    controls().reset();
  }

  /** As {@link Controls#faults}. */
  public String faults(String... faults) {
    return controls().faults(faults);
  }

  /** As {@link Controls#faultsLeft}. */
  public String faultsLeft() {
    return controls().faultsLeft();
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
