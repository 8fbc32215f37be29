package org.example.filters;

import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.exceptions.DeserializationException;
import org.apache.hadoop.hbase.filter.FilterBase;
import org.apache.hadoop.hbase.util.Bytes;

/** Rows of users whose password is shorter than so many bytes. */
public final class PasswordStrength extends FilterBase {
  private static final byte[] FAMILY = Bytes.toBytes("a");
  private static final byte[] COLUMN = Bytes.toBytes("password");

  private final int least;
  private boolean isStrong;

  public PasswordStrength(int least) {
    this.least = least;
  }

  public static PasswordStrength parseFrom(byte[] bytes) throws DeserializationException {
    if (bytes.length != 4) {
      throw new DeserializationException("a length has four bytes");
    }
    return new PasswordStrength(Bytes.toInt(bytes));
  }

  @Override
  public byte[] toByteArray() {
    return Bytes.toBytes(least);
  }

  @Override
  public void reset() {
    isStrong = true;
  }

  @Override
  public ReturnCode filterCell(Cell cell) {
    if (CellUtil.matchingColumn(cell, FAMILY, COLUMN) && cell.getValueLength() < least) {
      isStrong = false;
    }
    return ReturnCode.INCLUDE;
  }

  @Override
  public boolean hasFilterRow() {
    return true;
  }

  @Override
  public boolean filterRow() {
    return isStrong;
  }
}
