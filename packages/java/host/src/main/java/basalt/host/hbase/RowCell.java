package basalt.host.hbase;

import org.apache.hadoop.hbase.KeyValue;

/** A cell of a candidate row: a slice of the frame, as HBase's cells are slices of a block. */
final class RowCell extends KeyValue {
  /** Its number in the row. */
  final int index;

  RowCell(byte[] bytes, int offset, int length, int index) {
    super(bytes, offset, length);
    this.index = index;
  }
}
