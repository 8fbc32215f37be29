package org.example.filters;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.exceptions.DeserializationException;
import org.apache.hadoop.hbase.filter.FilterBase;
import org.apache.hadoop.hbase.util.Bytes;

/** A filter that does what no filter should. */
public class Bad extends FilterBase {
  static final List<byte[]> KEPT = new ArrayList<>();

  private final String what;

  public Bad(String what) {
    this.what = what;
  }

  public static Bad parseFrom(byte[] bytes) throws DeserializationException {
    String what = Bytes.toString(bytes);
    if (what.equals("unparsable")) {
      throw new DeserializationException("these bytes are no filter");
    }
    return new Bad(what);
  }

  @Override
  public byte[] toByteArray() {
    return Bytes.toBytes(what);
  }

  private int recurse(int depth) {
    return recurse(depth + 1) + 1;
  }

  @Override
  public ReturnCode filterCell(Cell cell) throws java.io.IOException {
    switch (what) {
      case "loop" -> {
        while (true) {
          Thread.onSpinWait();
        }
      }
      case "allocate" -> {
        while (true) {
          KEPT.add(new byte[1 << 20]);
        }
      }
      case "exit" -> System.exit(3);
      case "halt" -> Runtime.getRuntime().halt(4);
      case "throw" -> throw new IllegalStateException("out of order");
      case "throw-io" -> throw new java.io.IOException("out of paper");
      case "recurse" -> recurse(0);
      case "null" -> {
        return null;
      }
      case "print" -> {
        for (int i = 0; i < 200_000; i++) {
          System.out.println("a line of a filter that prints: " + "x".repeat(200));
        }
      }
      default -> { }
    }
    return ReturnCode.INCLUDE;
  }

  @Override
  public Cell transformCell(Cell cell) {
    if (!what.equals("other-row")) {
      return cell;
    }
    return new org.apache.hadoop.hbase.KeyValue(Bytes.toBytes("elsewhere"), Bytes.toBytes("a"), Bytes.toBytes("q"), new byte[0]);
  }
}
