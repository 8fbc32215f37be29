package basalt.host;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Filters that are open, by the numbers that the server gave them. */
final class OpenFilters {
  private final Map<Long, Filters.Run> runs = new ConcurrentHashMap<>();

  void put(long handle, Filters.Run run) {
    runs.put(handle, run);
  }

  Filters.Run get(long handle) throws BadFrame {
    Filters.Run run = runs.get(handle);
    if (run == null) {
      throw new BadFrame("filter " + handle + " is not open");
    }
    return run;
  }

  void close(long handle) {
    runs.remove(handle);
  }
}
