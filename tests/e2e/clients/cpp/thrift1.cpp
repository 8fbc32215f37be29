// The tour of HBase's Thrift 1 service.
#include "tour.h"

#include <algorithm>
#include <vector>

#include "gen/thrift1/Hbase.h"

using namespace apache::hadoop::hbase::thrift;

namespace {

constexpr int ROWS = 300;

using Row = std::pair<std::string, Cells>;
using Rows = std::vector<Row>;

Rows rows_of(const std::vector<TRowResult>& results) {
  Rows rows;
  for (const auto& result : results) {
    Cells cells;
    for (const auto& [column, cell] : result.columns) cells[column] = cell.value;
    rows.emplace_back(result.row, cells);
  }
  return rows;
}

std::vector<int64_t> timestamps_of(const std::vector<TCell>& cells) {
  std::vector<int64_t> timestamps;
  for (const auto& cell : cells) timestamps.push_back(cell.timestamp);
  return timestamps;
}

Mutation put_of(const std::string& column, const std::string& value) {
  Mutation mutation;
  mutation.__set_column(column);
  mutation.__set_value(value);
  return mutation;
}

Mutation delete_of(const std::string& column) {
  Mutation mutation;
  mutation.__set_isDelete(true);
  mutation.__set_column(column);
  return mutation;
}

// The call fails with an IOError of that kind which is not to be retried.
template <class Call>
void refused(const std::string& kind, Call call) {
  const auto error = failure<IOError>(call);
  CHECK(error.message.find(kind) != std::string::npos);
  CHECK(error.__isset.canRetry && !error.canRetry);
}

class Tour {
 public:
  Tour(std::shared_ptr<apache::thrift::protocol::TProtocol> protocol, std::string table)
      : client(protocol), table(std::move(table)) {}

  void create() {
    CHECK(!is_listed());
    ColumnDescriptor family, other;
    family.__set_name("cf:");
    family.__set_maxVersions(5);
    family.__set_compression("SNAPPY");
    family.__set_bloomFilterType("ROWCOL");
    other.__set_name("other");
    client.createTable(table, {family, other});
    CHECK(is_listed());
    failure<AlreadyExists>([&] { client.createTable(table, {family, other}); });
    std::map<std::string, ColumnDescriptor> described;
    client.getColumnDescriptors(described, table);
    CHECK(described.size() == 2);
    CHECK(described.at("cf:").maxVersions == 5);
    CHECK(described.at("cf:").compression == "SNAPPY");
    CHECK(described.at("cf:").bloomFilterType == "ROWCOL");
    CHECK(described.at("other:").maxVersions == 3);
    std::map<std::string, bool> enabled;
    client.getTableNamesWithIsTableEnabled(enabled);
    CHECK(enabled.at(table));
    std::vector<TRegionInfo> regions;
    client.getTableRegions(regions, table);
    CHECK(regions.size() == 1 && regions[0].startKey.empty() && regions[0].endKey.empty());
    CHECK(client.getThriftServerType() == TThriftServerType::ONE);
    std::string cluster;
    client.getClusterId(cluster);
    CHECK(!cluster.empty());
  }

  void write_and_read() {
    const Cells cells{{"cf:a", "1"}, {"cf:", "empty qualifier"}, {"other:x", {"\x00\xff", 2}}, {"cf:big", big()}};
    put("row-1", cells);
    CHECK(row("row-1") == Rows{{"row-1", cells}});
    std::vector<TRowResult> found;
    client.getRowWithColumns(found, table, "row-1", {"other", "cf:a"}, {});
    CHECK(rows_of(found) == Rows{{"row-1", {{"cf:a", "1"}, {"other:x", {"\x00\xff", 2}}}}});
    CHECK(value("row-1", "cf:big") == big());
    CHECK(row("absent").empty());
    std::vector<BatchMutation> batches(ROWS);
    for (int number = 0; number < ROWS; number++) {
      batches[number].__set_row(scan_key(number));
      batches[number].__set_mutations({put_of("cf:n", std::to_string(number))});
    }
    client.mutateRows(table, batches, {});
    client.getRows(found, table, {"scan-003", "absent", "scan-001"}, {});
    CHECK(rows_of(found) == Rows{{"scan-003", {{"cf:n", "3"}}}, {"scan-001", {{"cf:n", "1"}}}});
  }

  void versions() {
    for (int version = 1; version < 5; version++) {
      client.mutateRowTs(table, "versions", {put_of("cf:v", std::to_string(version))}, version * 10, {});
    }
    std::vector<TCell> cells;
    client.getVer(cells, table, "versions", "cf:v", 2, {});
    CHECK(timestamps_of(cells) == std::vector<int64_t>{40, 30});
    CHECK(cells[0].value == "4");
    client.getVerTs(cells, table, "versions", "cf:v", 30, 9, {});
    CHECK(timestamps_of(cells) == std::vector<int64_t>{20, 10});
    client.deleteAllTs(table, "versions", "cf:v", 20, {});
    client.getVer(cells, table, "versions", "cf:v", 9, {});
    CHECK(timestamps_of(cells) == std::vector<int64_t>{40, 30});
  }

  void scan() {
    Rows expected, keys;
    for (int number = 0; number < ROWS; number++) {
      expected.push_back({scan_key(number), {{"cf:n", std::to_string(number)}}});
      keys.push_back({scan_key(number), {{"cf:n", ""}}});
    }
    TScan all;
    all.__set_startRow("scan-");
    all.__set_stopRow("scan.");
    all.__set_caching(100);
    CHECK(rows_of(scanned(all)) == expected);
    TScan one;
    one.__set_filterString("SingleColumnValueFilter('cf','n',=,'binary:42',true,true)");
    CHECK(rows_of(scanned(one)) == Rows{expected[42]});
    TScan only_keys;
    only_keys.__set_filterString("PrefixFilter('scan-00') AND KeyOnlyFilter()");
    CHECK(rows_of(scanned(only_keys)) == Rows(keys.begin(), keys.begin() + 10));
    TScan sorted;
    sorted.__set_startRow("scan-009");
    sorted.__set_stopRow("scan-006");
    sorted.__set_reversed(true);
    sorted.__set_sortColumns(true);
    const auto results = scanned(sorted);
    CHECK(results.size() == 3);
    for (int at = 0; at < 3; at++) {
      CHECK(results[at].row == scan_key(9 - at));
      CHECK(results[at].sortedColumns.size() == 1 && results[at].sortedColumns[0].columnName == "cf:n");
    }
    const auto scanner = client.scannerOpenWithPrefix(table, "scan-1", {"cf:n"}, {});
    std::vector<TRowResult> found;
    client.scannerGetList(found, scanner, 1000);
    CHECK(rows_of(found) == Rows(expected.begin() + 100, expected.begin() + 200));
    client.scannerClose(scanner);
  }

  void check_and_put() {
    const auto attempt = [&](const std::string& expected, const std::string& value) {
      return client.checkAndPut(table, "checked", "cf:lock", expected, put_of("cf:lock", value), {});
    };
    CHECK(attempt("", "mine"));
    CHECK(!attempt("", "yours"));
    CHECK(!attempt("yours", "theirs"));
    CHECK(attempt("mine", "free"));
    CHECK(value("checked", "cf:lock") == "free");
  }

  void count_and_append() {
    CHECK(client.atomicIncrement(table, "counter", "cf:c", 40) == 40);
    CHECK(client.atomicIncrement(table, "counter", "cf:c", -1) == 39);
    TIncrement increment;
    increment.__set_table(table);
    increment.__set_row("counter");
    increment.__set_column("cf:c");
    increment.__set_ammount(1);
    client.increment(increment);
    client.incrementRows({increment, increment});
    CHECK(value("counter", "cf:c") == big_endian(42));
    TAppend append;
    append.__set_table(table);
    append.__set_row("counter");
    append.__set_columns({"cf:text"});
    append.__set_values({"ab"});
    for (const std::string expected : {"ab", "abab"}) {
      std::vector<TCell> cells;
      client.append(cells, append);
      CHECK(cells.size() == 1 && cells[0].value == expected);
    }
  }

  void remove() {
    client.deleteAll(table, "row-1", "cf:a", {});
    client.mutateRow(table, "row-1", {delete_of("other"), delete_of("cf:big")}, {});
    CHECK(row("row-1") == Rows{{"row-1", {{"cf:", "empty qualifier"}}}});
    client.deleteAllRow(table, "row-1", {});
    CHECK(row("row-1").empty());
  }

  void errors() {
    std::vector<TRowResult> found;
    refused("TableNotFoundException", [&] { client.getRow(found, "no_such_table", "r", {}); });
    refused("NoSuchColumnFamilyException", [&] { put("r", {{"nofamily:q", "v"}}); });
    refused("not a long", [&] { client.atomicIncrement(table, "checked", "cf:lock", 1); });
    // The connection goes on after an error.
    CHECK(client.isTableEnabled(table));
  }

  void drop() {
    refused("TableNotDisabledException", [&] { client.deleteTable(table); });
    client.disableTable(table);
    CHECK(!client.isTableEnabled(table));
    refused("TableNotEnabledException", [&] { put("r", {{"cf:q", "v"}}); });
    client.enableTable(table);
    CHECK(row("scan-000").size() == 1);
    client.disableTable(table);
    client.deleteTable(table);
    CHECK(!is_listed());
  }

 private:
  bool is_listed() {
    std::vector<std::string> names;
    client.getTableNames(names);
    return std::find(names.begin(), names.end(), table) != names.end();
  }

  void put(const std::string& row, const Cells& cells) {
    std::vector<Mutation> mutations;
    for (const auto& [column, value] : cells) mutations.push_back(put_of(column, value));
    client.mutateRow(table, row, mutations, {});
  }

  Rows row(const std::string& key) {
    std::vector<TRowResult> results;
    client.getRow(results, table, key, {});
    return rows_of(results);
  }

  std::string value(const std::string& row, const std::string& column) {
    std::vector<TCell> cells;
    client.get(cells, table, row, column, {});
    CHECK(cells.size() == 1);
    return cells[0].value;
  }

  // Reads a scan in small pieces to its end, closes it, and meets the error of a closed scanner.
  std::vector<TRowResult> scanned(const TScan& scan) {
    const auto scanner = client.scannerOpenWithScan(table, scan, {});
    std::vector<TRowResult> rows, results;
    do {
      client.scannerGetList(results, scanner, 64);
      rows.insert(rows.end(), results.begin(), results.end());
    } while (!results.empty());
    client.scannerClose(scanner);
    const auto error = failure<IllegalArgument>([&] { client.scannerGet(results, scanner); });
    CHECK(error.message == "scanner ID is invalid");
    return rows;
  }

  HbaseClient client;
  std::string table;
};

}  // namespace

void tour1(std::shared_ptr<apache::thrift::protocol::TProtocol> protocol, const std::string& table) {
  Tour tour(protocol, table);
  tour.create();
  tour.write_and_read();
  tour.versions();
  tour.scan();
  tour.check_and_put();
  tour.count_and_append();
  tour.remove();
  tour.errors();
  tour.drop();
}
