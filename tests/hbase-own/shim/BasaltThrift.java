package org.apache.hadoop.hbase;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import org.apache.thrift.TServiceClient;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.transport.TSocket;

/**
 * The calls of HBase's Thrift handlers, sent to Basalt: HBase's tests of a handler then test
 * Basalt's Thrift services. Each thread and service has a connection of its own.
 */
public final class BasaltThrift {
  private static final int TIMEOUT_MS = 60_000;
  private static final ThreadLocal<Map<String, TServiceClient>> CLIENTS = ThreadLocal.withInitial(HashMap::new);

  private BasaltThrift() {}

  /** Calls the method of the service ("...thrift2.generated.THBaseService"). */
  public static Object call(String service, String method, Object[] arguments) throws Throwable {
    TServiceClient client = CLIENTS.get().get(service);
    if (client == null || !client.getInputProtocol().getTransport().isOpen()) {
      client = connect(service);
      CLIENTS.get().put(service, client);
    }
    for (Method candidate : Class.forName(service + "$Iface").getMethods()) {
      if (candidate.getName().equals(method)) {
        return invoke(candidate, client, arguments);
      }
    }
    throw new IllegalStateException("no method " + method + " in " + service);
  }

  private static TServiceClient connect(String service) throws Exception {
    TSocket socket = new TSocket("127.0.0.1", Integer.getInteger("basalt.port"));
    socket.setTimeout(TIMEOUT_MS);
    socket.open();
    return (TServiceClient) Class.forName(service + "$Client")
        .getConstructor(org.apache.thrift.protocol.TProtocol.class).newInstance(new TBinaryProtocol(socket));
  }

  private static Object invoke(Method method, TServiceClient client, Object[] arguments) throws Throwable {
    try {
      return method.invoke(client, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }
}
