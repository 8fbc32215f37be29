package basalt.testcontainers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

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

  /** Needs Docker, and the image that packages/image builds. */
  @Test
  void aConnectionReachesTheContainer() throws IOException {
    assumeTrue(DockerClientFactory.instance().isDockerAvailable(), "no Docker here");
    try (BasaltContainer container = new BasaltContainer()) {
      container.start();
      try (Connection connection = container.connect()) {
        assertEquals(0, connection.getAdmin().listTableNames().length);
      }
    }
  }
}
