package org.example.filters;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellBuilderFactory;
import org.apache.hadoop.hbase.CellBuilderType;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.exceptions.DeserializationException;
import org.apache.hadoop.hbase.filter.FilterBase;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Values without all but their first byte. Ends after so many rows, drops the last cell of each row, and counts the
 * rows that it has seen: a filter with much state.
 */
public final class Masked extends FilterBase {
  private final int rows;
  private int seen;

  public Masked(int rows) {
    this.rows = rows;
  }

  public static Masked parseFrom(byte[] bytes) throws DeserializationException {
    return new Masked(Bytes.toInt(bytes));
  }

  @Override
  public byte[] toByteArray() {
    return Bytes.toBytes(rows);
  }

  @Override
  public boolean filterRowKey(Cell first) {
    return first.getRowArray()[first.getRowOffset() + first.getRowLength() - 1] == '7';
  }

  @Override
  public ReturnCode filterCell(Cell cell) {
    return cell.getTimestamp() % 2 == 0 ? ReturnCode.INCLUDE_AND_NEXT_COL : ReturnCode.INCLUDE;
  }

  @Override
  public Cell transformCell(Cell cell) throws IOException {
    byte[] value = CellUtil.cloneValue(cell);
    byte[] masked = Bytes.toBytes(Bytes.toString(value, 0, Math.min(1, value.length)) + "*" + seen);
    return CellBuilderFactory.create(CellBuilderType.DEEP_COPY).setRow(CellUtil.cloneRow(cell))
        .setFamily(CellUtil.cloneFamily(cell)).setQualifier(CellUtil.cloneQualifier(cell))
        .setTimestamp(cell.getTimestamp()).setType(Cell.Type.Put).setValue(masked).build();
  }

  @Override
  public boolean hasFilterRow() {
    return true;
  }

  @Override
  public void filterRowCells(List<Cell> cells) {
    if (cells.size() > 1) {
      cells.remove(cells.size() - 1);
    }
  }

  @Override
  public boolean filterRow() {
    seen++;
    return false;
  }

  @Override
  public boolean filterAllRemaining() {
    return seen >= rows;
  }
}
