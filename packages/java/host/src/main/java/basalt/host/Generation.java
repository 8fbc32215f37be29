package basalt.host;

import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * HBase's classes with the jars of the user as they were at one time.
 *
 * <p>HBase finds a filter by {@code Class.forName} with its own loader as parent, and remembers what it found. So
 * this loader, which defines HBase's classes, asks the jars of the user for names that HBase's jars lack, and a
 * changed jar needs a new generation ({@link Classes}). Filters that are open keep theirs.
 */
final class Generation extends URLClassLoader {
  static {
    registerAsParallelCapable();
  }

  private static final String ADAPTER = "basalt.host.hbase.";

  /** Whether the thread may load classes only that {@link #ALLOWED} has. */
  static final ThreadLocal<Boolean> GUARDED = ThreadLocal.withInitial(() -> false);
  /** Names of classes that the caller of the thread may have loaded. */
  static final ThreadLocal<Set<String>> ALLOWED = ThreadLocal.withInitial(Set::of);

  private final List<JarLoader> jars = new ArrayList<>();
  private final Set<String> known = ConcurrentHashMap.newKeySet();
  private final Queue<Loaded> loads = new ConcurrentLinkedQueue<>();
  private final Filters filters;

  Generation(List<Path> hbase, List<Path> users, Path scratch) throws IOException {
    super("hbase", urls(hbase), Generation.class.getClassLoader());
    for (Path jar : users) {
      jars.add(JarLoader.open(jar, scratch, this));
    }
    ClassLoader before = Thread.currentThread().getContextClassLoader();
    Thread.currentThread().setContextClassLoader(this);
    try {
      filters = (Filters) Class.forName(ADAPTER + "HBaseFilters", true, this).getConstructor().newInstance();
    } catch (ReflectiveOperationException | LinkageError error) {
      throw new IOException("HBase's classes cannot be loaded from user_code.java_class_path: " + error, error);
    } finally {
      Thread.currentThread().setContextClassLoader(before);
    }
  }

  private static URL[] urls(List<Path> hbase) throws MalformedURLException {
    List<URL> urls = new ArrayList<>();
    urls.add(Generation.class.getProtectionDomain().getCodeSource().getLocation());
    for (Path path : hbase) {
      urls.add(path.toUri().toURL());
    }
    return urls.toArray(new URL[0]);
  }

  Filters filters() {
    return filters;
  }

  /** The next load that was not reported yet; null if there is none. */
  Loaded nextLoad() {
    return loads.poll();
  }

  @Override
  protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
    if (!name.startsWith(ADAPTER)) {
      return super.loadClass(name, resolve);
    }
    synchronized (getClassLoadingLock(name)) {
      Class<?> loaded = findLoadedClass(name);
      return loaded != null ? loaded : super.findClass(name);
    }
  }

  @Override
  public URL getResource(String name) {
    URL own = findResource(name);
    return own != null ? own : super.getResource(name);
  }

  @Override
  protected Class<?> findClass(String name) throws ClassNotFoundException {
    ClassNotFoundException missing;
    try {
      return super.findClass(name);
    } catch (ClassNotFoundException error) {
      missing = error;
    }
    if (!JarLoader.isFromParent(name)) {
      for (JarLoader jar : jars) {
        if (jar.has(name)) {
          return ofUser(jar, name);
        }
      }
    }
    throw missing;
  }

  private Class<?> ofUser(JarLoader jar, String name) throws ClassNotFoundException {
    if (GUARDED.get() && !ALLOWED.get().contains(name)) {
      throw new ClassNotFoundException(name + " is not loaded yet: loading it needs the global ADMIN right, or its name in"
          + " user_code.classes");
    }
    Class<?> found = jar.own(name);
    if (found == null) {
      throw new ClassNotFoundException(name);
    }
    if (known.add(name)) {
      loads.add(jar.loaded(name));
    }
    return found;
  }
}
