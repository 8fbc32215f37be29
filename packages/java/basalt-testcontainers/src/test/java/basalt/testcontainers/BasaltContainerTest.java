package basalt.testcontainers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import basalt.server.BasaltServer;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.hbase.client.Connection;
import org.junit.jupiter.api.Test;
import org.testcontainers.DockerClientFactory;
import org.testcontainers.utility.DockerImageName;

class BasaltContainerTest {
  @Test
  void theHostsPortIsPublishedAsChosen() {
    try (BasaltContainer container = new BasaltContainer()) {
      assertEquals(List.of(container.port() + ":9090/tcp"), container.getPortBindings());
      assertEquals(List.of(9095), container.getExposedPorts());
    }
  }

  @Test
  void anotherImageIsRefused() {
    DockerImageName other = DockerImageName.parse("hbase:2.6");
    assertThrows(IllegalStateException.class, () -> new BasaltContainer(other));
  }

  /** A server of this machine in the container's place: it shows where and what the container's calls send. */
  @Test
  void faultsAndResetReachTheHttpPort() {
    String fault = "{\"calls\":3,\"fault\":\"region_too_busy\",\"method\":\"Get\"}";
    try (BasaltServer server = BasaltServer.start();
        BasaltContainer container = standIn(server)) {
      assertTrue(container.faults(fault).contains(fault));
      assertTrue(server.faultsLeft().contains(fault));
      container.reset();
      assertEquals("{\"faults\":[]}", container.faultsLeft());
    }
  }

  private static BasaltContainer standIn(BasaltServer server) {
    return new BasaltContainer() {
      @Override
      public String getHost() {
        return server.host();
      }

      @Override
      public Integer getMappedPort(int port) {
        assertEquals(HTTP_PORT, port);
        return server.http().getPort();
      }
    };
  }

  /** Needs Docker, and the image that packages/image builds. */
  @Test
  void aConnectionReachesTheContainer() throws IOException {
    assumeTrue(DockerClientFactory.instance().isDockerAvailable(), "no Docker here");
    try (BasaltContainer container = new BasaltContainer()) {
      container.start();
      container.faults("{\"method\": \"*\", \"fault\": \"delay\", \"calls\": 1, \"delay_ms\": 1}");
      container.reset();
      assertEquals("{\"faults\":[]}", container.faultsLeft());
      try (Connection connection = container.connect()) {
        assertEquals(0, connection.getAdmin().listTableNames().length);
      }
    }
  }
}
