package basalt.host;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * The classes of one jar of the user, by the rules of HBase's CoprocessorClassLoader: the jar and the jars in its
 * {@code lib/} come first, except for names that always come from the parent.
 */
final class JarLoader extends URLClassLoader {
  /** As in HBase: these never come from a jar of the user. The last is this program itself. */
  private static final List<String> FROM_PARENT = List.of("java.", "javax.", "jdk.", "sun.", "org.slf4j.",
      "org.apache.log4j.", "org.apache.commons.logging.", "org.apache.hadoop.hbase.", "org.apache.hbase.thirdparty.",
      "basalt.host.");

  private final Path jar;
  private final String digest;

  private JarLoader(Path jar, String digest, URL[] urls, ClassLoader parent) {
    super(urls, parent);
    this.jar = jar;
    this.digest = digest;
  }

  static JarLoader open(Path jar, Path scratch, ClassLoader parent) throws IOException {
    List<URL> urls = new ArrayList<>();
    urls.add(jar.toUri().toURL());
    String digest = digest(jar);
    try (JarFile file = new JarFile(jar.toFile())) {
      for (JarEntry entry : (Iterable<JarEntry>) file.stream()::iterator) {
        String name = entry.getName();
        if (name.startsWith("lib/") && name.endsWith(".jar") && !entry.isDirectory()) {
          Path inner = Files.createTempFile(scratch, "lib-", ".jar");
          try (InputStream content = file.getInputStream(entry)) {
            Files.copy(content, inner, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
          }
          urls.add(inner.toUri().toURL());
        }
      }
    }
    return new JarLoader(jar, digest, urls.toArray(new URL[0]), parent);
  }

  private static String digest(Path jar) throws IOException {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      return HexFormat.of().formatHex(digest.digest(Files.readAllBytes(jar)));
    } catch (NoSuchAlgorithmException error) {
      throw new UncheckedIOException(new IOException(error));
    }
  }

  static boolean isFromParent(String name) {
    return FROM_PARENT.stream().anyMatch(name::startsWith);
  }

  @Override
  protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
    if (!isFromParent(name)) {
      Class<?> own = own(name);
      if (own != null) {
        return own;
      }
    }
    // Classes that a loaded class refers to need no permission of their own.
    Boolean guarded = Generation.GUARDED.get();
    Generation.GUARDED.set(false);
    try {
      return super.loadClass(name, resolve);
    } finally {
      Generation.GUARDED.set(guarded);
    }
  }

  /** The class of this jar, without a look at the parent; null if it has none. */
  Class<?> own(String name) {
    synchronized (getClassLoadingLock(name)) {
      Class<?> known = findLoadedClass(name);
      if (known != null) {
        return known;
      }
      try {
        return findClass(name);
      } catch (ClassNotFoundException error) {
        return null;
      }
    }
  }

  /** Whether the jar has such a class. Loads nothing. */
  boolean has(String name) {
    return findResource(name.replace('.', '/') + ".class") != null;
  }

  Loaded loaded(String name) {
    return new Loaded(name, jar.toString(), digest);
  }
}
