package basalt.server;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Locale;

/**
 * Finds the program {@code basalt}.
 *
 * <ol>
 *   <li>the file that the system property {@code basalt.program} names;
 *   <li>the file that the environment variable {@code BASALT_PROGRAM} names;
 *   <li>the program in a jar {@code basalt-binaries-PLATFORM} of the class path. It is unpacked into the folder for
 *       temporary files once for each content, and used again by later runs.
 * </ol>
 */
final class Program {
  private Program() {}

  static Path find() {
    Path named = named(System.getProperty("basalt.program"), "the system property basalt.program");
    if (named == null) {
      named = named(System.getenv("BASALT_PROGRAM"), "the variable BASALT_PROGRAM");
    }
    return named != null ? named : packed(platform());
  }

  private static Path named(String name, String source) {
    if (name == null || name.isEmpty()) {
      return null;
    }
    Path program = Path.of(name);
    if (!Files.isRegularFile(program) || !Files.isExecutable(program)) {
      throw new BasaltException(source + " names " + name + ", which is not an executable file");
    }
    return program;
  }

  /** The platform's name in artifacts, for example {@code linux-amd64}. */
  static String platform() {
    return platform(System.getProperty("os.name"), System.getProperty("os.arch"));
  }

  static String platform(String system, String processor) {
    String os = system.toLowerCase(Locale.ROOT).replace(' ', '-');
    switch (processor) {
      case "amd64":
      case "x86_64":
        return os + "-amd64";
      case "aarch64":
      case "arm64":
        return os + "-arm64";
      default:
        return os + "-" + processor;
    }
  }

  static Path packed(String platform) {
    try (InputStream resource = Program.class.getResourceAsStream("/basalt/" + platform + "/basalt")) {
      if (resource == null) {
        throw new BasaltException(
            "no program for " + platform + " on the class path. Add the test dependency basalt:basalt-binaries-"
                + platform + " (there are linux-amd64 and linux-arm64), or name a program by the system property"
                + " basalt.program or the variable BASALT_PROGRAM");
      }
      return unpack(resource.readAllBytes());
    } catch (IOException error) {
      throw new BasaltException("the program cannot be unpacked: " + error.getMessage(), error);
    }
  }

  /** Writes the program under a name of its content. Two processes that do so at once write the same. */
  private static Path unpack(byte[] content) throws IOException {
    Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
    String name = "basalt-" + System.getProperty("user.name") + "-" + digest(content);
    Path program = temporary.resolve(name);
    if (!Files.isExecutable(program) || Files.size(program) != content.length) {
      Path unfinished =
          Files.createTempFile(
              temporary, name, "", PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      Files.write(unfinished, content);
      Files.move(unfinished, program, StandardCopyOption.ATOMIC_MOVE);
    }
    return program;
  }

  private static String digest(byte[] content) {
    try {
      StringBuilder text = new StringBuilder();
      for (byte value : MessageDigest.getInstance("SHA-256").digest(content)) {
        text.append(String.format("%02x", value));
      }
      return text.toString();
    } catch (NoSuchAlgorithmException error) {
      throw new AssertionError("every Java has SHA-256", error);
    }
  }
}
