package basalt.host;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * The host of a Basalt server's user code.
 *
 * <ol>
 *   <li>The server starts this program with the path of a socket, HBase's class path, and its
 *       {@code user_code.directories}.
 *   <li>Once HBase's classes are loaded and the socket accepts connections, one line says so on standard output.
 *   <li>Each connection is served by a thread of its own ({@link Connection}).
 *   <li>The program ends when its standard input does: when the server is gone.
 * </ol>
 */
public final class Main {
  private Main() {}

  public static void main(String[] arguments) throws IOException {
    if (arguments.length < 2) {
      System.err.println("usage: basalt.host.Main SOCKET CLASS-PATH [DIRECTORY]...");
      System.exit(64);
    }
    Path socket = Path.of(arguments[0]);
    endWithServer(socket.toAbsolutePath().getParent());
    List<Path> directories = new ArrayList<>();
    for (int i = 2; i < arguments.length; i++) {
      directories.add(Path.of(arguments[i]));
    }
    Classes classes = new Classes(expand(arguments[1]), directories, socket.toAbsolutePath().getParent());
    classes.current();
    OpenFilters open = new OpenFilters();
    try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      server.bind(UnixDomainSocketAddress.of(socket));
      System.out.println("basalt host ready");
      while (true) {
        SocketChannel channel = server.accept();
        Thread thread = new Thread(new Connection(channel, classes, open), "basalt-call");
        thread.setDaemon(true);
        thread.start();
      }
    }
  }

  /** Ends the process when its standard input does, and removes the folder that the server has made for it. */
  private static void endWithServer(Path folder) {
    Thread watch = new Thread(() -> {
      try {
        while (System.in.read() >= 0) {
          // The server writes nothing.
        }
      } catch (IOException error) {
        // As at the end of the input.
      }
      if (folder.getFileName().toString().startsWith("basalt-host-")) {
        remove(folder);
      }
      Runtime.getRuntime().halt(0);
    }, "basalt-watch");
    watch.setDaemon(true);
    watch.start();
  }

  private static void remove(Path folder) {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(file);
      }
    } catch (IOException | UncheckedIOException error) {
      System.err.println("basalt host: " + error);
    }
  }

  /** The jars and folders of a class path, in which {@code lib/*} stands for the jars of a folder. */
  private static List<Path> expand(String classPath) throws IOException {
    List<Path> found = new ArrayList<>();
    for (String item : classPath.split(File.pathSeparator)) {
      if (item.isEmpty()) {
        continue;
      }
      if (!item.endsWith("*")) {
        found.add(Path.of(item));
        continue;
      }
      try (Stream<Path> files = Files.list(Path.of(item.substring(0, item.length() - 1)))) {
        files.filter(file -> file.toString().endsWith(".jar")).sorted().forEach(found::add);
      }
    }
    return found;
  }
}
