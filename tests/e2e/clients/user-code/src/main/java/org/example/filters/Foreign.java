package org.example.filters;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.exceptions.DeserializationException;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.FilterBase;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.FilterProtos;

/** One of HBase's filters under a name that HBase does not have: every call goes to the filter inside. */
public final class Foreign extends FilterBase {
  private final Filter inner;

  public Foreign(Filter inner) {
    this.inner = inner;
  }

  public static Foreign parseFrom(byte[] bytes) throws DeserializationException {
    try {
      return new Foreign(ProtobufUtil.toFilter(FilterProtos.Filter.parseFrom(bytes)));
    } catch (IOException error) {
      throw new DeserializationException(error);
    }
  }

  @Override
  public byte[] toByteArray() throws IOException {
    return ProtobufUtil.toFilter(inner).toByteArray();
  }

  @Override
  public void reset() throws IOException {
    inner.reset();
  }

  @Override
  public boolean filterRowKey(Cell first) throws IOException {
    return inner.filterRowKey(first);
  }

  @Override
  public boolean filterAllRemaining() throws IOException {
    return inner.filterAllRemaining();
  }

  @Override
  public ReturnCode filterCell(Cell cell) throws IOException {
    return inner.filterCell(cell);
  }

  @Override
  public Cell transformCell(Cell cell) throws IOException {
    return inner.transformCell(cell);
  }

  @Override
  public void filterRowCells(List<Cell> cells) throws IOException {
    inner.filterRowCells(cells);
  }

  @Override
  public boolean hasFilterRow() {
    return inner.hasFilterRow();
  }

  @Override
  public boolean filterRow() throws IOException {
    return inner.filterRow();
  }

  @Override
  public Cell getNextCellHint(Cell cell) throws IOException {
    return inner.getNextCellHint(cell);
  }

  @Override
  public boolean isFamilyEssential(byte[] name) throws IOException {
    return inner.isFamilyEssential(name);
  }

  @Override
  public void setReversed(boolean reversed) {
    inner.setReversed(reversed);
  }

  @Override
  public boolean isReversed() {
    return inner.isReversed();
  }
}
