package basalt.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.Socket;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

class BasaltServerTest {
  @Test
  void serversHavePortsOfTheirOwnUntilTheyAreClosed() throws IOException {
    int port;
    try (BasaltServer one = BasaltServer.start();
        BasaltServer other = BasaltServer.start()) {
      assertNotEquals(one.port(), other.port());
      port = one.port();
      new Socket(one.host(), port).close();
      one.reset();
    }
    assertThrows(IOException.class, () -> new Socket("127.0.0.1", port).close());
  }

  @Test
  void closingTwiceIsHarmless() {
    BasaltServer server = BasaltServer.start();
    server.close();
    server.close();
  }

  @Test
  void aWrongSettingIsReportedInTheServersWords() {
    BasaltException error =
        assertThrows(BasaltException.class, () -> BasaltServer.start(Map.of("memstore.flush_byte", "1")));
    assertTrue(error.getMessage().contains("memstore.flush_byte"), error.getMessage());
  }

  @Test
  void anUnknownPathIsReportedWithItsStatus() {
    try (BasaltServer server = BasaltServer.start()) {
      BasaltException error = assertThrows(BasaltException.class, () -> server.post("/test/nothing", "{}"));
      assertTrue(error.getMessage().contains("404"), error.getMessage());
    }
  }

  @Test
  void faultsAreArmedAndCleared() {
    try (BasaltServer server = BasaltServer.start()) {
      String fault = "{\"calls\":3,\"fault\":\"region_too_busy\",\"method\":\"Get\"}";
      assertTrue(server.faults(fault).contains(fault));
      assertTrue(server.faultsLeft().contains(fault));
      server.reset();
      assertEquals("{\"faults\":[]}", server.faultsLeft());
      server.faults(fault);
      server.faults();
      assertEquals("{\"faults\":[]}", server.faultsLeft());
      String wrong = fault.replace("Get", "Gett");
      BasaltException error = assertThrows(BasaltException.class, () -> server.faults(wrong));
      assertTrue(error.getMessage().contains("must be one of"), error.getMessage());
    }
  }

  @Test
  void theClockMovesForwardOnly() {
    try (BasaltServer server = BasaltServer.start()) {
      server.advanceClock(Duration.ofDays(1));
      BasaltException error =
          assertThrows(BasaltException.class, () -> server.advanceClock(Duration.ofDays(-1)));
      assertTrue(error.getMessage().contains("forward only"), error.getMessage());
    }
  }

  @Test
  void aMissingPlatformIsNamedWithTheRemedy() {
    assertEquals("linux-amd64", Program.platform("Linux", "x86_64"));
    assertEquals("linux-arm64", Program.platform("Linux", "aarch64"));
    String platform = Program.platform("Mac OS X", "riscv64");
    BasaltException error = assertThrows(BasaltException.class, () -> Program.packed(platform));
    assertTrue(error.getMessage().contains("basalt-binaries-mac-os-x-riscv64"), error.getMessage());
  }
}
