//! The filter language over native RPC.

use basalt_client::native::filter_message;
use basalt_client::{Get, Scan};
use basalt_engine::filter::FilterSpec;

use super::{Rig, fill, keys};

/// Goal: a filter in the client's message equals its text in the filter language. Method: the engine's own
/// parser and decoder.
#[test]
fn messages_are_those_of_the_filter_language() {
    for text in [
        "KeyOnlyFilter()",
        "KeyOnlyFilter(true)",
        "FirstKeyOnlyFilter()",
        "PrefixFilter('row''s')",
        "ColumnPrefixFilter('a')",
        "MultipleColumnPrefixFilter('a', 'b', 'cd')",
        "InclusiveStopFilter('row')",
        "ColumnCountGetFilter(4)",
        "PageFilter(2)",
        "ColumnPaginationFilter(3, 5)",
        "TimestampsFilter(5, 1, 9223372036854775807)",
        "RowFilter(=, 'binary:a')",
        "RowFilter(!=, 'regexstring:a.*b')",
        "FamilyFilter(<=, 'binaryprefix:f')",
        "QualifierFilter(=, 'substring:ABC')",
        "ValueFilter(>, 'binary:\u{1}')",
        "ColumnRangeFilter('a', true, 'c', false)",
        "ColumnRangeFilter('', false, '', true)",
        "SingleColumnValueFilter('f', 'q', <, 'binary:5')",
        "SingleColumnValueFilter('f', 'q', >=, 'binary:5', true, false)",
        "SingleColumnValueExcludeFilter('f', 'q', =, 'substring:x')",
        "DependentColumnFilter('f', 'q')",
        "DependentColumnFilter('f', 'q', true)",
        "DependentColumnFilter('f', 'q', false, =, 'binary:x')",
        "ColumnValueFilter('f', 'q', =, 'binary:x')",
        "SKIP ValueFilter(!=, 'binary:0')",
        "WHILE RowFilter(!=, 'binary:m')",
        "(PrefixFilter('a') OR PrefixFilter('b')) AND KeyOnlyFilter()",
        "PrefixFilter('a') OR PrefixFilter('b') AND KeyOnlyFilter() OR PageFilter(1)",
        "SKIP (KeyOnlyFilter() AND SKIP PageFilter(1)) AND FirstKeyOnlyFilter()",
    ] {
        let message = filter_message(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        let meant = FilterSpec::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(
            FilterSpec::decode(&message, 0).expect("a filter"),
            meant,
            "{text}"
        );
    }
}

#[test]
fn gets_and_scans_have_filters() {
    let rig = Rig::start();
    let table = rig.table(&["m"]);
    rig.runtime.block_on(async {
        fill(&table, ["a1", "a2", "b1", "z1", "z2"].map(str::to_owned)).await;
        let scan = Scan::new().filter("RowFilter(=, 'substring:1') OR PrefixFilter('z')");
        let rows = table.scan(scan).expect("a scan").collect().await.expect("read");
        assert_eq!(keys(&rows), ["a1", "b1", "z1", "z2"]);
        let get = |value: &str| Get::new("a1").filter(format!("ValueFilter(=, 'binary:{value}')"));
        assert!(table.get(get("a1")).await.expect("read").is_some());
        assert!(table.get(get("a2")).await.expect("read").is_none());
        let message = filter_message(b"PrefixFilter('b')").expect("a filter");
        let rows = table
            .scan(Scan::new().filter_bytes(message))
            .expect("a scan")
            .collect()
            .await
            .expect("read");
        assert_eq!(keys(&rows), ["b1"]);
        let error = table
            .scan(Scan::new().filter("NoFilter()"))
            .expect_err("no such filter");
        assert!(error.to_string().contains("NoFilter"), "{error}");
    });
    rig.server.stop();
}
