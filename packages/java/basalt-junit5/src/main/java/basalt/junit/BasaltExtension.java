package basalt.junit;

import basalt.server.BasaltServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.ReflectionSupport;

/**
 * Starts one server for all tests of a JVM (another for {@code @BasaltTest(secure = true)}), empties it before each test or
 * returns it to the test's {@link BasaltTemplate}, and stops it at the end.
 *
 * <p>Parameters of tests and of methods around them: {@link Connection}, {@link Configuration} (a copy of the test's
 * own), {@link BasaltServer}. The connection is shared by all tests and must not be closed by one.
 */
public final class BasaltExtension implements BeforeEachCallback, ParameterResolver {
  private static final Namespace NAMESPACE = Namespace.create(BasaltExtension.class);

  private static final Map<Class<?>, Resolver> RESOLVERS =
      Map.of(
          Connection.class, Shared::connection,
          Configuration.class, Shared::configuration,
          BasaltServer.class, shared -> shared.server);

  @Override
  public void beforeEach(ExtensionContext context) throws IOException {
    Class<? extends BasaltTemplate> template =
        annotation(context).<Class<? extends BasaltTemplate>>map(BasaltTest::template).orElse(BasaltTemplate.Empty.class);
    shared(context).clear(template);
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return RESOLVERS.containsKey(parameter.getParameter().getType());
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    try {
      return RESOLVERS.get(parameter.getParameter().getType()).resolve(shared(context));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static Optional<BasaltTest> annotation(ExtensionContext context) {
    return context.getTestClass().flatMap(test -> AnnotationSupport.findAnnotation(test, BasaltTest.class));
  }

  private static Shared shared(ExtensionContext context) {
    boolean secure = annotation(context).map(BasaltTest::secure).orElse(false);
    return context.getRoot().getStore(NAMESPACE).getOrComputeIfAbsent(secure, Shared::new, Shared.class);
  }

  @FunctionalInterface
  private interface Resolver {
    Object resolve(Shared shared) throws IOException;
  }

  /** The server and the connection, closed by JUnit after the last test. Its lock guards the connection. */
  private static final class Shared implements AutoCloseable {
    private final BasaltServer server;
    private Connection connection;
    /** What the server's template was filled by. */
    private Class<? extends BasaltTemplate> kept = BasaltTemplate.Empty.class;

    Shared(boolean secure) {
      server = secure ? BasaltServer.startSecure(Map.of()) : BasaltServer.start();
    }

    Configuration configuration() {
      Configuration configuration = HBase.configuration(server.host(), server.port());
      if (server.security() != null) {
        server.security().client().forEach(configuration::set);
      }
      return configuration;
    }

    synchronized Connection connection() throws IOException {
      if (connection == null) {
        connection = ConnectionFactory.createConnection(configuration());
      }
      return connection;
    }

    /** Empties the server or returns it to the template, and empties the connection's cache of region locations. */
    synchronized void clear(Class<? extends BasaltTemplate> template) throws IOException {
      boolean isEmpty = template == BasaltTemplate.Empty.class;
      if (!isEmpty && template == kept) {
        server.resetToTemplate();
      } else {
        server.reset();
        // A template that cannot be filled is not returned to.
        kept = BasaltTemplate.Empty.class;
      }
      if (connection != null) {
        connection.clearRegionLocationCache();
      }
      if (!isEmpty && template != kept) {
        ReflectionSupport.newInstance(template).fill(connection());
        server.keepTemplate();
        kept = template;
      }
    }

    @Override
    public synchronized void close() throws IOException {
      if (connection != null) {
        connection.close();
      }
      server.close();
    }
  }
}
