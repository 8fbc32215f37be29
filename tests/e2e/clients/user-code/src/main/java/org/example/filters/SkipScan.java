package org.example.filters;

import java.util.Arrays;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.exceptions.DeserializationException;
import org.apache.hadoop.hbase.filter.FilterBase;

/** The first row of each prefix of so many bytes, in the direction of the scan; jumps over the others. */
public final class SkipScan extends FilterBase {
  private final int prefix;
  private byte[] taken = new byte[0];
  private byte[] row = new byte[0];

  public SkipScan(int prefix) {
    this.prefix = prefix;
  }

  public static SkipScan parseFrom(byte[] bytes) throws DeserializationException {
    return new SkipScan(bytes[0]);
  }

  @Override
  public byte[] toByteArray() {
    return new byte[] {(byte) prefix};
  }

  private byte[] prefixOf(Cell cell) {
    byte[] whole = CellUtil.cloneRow(cell);
    return Arrays.copyOf(whole, Math.min(prefix, whole.length));
  }

  @Override
  public ReturnCode filterCell(Cell cell) {
    byte[] found = CellUtil.cloneRow(cell);
    if (Arrays.equals(found, row)) {
      return ReturnCode.INCLUDE;
    }
    byte[] its = prefixOf(cell);
    if (Arrays.equals(its, taken)) {
      return ReturnCode.SEEK_NEXT_USING_HINT;
    }
    taken = its;
    row = found;
    return ReturnCode.INCLUDE;
  }

  @Override
  public Cell getNextCellHint(Cell cell) {
    byte[] next = prefixOf(cell);
    if (isReversed()) {
      next[next.length - 1]--;
      next = Arrays.copyOf(next, next.length + 1);
      next[next.length - 1] = (byte) 0xff;
    } else {
      next[next.length - 1]++;
    }
    return PrivateCellUtil.createFirstOnRow(next, 0, (short) next.length);
  }
}
