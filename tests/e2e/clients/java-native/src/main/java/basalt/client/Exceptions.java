package basalt.client;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.ipc.RemoteWithExtrasException;

/**
 * Makes exceptions of the class names on standard input as HBase's client makes them of responses, and prints of
 * each: its name, the class that was made, whether clients repeat the call, and whether it has the server's text.
 */
public final class Exceptions {
  private static final String TEXT = "the server's text";

  public static void main(String[] args) throws IOException {
    BufferedReader names = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String name = names.readLine(); name != null; name = names.readLine()) {
      IOException made = new RemoteWithExtrasException(name, name + ": " + TEXT, false).unwrapRemoteException();
      boolean hasText = String.valueOf(made.getMessage()).contains(TEXT);
      System.out.println(name + " " + made.getClass().getName() + " " + !(made instanceof DoNotRetryIOException) + " "
          + hasText + " " + ofAction(name));
    }
  }

  /** What a client makes of the result of one action of a batch: the constructor with a text. */
  private static String ofAction(String name) {
    try {
      Throwable made = (Throwable) Class.forName(name).getDeclaredConstructor(String.class).newInstance(TEXT);
      return made.getMessage().contains(TEXT) ? "made" : "without text";
    } catch (ReflectiveOperationException | ClassCastException e) {
      return "not made";
    }
  }
}
