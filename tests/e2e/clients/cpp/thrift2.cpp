// The tour of HBase's Thrift 2 service.
#include "tour.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "gen/thrift2/THBaseService.h"

namespace apache { namespace hadoop { namespace hbase { namespace thrift2 {

// The generated code leaves the order of a set's elements to its user.
bool TServerName::operator<(const TServerName& other) const {
  return std::tie(hostName, port, startCode) < std::tie(other.hostName, other.port, other.startCode);
}

}}}}  // namespace apache::hadoop::hbase::thrift2

using namespace apache::hadoop::hbase::thrift2;

namespace {

using Keys = std::vector<std::string>;

// Five rows under each letter but `r`, which has the row of the single-row steps: every region gets some.
Keys all_rows() {
  Keys rows;
  for (const char letter : std::string("abcdefghijklmnopqstuvwxyz")) {
    for (int number = 0; number < 5; number++) rows.push_back(std::string(1, letter) + "-" + std::to_string(number));
  }
  return rows;
}

// A column by family:qualifier, or a family.
TColumn column_of(const std::string& name) {
  TColumn column;
  const auto colon = name.find(':');
  column.__set_family(name.substr(0, colon));
  if (colon != std::string::npos) column.__set_qualifier(name.substr(colon + 1));
  return column;
}

std::vector<TColumn> columns_of(const Keys& names) {
  std::vector<TColumn> columns;
  for (const auto& name : names) columns.push_back(column_of(name));
  return columns;
}

TColumnValue value_of(const std::string& name, const std::string& value) {
  const auto column = column_of(name);
  TColumnValue cell;
  cell.__set_family(column.family);
  cell.__set_qualifier(column.qualifier);
  cell.__set_value(value);
  return cell;
}

TColumnIncrement increment_of(const std::string& name) {
  const auto column = column_of(name);
  TColumnIncrement increment;
  increment.__set_family(column.family);
  increment.__set_qualifier(column.qualifier);
  return increment;
}

TGet get_of(const std::string& row, const Keys& columns = {}) {
  TGet get;
  get.__set_row(row);
  if (!columns.empty()) get.__set_columns(columns_of(columns));
  return get;
}

TPut put_of(const std::string& row, const Cells& cells) {
  TPut put;
  put.__set_row(row);
  for (const auto& [name, value] : cells) put.columnValues.push_back(value_of(name, value));
  return put;
}

TDelete delete_of(const std::string& row, const Keys& columns = {}) {
  TDelete tdelete;
  tdelete.__set_row(row);
  if (!columns.empty()) tdelete.__set_columns(columns_of(columns));
  return tdelete;
}

TMutation mutation_of(const TPut& put) {
  TMutation mutation;
  mutation.__set_put(put);
  return mutation;
}

TMutation mutation_of(const TDelete& tdelete) {
  TMutation mutation;
  mutation.__set_deleteSingle(tdelete);
  return mutation;
}

TRowMutations mutations_of(const std::string& row, const std::vector<TMutation>& mutations) {
  TRowMutations all;
  all.__set_row(row);
  all.__set_mutations(mutations);
  return all;
}

Cells cells_of(const TResult& result) {
  Cells cells;
  for (const auto& cell : result.columnValues) cells[cell.family + ":" + cell.qualifier] = cell.value;
  return cells;
}

Keys keys_of(const std::vector<TResult>& results) {
  Keys keys;
  for (const auto& result : results) keys.push_back(result.row);
  return keys;
}

// The call fails with a TIOError which names this and is not to be retried.
template <class Call>
void refused(const std::string& name, Call call) {
  const auto error = failure<TIOError>(call);
  CHECK(error.message.find(name) != std::string::npos);
  CHECK(error.__isset.canRetry && !error.canRetry);
}

class Tour {
 public:
  Tour(std::shared_ptr<apache::thrift::protocol::TProtocol> protocol, const std::string& table)
      : client(protocol), table(table) {
    name.__set_qualifier(table);
  }

  void create() {
    CHECK(!client.tableExists(name));
    TColumnFamilyDescriptor family, other;
    family.__set_name("cf");
    family.__set_maxVersions(5);
    family.__set_bloomnFilterType(TBloomFilterType::ROWCOL);
    family.__set_compressionType(TCompressionAlgorithm::ZSTD);
    family.__set_dataBlockEncoding(TDataBlockEncoding::FAST_DIFF);
    other.__set_name("other");
    TTableDescriptor descriptor;
    descriptor.__set_tableName(name);
    descriptor.__set_columns({family, other});
    client.createTable(descriptor, {"g", "n", "t"});
    CHECK(client.tableExists(name) && client.isTableEnabled(name) && client.isTableAvailable(name));
    refused(table, [&] { client.createTable(descriptor, {}); });
    TTableDescriptor described;
    client.getTableDescriptor(described, name);
    CHECK(described.tableName.ns == "default" && described.tableName.qualifier == table);
    CHECK(described.columns.size() == 2);
    const auto &cf = described.columns[0], &plain = described.columns[1];
    CHECK(cf.name == "cf" && cf.maxVersions == 5 && cf.bloomnFilterType == TBloomFilterType::ROWCOL);
    CHECK(cf.compressionType == TCompressionAlgorithm::ZSTD);
    CHECK(plain.name == "other" && plain.maxVersions == 1 && plain.timeToLive == 2147483647);
    CHECK(regions() == Keys{"..g", "g..n", "n..t", "t.."});
    THRegionLocation location;
    client.getRegionLocation(location, table, "ha", false);
    CHECK(location.regionInfo.startKey == "g");
    Keys namespaces;
    client.listNamespaces(namespaces);
    CHECK(std::find(namespaces.begin(), namespaces.end(), "default") != namespaces.end());
    CHECK(client.getThriftServerType() == TThriftServerType::TWO);
    std::string cluster;
    client.getClusterId(cluster);
    CHECK(!cluster.empty());
  }

  void write_and_read() {
    const Cells all{{"cf:", "empty qualifier"}, {"cf:a", "1"}, {"cf:big", big()}, {"other:x", {"\x00\xff", 2}}};
    client.put(table, put_of("r", all));
    CHECK(cells("r") == all);
    CHECK(cells("r", {"other", "cf:a"}) == Cells{{"cf:a", "1"}, {"other:x", {"\x00\xff", 2}}});
    TResult absent;
    client.get(absent, table, get_of("absent"));
    CHECK(!absent.__isset.row && absent.columnValues.empty());
    std::vector<bool> exist;
    client.existsAll(exist, table, {get_of("r"), get_of("absent")});
    CHECK(exist == std::vector<bool>{true, false});
    std::vector<TPut> puts;
    for (const auto& row : all_rows()) puts.push_back(put_of(row, {{"cf:n", row}}));
    puts[0].__set_durability(TDurability::SYNC_WAL);
    client.putMultiple(table, puts);
    std::vector<TResult> several;
    client.getMultiple(several, table, {get_of("z-0"), get_of("absent"), get_of("a-0")});
    CHECK(keys_of(several) == Keys{"z-0", "", "a-0"});
    CHECK(!several[1].__isset.row);
  }

  void versions() {
    for (int version = 1; version < 5; version++) {
      auto put = put_of("versions", {{"cf:v", std::to_string(version)}});
      put.columnValues[0].__set_timestamp(version * 10);
      client.put(table, put);
    }
    using Timestamps = std::vector<int64_t>;
    const auto timestamps = [&](const TGet& get) {
      TResult result;
      client.get(result, table, get);
      Timestamps found;
      for (const auto& cell : result.columnValues) found.push_back(cell.timestamp);
      return found;
    };
    TGet two = get_of("versions"), range = two, exact = two, all = two;
    two.__set_maxVersions(2);
    CHECK(timestamps(two) == Timestamps{40, 30});
    TTimeRange time_range;
    time_range.__set_minStamp(10);
    time_range.__set_maxStamp(30);
    range.__set_maxVersions(9);
    range.__set_timeRange(time_range);
    CHECK(timestamps(range) == Timestamps{20, 10});
    exact.__set_timestamp(30);
    CHECK(timestamps(exact) == Timestamps{30});
    auto one = delete_of("versions", {"cf:v"});
    one.columns[0].__set_timestamp(20);
    one.__set_deleteType(TDeleteType::DELETE_COLUMN);
    client.deleteSingle(table, one);
    all.__set_maxVersions(9);
    CHECK(timestamps(all) == Timestamps{40, 30, 10});
    client.deleteSingle(table, delete_of("versions"));
    CHECK(!client.exists(table, get_of("versions")));
  }

  void scan() {
    const auto rows = all_rows();
    TScan numbers;
    numbers.__set_columns(columns_of({"cf:n"}));
    CHECK(scanned(numbers) == rows);
    TScan backwards = numbers;
    backwards.__set_reversed(true);
    backwards.__set_limit(70);
    CHECK(scanned(backwards) == Keys(rows.rbegin(), rows.rbegin() + 70));
    TScan range;
    range.__set_startRow("f-4");
    range.__set_stopRow("g-2");
    CHECK(scanned(range) == Keys{"f-4", "g-0", "g-1"});
    TScan both;
    both.__set_filterString("PrefixFilter('s-') AND ValueFilter(>,'binary:s-2')");
    CHECK(scanned(both) == Keys{"s-3", "s-4"});
    TScan one;
    one.__set_filterString("SingleColumnValueFilter('cf','n',=,'binary:q-4',true,true)");
    std::vector<TResult> results;
    client.getScannerResults(results, table, one, 10);
    CHECK(keys_of(results) == Keys{"q-4"});
    CHECK(cells_of(results[0]) == Cells{{"cf:n", "q-4"}});
  }

  void check_and_mutate() {
    const auto attempt = [&](const std::string& expected, const std::string& value) {
      return client.checkAndPut(table, "checked", "cf", "lock", expected, put_of("checked", {{"cf:lock", value}}));
    };
    CHECK(attempt("", "5"));
    CHECK(!attempt("", "6"));
    CHECK(attempt("5", "7"));
    const Cells after{{"cf:lock", "8"}, {"other:seen", "yes"}};
    const auto mutations = mutations_of(
        "checked", {mutation_of(put_of("checked", after)), mutation_of(delete_of("checked", {"other:gone"}))});
    const auto mutate = [&](TCompareOperator::type compare) {
      return client.checkAndMutate(table, "checked", "cf", "lock", compare, "6", mutations);
    };
    CHECK(!mutate(TCompareOperator::GREATER));
    CHECK(mutate(TCompareOperator::LESS));
    CHECK(cells("checked") == after);
    CHECK(!client.checkAndDelete(table, "checked", "cf", "lock", "7", delete_of("checked")));
    CHECK(client.checkAndDelete(table, "checked", "cf", "lock", "8", delete_of("checked")));
    CHECK(cells("checked").empty());
  }

  void count_and_append() {
    TIncrement increment;
    increment.__set_row("counter");
    increment.__set_columns({increment_of("cf:c"), increment_of("cf:d")});
    increment.columns[0].__set_amount(40);
    for (int round = 1; round < 3; round++) {
      TResult result;
      client.increment(result, table, increment);
      CHECK(cells_of(result) == Cells{{"cf:c", big_endian(40 * round)}, {"cf:d", big_endian(round)}});
    }
    TAppend append;
    append.__set_row("counter");
    append.__set_columns({value_of("cf:text", "ab")});
    for (const std::string expected : {"ab", "abab"}) {
      TResult result;
      client.append(result, table, append);
      CHECK(cells_of(result) == Cells{{"cf:text", expected}});
    }
  }

  void remove() {
    client.deleteSingle(table, delete_of("r", {"cf:a", "cf:big"}));
    auto family = delete_of("r", {"other"});
    family.__set_deleteType(TDeleteType::DELETE_FAMILY);
    std::vector<TDelete> failed;
    client.deleteMultiple(failed, table, {family, delete_of("counter")});
    CHECK(failed.empty());
    CHECK(cells("r") == Cells{{"cf:", "empty qualifier"}});
    const Cells after{{"cf:new", "2"}};
    client.mutateRow(table,
                     mutations_of("r", {mutation_of(delete_of("r", {"cf:"})), mutation_of(put_of("r", after))}));
    CHECK(cells("r") == after);
  }

  void errors() {
    TResult result;
    refused("no_such_table", [&] { client.get(result, "no_such_table", get_of("r")); });
    refused("nofamily", [&] { client.put(table, put_of("r", {{"nofamily:q", "v"}})); });
    TIncrement increment;
    increment.__set_row("r");
    increment.__set_columns({increment_of("cf:new")});
    refused("not a long", [&] { client.increment(result, table, increment); });
    // The connection goes on after an error.
    CHECK(client.exists(table, get_of("r")));
  }

  void drop() {
    refused(table, [&] { client.deleteTable(name); });
    client.disableTable(name);
    CHECK(client.isTableDisabled(name));
    client.truncateTable(name, true);
    CHECK(client.isTableEnabled(name) && !client.exists(table, get_of("r")));
    CHECK(regions().size() == 4);
    client.disableTable(name);
    client.deleteTable(name);
    CHECK(!client.tableExists(name));
  }

 private:
  Cells cells(const std::string& row, const Keys& columns = {}) {
    TResult result;
    client.get(result, table, get_of(row, columns));
    return cells_of(result);
  }

  // The regions of the table as start..end.
  Keys regions() {
    std::vector<THRegionLocation> locations;
    client.getAllRegionLocations(locations, table);
    Keys regions;
    for (const auto& location : locations) {
      regions.push_back(location.regionInfo.startKey + ".." + location.regionInfo.endKey);
    }
    return regions;
  }

  // Reads the keys of a scan in small pieces to its end, closes it, and meets the error of a closed scanner.
  Keys scanned(const TScan& scan) {
    const auto scanner = client.openScanner(table, scan);
    Keys keys;
    std::vector<TResult> results;
    do {
      client.getScannerRows(results, scanner, 32);
      for (auto& key : keys_of(results)) keys.push_back(std::move(key));
    } while (!results.empty());
    client.closeScanner(scanner);
    const auto error = failure<TIllegalArgument>([&] { client.getScannerRows(results, scanner, 1); });
    CHECK(error.message == "Invalid scanner Id");
    return keys;
  }

  THBaseServiceClient client;
  std::string table;
  TTableName name;
};

}  // namespace

void tour2(std::shared_ptr<apache::thrift::protocol::TProtocol> protocol, const std::string& table) {
  Tour tour(protocol, table);
  tour.create();
  tour.write_and_read();
  tour.versions();
  tour.scan();
  tour.check_and_mutate();
  tour.count_and_append();
  tour.remove();
  tour.errors();
  tour.drop();
}
