package basalt.host;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** The classes that filters are made of: a new {@link Generation} once a jar of the user has come, gone or changed. */
final class Classes {
  private static final long LOOK_NANOS = 1_000_000_000;

  private final List<Path> hbase;
  private final List<Path> directories;
  private final Path scratch;
  private Generation current;
  private List<Seen> seen = List.of();
  private long looked;

  /** A jar as it was seen: its content counts as changed when one of these has. */
  private record Seen(Path jar, Object file, long bytes, long modified) {}

  Classes(List<Path> hbase, List<Path> directories, Path scratch) {
    this.hbase = hbase;
    this.directories = directories;
    this.scratch = scratch;
  }

  /** The classes of now. Looks at the directories, at most once a second. */
  synchronized Generation current() throws IOException {
    if (current != null && System.nanoTime() - looked < LOOK_NANOS) {
      return current;
    }
    List<Seen> now = look();
    looked = System.nanoTime();
    if (current == null || !now.equals(seen)) {
      current = new Generation(hbase, now.stream().map(Seen::jar).toList(), scratch);
      seen = now;
    }
    return current;
  }

  private List<Seen> look() throws IOException {
    List<Seen> found = new ArrayList<>();
    for (Path directory : directories) {
      try (Stream<Path> files = Files.list(directory)) {
        for (Path jar : files.filter(file -> file.toString().endsWith(".jar")).sorted().toList()) {
          BasicFileAttributes attributes = Files.readAttributes(jar, BasicFileAttributes.class);
          found.add(new Seen(jar, attributes.fileKey(), attributes.size(), attributes.lastModifiedTime().toMillis()));
        }
      } catch (UncheckedIOException error) {
        throw error.getCause();
      }
    }
    return found;
  }
}
