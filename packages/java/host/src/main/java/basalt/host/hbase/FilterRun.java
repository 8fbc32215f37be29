package basalt.host.hbase;

import basalt.host.BadFrame;
import basalt.host.Filters;
import basalt.host.Input;
import basalt.host.Output;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellComparator;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.KeyValueUtil;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.Filter.ReturnCode;

/**
 * A filter in use: shows it candidate rows in the order of calls of HBase's RegionScannerImpl, StoreScanner and
 * UserScanQueryMatcher. The candidates are what HBase's matcher would let through before it asks the filter.
 *
 * <p>For each row: filterAllRemaining, filterRowKey; for each cell of the essential families filterCell, then
 * transformCell or getNextCellHint; filterRowCells, filterRow; then the cells of the other families; reset. A row
 * that its key leaves out is shown all the same, since HBase passes over it with the same matcher, and its cells
 * are dropped.
 */
final class FilterRun implements Filters.Run {
  /** Stands for the number of a cell in its row where the filter has made a new one. */
  private static final int NEW = -1;

  private final Filter filter;
  private final boolean reversed;
  private final int versionsAfter;
  /** Most cells of a family in a row; negative: no limit. */
  private final int limit;
  private final int offset;
  private final List<Family> families = new ArrayList<>();
  private boolean ended;

  FilterRun(Filter filter, Input input) throws IOException {
    this.filter = filter;
    reversed = input.flag();
    versionsAfter = input.i32();
    limit = input.i32();
    offset = input.i32();
    if (reversed) {
      filter.setReversed(true);
    }
    for (int left = input.count(10); left > 0; left--) {
      byte[] name = input.bytes();
      int versions = input.i32();
      byte[] lastColumn = input.flag() ? input.bytes() : null;
      families.add(new Family(name, versions, lastColumn, reversed || filter.isFamilyEssential(name)));
    }
  }

  @Override
  public boolean hasFilterRow() {
    return filter.hasFilterRow();
  }

  @Override
  public void rows(Input input, Output output) throws IOException {
    int rows = input.count(4);
    int place = output.length();
    output.i32(0);
    int results = 0;
    Cell last = null;
    for (int row = 0; row < rows; row++) {
      List<RowCell> cells = row(input);
      last = cells.get(0);
      if (ended || filter.filterAllRemaining()) {
        ended = true;
        continue;
      }
      List<Cell> kept = judge(cells);
      if (!kept.isEmpty()) {
        output.i32(row);
        write(kept, output);
        results++;
      }
    }
    input.end();
    output.set(place, results);
    ended = ended || filter.filterAllRemaining() || families.stream().allMatch(one -> one.finished || !one.essential);
    output.flag(ended);
    Cell next = last == null || ended ? null : jump(last);
    output.flag(next != null);
    if (next != null) {
      output.bytes(next.getRowArray(), next.getRowOffset(), next.getRowLength());
    }
  }

  private static List<RowCell> row(Input input) throws BadFrame {
    int count = input.count(4);
    if (count == 0) {
      throw new BadFrame("a row has no cells");
    }
    List<RowCell> cells = new ArrayList<>(count);
    for (int index = 0; index < count; index++) {
      int length = input.count(1);
      if (length < KeyValue.KEYVALUE_INFRASTRUCTURE_SIZE) {
        throw new BadFrame("a cell has " + length + " bytes");
      }
      cells.add(new RowCell(input.array(), input.skip(length), length, index));
    }
    return cells;
  }

  private static void write(List<Cell> kept, Output output) {
    output.i32(kept.size());
    for (Cell cell : kept) {
      if (cell instanceof RowCell of) {
        output.i32(of.index);
      } else {
        output.i32(NEW);
        byte[] copy = KeyValueUtil.copyToNewKeyValue(cell).getBuffer();
        output.bytes(copy, 0, copy.length);
      }
    }
  }

  /** The cells of a row that are its result; none if it is left out. */
  private List<Cell> judge(List<RowCell> cells) throws IOException {
    Cell first = first(cells);
    List<Cell> kept = new ArrayList<>();
    if (first == null) {
      return kept;
    }
    if (filter.filterRowKey(first)) {
      if (filter.filterAllRemaining()) {
        ended = true;
        return kept;
      }
      read(cells, true, new ArrayList<>());
      filter.reset();
      return kept;
    }
    read(cells, true, kept);
    boolean passed = !kept.isEmpty();
    if (filter.hasFilterRow()) {
      filter.filterRowCells(kept);
    }
    if (!kept.isEmpty() && filter.filterRow()) {
      kept.clear();
      passed = false;
    }
    if (passed) {
      int before = kept.size();
      read(cells, false, kept);
      if (kept.size() > before) {
        kept.sort(CellComparator.getInstance());
      }
    }
    filter.reset();
    return kept;
  }

  /** The first cell that the scanner of an essential family stands at; null if the row is not there for them. */
  private Cell first(List<RowCell> cells) throws BadFrame {
    for (RowCell cell : cells) {
      Family family = family(cell);
      if (family.essential && !family.isPast(cell, reversed)) {
        return cell;
      }
    }
    return null;
  }

  private Family family(Cell cell) throws BadFrame {
    for (Family family : families) {
      if (family.has(cell)) {
        return family;
      }
    }
    throw new BadFrame("a cell is of a family that the scan does not read");
  }

  private void read(List<RowCell> cells, boolean essential, List<Cell> kept) throws IOException {
    int begin = 0;
    while (begin < cells.size()) {
      Family family = family(cells.get(begin));
      int end = begin + 1;
      while (end < cells.size() && family.has(cells.get(end))) {
        end++;
      }
      if (family.essential == essential) {
        readFamily(family, cells.subList(begin, end), kept);
      }
      begin = end;
    }
  }

  /** What is done with a cell, and where the family's scanner goes then. */
  private enum Decision {
    INCLUDE, INCLUDE_AND_NEXT_COLUMN, INCLUDE_AND_NEXT_ROW, SKIP, NEXT_COLUMN, NEXT_ROW, HINT;

    boolean includes() {
      return this == INCLUDE || this == INCLUDE_AND_NEXT_COLUMN || this == INCLUDE_AND_NEXT_ROW;
    }
  }

  private void readFamily(Family family, List<RowCell> cells, List<Cell> kept) throws IOException {
    family.beginRow();
    int at = 0;
    boolean isShown = false;
    while (at < cells.size()) {
      RowCell cell = cells.get(at);
      if (family.isPast(cell, reversed)) {
        at++;
        continue;
      }
      isShown = true;
      if (filter.filterAllRemaining()) {
        family.finished = true;
        return;
      }
      Decision decision = decide(family, cell);
      if (decision.includes() && !include(family, cell, kept)) {
        return;
      }
      switch (decision) {
        case INCLUDE, SKIP -> at++;
        case INCLUDE_AND_NEXT_COLUMN, NEXT_COLUMN -> {
          do {
            at++;
          } while (at < cells.size() && CellUtil.matchingQualifier(cells.get(at), cell));
        }
        case INCLUDE_AND_NEXT_ROW, NEXT_ROW -> at = cells.size();
        case HINT -> {
          if (!follow(family, cell)) {
            at++;
          }
        }
      }
    }
    // As in HBase: the matcher asks before it looks at the next row's first cell.
    family.finished |= isShown && filter.filterAllRemaining();
  }

  /** Adds a cell that passed; false if it is the last one of the family in this row. */
  private boolean include(Family family, RowCell cell, List<Cell> kept) throws IOException {
    Cell transformed = filter.transformCell(cell);
    if (family.passed >= offset && transformed != null) {
      kept.add(transformed);
    }
    family.passed++;
    return limit < 0 || family.passed <= offset || family.passed < (long) limit + offset;
  }

  /** The decision of columns, filter and versions (UserScanQueryMatcher). */
  private Decision decide(Family family, RowCell cell) throws IOException {
    Decision ofColumns = Decision.INCLUDE;
    if (family.show(cell)) {
      ofColumns = family.isLastColumn(cell) ? Decision.INCLUDE_AND_NEXT_ROW : Decision.INCLUDE_AND_NEXT_COLUMN;
    }
    Decision merged = merge(ofColumns, filter.filterCell(cell));
    if (merged.includes() && family.pass() > versionsAfter) {
      merged = merged == Decision.INCLUDE_AND_NEXT_ROW ? Decision.NEXT_ROW : Decision.NEXT_COLUMN;
    }
    if (cell.getQualifierLength() > 0) {
      return merged;
    }
    // Tombstones of the family are among the versions of the column without a name: HBase steps there.
    return switch (merged) {
      case NEXT_COLUMN -> Decision.SKIP;
      case INCLUDE_AND_NEXT_COLUMN -> Decision.INCLUDE;
      default -> merged;
    };
  }

  /** The larger jump is made (UserScanQueryMatcher.mergeFilterResponse). */
  private static Decision merge(Decision columns, ReturnCode code) throws IOException {
    if (code == null) {
      throw new IOException("filterCell has returned null");
    }
    return switch (code) {
      case INCLUDE -> columns;
      case INCLUDE_AND_NEXT_COL ->
          columns == Decision.INCLUDE ? Decision.INCLUDE_AND_NEXT_COLUMN : columns;
      case INCLUDE_AND_SEEK_NEXT_ROW -> Decision.INCLUDE_AND_NEXT_ROW;
      case SKIP -> switch (columns) {
        case INCLUDE -> Decision.SKIP;
        case INCLUDE_AND_NEXT_COLUMN -> Decision.NEXT_COLUMN;
        default -> Decision.NEXT_ROW;
      };
      case NEXT_COL ->
          columns == Decision.INCLUDE_AND_NEXT_ROW ? Decision.NEXT_ROW : Decision.NEXT_COLUMN;
      case NEXT_ROW -> Decision.NEXT_ROW;
      case SEEK_NEXT_USING_HINT ->
          columns == Decision.INCLUDE_AND_NEXT_ROW ? Decision.NEXT_ROW : Decision.HINT;
    };
  }

  /** Moves the family to the filter's hint; false if that is not ahead: then the next cell follows. */
  private boolean follow(Family family, RowCell cell) throws IOException {
    Cell hint = filter.getNextCellHint(cell);
    if (hint == null) {
      return false;
    }
    int rows = CellComparator.getInstance().compareRows(hint, cell);
    // In a reversed scan HBase follows no hint inside the row.
    boolean isAhead = rows != 0 ? rows > 0 != reversed
        : !reversed && CellComparator.getInstance().compare(hint, cell) > 0;
    if (isAhead) {
      family.place = KeyValueUtil.copyToNewKeyValue(hint);
    }
    return isAhead;
  }

  /** The nearest place of an essential family, if all of them are in rows beyond this cell's; else null. */
  private Cell jump(Cell last) {
    Cell nearest = null;
    for (Family family : families) {
      if (family.finished || !family.essential) {
        continue;
      }
      if (family.place == null) {
        return null;
      }
      int rows = CellComparator.getInstance().compareRows(family.place, last);
      if (rows == 0 || rows > 0 == reversed) {
        return null;
      }
      if (nearest == null
          || CellComparator.getInstance().compareRows(family.place, nearest) > 0 == reversed) {
        nearest = family.place;
      }
    }
    return nearest;
  }
}
