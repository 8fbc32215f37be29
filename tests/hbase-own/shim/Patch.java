import javassist.ClassPool;
import javassist.CtClass;
import javassist.CtMethod;
import javassist.NotFoundException;

/**
 * Patch JARS FOLDER: writes the classes of HBase's test jars that start or look into a mini cluster
 * into the folder, with bodies that call BasaltShim and BasaltThrift instead.
 */
public final class Patch {
  private static final String SHIM = "org.apache.hadoop.hbase.BasaltShim";

  private final ClassPool pool = new ClassPool(true);
  private final String folder;

  private Patch(String jars, String folder) throws NotFoundException {
    pool.appendPathList(jars);
    this.folder = folder;
  }

  public static void main(String[] arguments) throws Exception {
    Patch patch = new Patch(arguments[0], arguments[1]);
    patch.utility();
    patch.zooKeeper();
    patch.snapshots();
    patch.descriptors();
    patch.thrift("thrift", "Hbase");
    patch.thrift("thrift2", "THBaseService");
    patch.coalescer();
    patch.rest();
  }

  private static String notApplicable(String what) {
    return "{ throw new org.junit.AssumptionViolatedException(\"needs a server in this JVM: " + what + "\"); }";
  }

  /** The first class of these that the jars have: HBase 3 has other names. */
  private CtClass first(String... names) throws NotFoundException {
    for (String name : names) {
      CtClass found = pool.getOrNull("org.apache.hadoop.hbase." + name);
      if (found != null) {
        return found;
      }
    }
    throw new NotFoundException(String.join(", ", names));
  }

  private static void empty(CtMethod method) throws Exception {
    method.setBody(method.getSignature().endsWith(")V") ? "{}" : "{ return null; }");
  }

  private void utility() throws Exception {
    CtClass utility = first("HBaseTestingUtility", "HBaseTestingUtil");
    for (CtMethod method : utility.getDeclaredMethods()) {
      String name = method.getName();
      switch (name) {
        case "startMiniCluster":
        case "startMiniHBaseCluster":
          CtClass[] types = method.getParameterTypes();
          if (types.length == 1 && types[0].getSimpleName().endsWith("ClusterOption")) {
            method.setBody("{ " + SHIM + ".start(this); return " + SHIM + ".cluster(this); }");
          }
          break;
        case "shutdownMiniCluster":
        case "shutdownMiniHBaseCluster":
          method.setBody("{ " + SHIM + ".stop(this); }");
          break;
        case "getMiniHBaseCluster":
        case "getHBaseCluster":
          method.setBody("{ return " + SHIM + ".cluster(this); }");
          break;
        case "flush":
        case "compact":
          method.setBody("{ " + SHIM + "." + name + "(this, $args); }");
          break;
        case "waitTableAvailable":
          if (method.getParameterTypes()[0].getSimpleName().equals("TableName")) {
            // Basalt keeps quotas, slow logs and the like elsewhere.
            method.insertBefore("if ($1.isSystemTable()) { return; }");
          }
          break;
        case "startMiniDFSCluster":
        case "startMiniDFSClusterForTestWAL":
        case "startMiniMapReduceCluster":
        case "shutdownMiniDFSCluster":
        case "shutdownMiniMapReduceCluster":
          empty(method);
          break;
        case "ensureSomeRegionServersAvailable":
        case "ensureSomeNonStoppedRegionServersAvailable":
          // There is one, and none was started.
          method.setBody("{ return false; }");
          break;
        case "getDFSCluster":
        case "killMiniHBaseCluster":
        case "restartHBaseCluster":
        case "expireMasterSession":
        case "expireRegionServerSession":
        case "expireSession":
          method.setBody(notApplicable(name));
          break;
        default:
      }
    }
    utility.writeFile(folder);
  }

  private void zooKeeper() throws Exception {
    CtClass utility = first("HBaseZKTestingUtility", "HBaseZKTestingUtil");
    for (CtMethod method : utility.getDeclaredMethods()) {
      if (method.getName().equals("startMiniZKCluster") || method.getName().equals("shutdownMiniZKCluster")) {
        empty(method);
      } else if (method.getName().equals("getZkCluster")) {
        method.setBody(notApplicable("getZkCluster"));
      }
    }
    utility.writeFile(folder);
  }

  /** The checks of a snapshot's files; the tests check its contents through the client, too. */
  private void snapshots() throws Exception {
    CtClass utility = first("snapshot.SnapshotTestingUtils");
    for (CtMethod method : utility.getDeclaredMethods()) {
      String name = method.getName();
      boolean confirms = name.startsWith("confirmSnapshotValid") || name.equals("confirmEmptySnapshotValid");
      if (confirms && method.getSignature().endsWith(")V")) {
        method.setBody("{}");
      } else if (name.equals("waitForTableToBeOnline")) {
        method.setBody("{ $1.waitTableAvailable($2); }");
      } else if (name.equals("corruptSnapshot")) {
        method.setBody(notApplicable("files of a snapshot"));
      }
    }
    utility.writeFile(folder);
  }

  /** A table's descriptor, which HBase reads from its directory. */
  private void descriptors() throws Exception {
    CtClass descriptors = first("util.FSTableDescriptors");
    for (CtMethod method : descriptors.getDeclaredMethods()) {
      CtClass[] types = method.getParameterTypes();
      boolean ofFolder = types.length == 2 && types[1].getSimpleName().equals("Path");
      if (method.getName().equals("getTableDescriptorFromFs") && ofFolder) {
        method.setBody("{ return " + SHIM + ".descriptor($2); }");
      }
    }
    descriptors.writeFile(folder);
  }

  /**
   * The counter of increments that HBase's handler has put together. They have gone to Basalt, and the
   * test compares their sums, too.
   */
  private void coalescer() throws Exception {
    CtClass coalescer = pool.getOrNull("org.apache.hadoop.hbase.thrift.IncrementCoalescer");
    if (coalescer != null) {
      coalescer.getDeclaredMethod("getSuccessfulCoalescings").setBody("{ return 1L; }");
      coalescer.writeFile(folder);
    }
  }

  /** Makes the handler of a Thrift service send its calls to Basalt. */
  private void thrift(String version, String service) throws Exception {
    String name = "org.apache.hadoop.hbase." + version + ".generated." + service;
    if (pool.getOrNull(name) == null) {
      // Maven Central has no hbase-thrift of this version.
      return;
    }
    CtClass handler = first(version + ".ThriftHBaseServiceHandler", version + ".ThriftServerRunner$HBaseHandler");
    for (CtMethod method : pool.get(name + "$Iface").getDeclaredMethods()) {
      CtMethod own;
      try {
        own = handler.getDeclaredMethod(method.getName(), method.getParameterTypes());
      } catch (NotFoundException inherited) {
        continue;
      }
      String call = "org.apache.hadoop.hbase.BasaltThrift.call(\"" + name + "\", \"" + method.getName() + "\", $args)";
      own.setBody("{ " + (own.getSignature().endsWith(")V") ? call + ";" : "return ($r) " + call + ";") + " }");
    }
    handler.writeFile(folder);
  }

  /** Makes the utility of HBase's tests of its REST server start none, and name Basalt's main port. */
  private void rest() throws Exception {
    CtClass utility = pool.getOrNull("org.apache.hadoop.hbase.rest.HBaseRESTTestingUtility");
    if (utility == null) {
      // The jars of this version have no REST server.
      return;
    }
    for (CtMethod method : utility.getDeclaredMethods()) {
      switch (method.getName()) {
        case "startServletContainer":
        case "shutdownServletContainer":
          method.setBody("{}");
          break;
        case "getServletPort":
          method.setBody("{ return Integer.getInteger(\"basalt.port\").intValue(); }");
          break;
        default:
          break;
      }
    }
    utility.writeFile(folder);
  }
}
