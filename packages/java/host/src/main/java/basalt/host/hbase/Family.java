package basalt.host.hbase;

import java.util.Arrays;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellComparator;
import org.apache.hadoop.hbase.CellUtil;

/**
 * One family of a scan, with the place that its scanner would have in HBase: each family has a scanner of its own,
 * so that a hint moves one family and not the others.
 */
final class Family {
  final byte[] name;
  /** Versions of a column that the filter is shown. */
  final int versions;
  /** The last column that the scan asks for; null if it asks for all. */
  final byte[] lastColumn;
  /** Whether rows are found and judged by it. */
  final boolean essential;
  /** The filter wanted nothing more: no later row has cells of this family. */
  boolean finished;
  /** The filter's last hint: cells before it are not shown. */
  Cell place;
  /** Cells of the row that passed. */
  int passed;
  private Cell column;
  private int shownOfColumn;
  private int passedOfColumn;

  Family(byte[] name, int versions, byte[] lastColumn, boolean essential) {
    this.name = name;
    this.versions = versions;
    this.lastColumn = lastColumn;
    this.essential = essential;
  }

  boolean has(Cell cell) {
    return Arrays.equals(cell.getFamilyArray(), cell.getFamilyOffset(), cell.getFamilyOffset() + cell.getFamilyLength(),
        name, 0, name.length);
  }

  /** Whether the family's scanner is past this cell, or will jump over it. */
  boolean isPast(Cell cell, boolean reversed) {
    if (finished) {
      return true;
    }
    if (place == null) {
      return false;
    }
    int rows = CellComparator.getInstance().compareRows(cell, place);
    if (rows != 0) {
      return rows < 0 != reversed;
    }
    return CellComparator.getInstance().compare(cell, place) < 0;
  }

  void beginRow() {
    passed = 0;
    column = null;
  }

  /** Counts a cell that the filter is shown, and says whether it is the last version of its column. */
  boolean show(Cell cell) {
    if (column == null || !CellUtil.matchingQualifier(column, cell)) {
      column = cell;
      shownOfColumn = 0;
      passedOfColumn = 0;
    }
    shownOfColumn++;
    return shownOfColumn >= versions;
  }

  /** Counts a version that passed, and says how many of its column have. REQUIRES: it was shown last. */
  int pass() {
    passedOfColumn++;
    return passedOfColumn;
  }

  boolean isLastColumn(Cell cell) {
    return lastColumn != null && CellUtil.matchingQualifier(cell, lastColumn);
  }
}
