//! Answers of scans whose rows are cut, put together as HBase's Java client does it: a result that
//! continues a row is joined to the first result of the next answer, every other one is a whole row.
//!
//! The engine's test of the same name has every kind of filter; here are those that change cells, over
//! the wire.

use basalt_engine::filter::FilterSpec;
use basalt_idl::native::cells::Cells;
use basalt_idl::native::messages::{Filter, RegionSpecifier, Scan, ScanRequest, ScanResponse};
use basalt_test_support::Server;
use bytes::Bytes;
use prost::Message;

use super::client::{Client, start_with_table};
use super::requests::write;

/// A row and its cells: qualifier and value.
type Row = (Vec<u8>, Vec<(Vec<u8>, Vec<u8>)>);

/// How a client scans.
#[derive(Clone, Copy, Debug)]
struct Asked {
    filter: &'static str,
    /// Bytes of an answer.
    bytes: u64,
    reversed: bool,
    partials: bool,
}

/// A server with one table: 4 rows of 6 columns, 3 MiB each.
struct Table {
    server: Server,
    region: RegionSpecifier,
    client: Client,
    _dir: tempfile::TempDir,
}

impl Table {
    fn new() -> Self {
        let (dir, server, region, mut client) = start_with_table(&[]);
        let value = vec![b'x'; 512 << 10];
        for row in ["r0", "r1", "r2", "r3"] {
            for qualifier in ["q0", "q1", "q2", "q3", "q4", "q5"] {
                write(&mut client, &region, row, &[(qualifier, &value)]);
            }
        }
        Self {
            server,
            region,
            client,
            _dir: dir,
        }
    }

    /// All rows of a scan, put together.
    fn rows(&mut self, asked: Asked) -> Vec<Row> {
        let filter = (!asked.filter.is_empty()).then(|| {
            let spec = FilterSpec::parse(asked.filter.as_bytes()).expect("a filter");
            Filter::decode(&spec.encode()[..]).expect("the same message")
        });
        let scan = Scan {
            filter,
            max_result_size: Some(asked.bytes),
            reversed: Some(asked.reversed),
            ..Scan::default()
        };
        let mut call = ScanRequest {
            region: Some(self.region.clone()),
            scan: Some(scan),
            ..fetch(None, asked)
        };
        let (mut rows, mut continues) = (Vec::new(), false);
        loop {
            self.client.call(3, "Scan", &call, b"");
            let response = self.client.response().expect("a response");
            assert_eq!(response.header.exception, None, "{asked:?}");
            let answer = ScanResponse::decode(response.result).expect("its message");
            join(&mut rows, &mut continues, &answer, &response.cells, asked);
            if answer.more_results_in_region == Some(false) {
                assert!(!continues, "the end in the middle of a row: {asked:?}");
                return rows;
            }
            call = fetch(answer.scanner_id, asked);
        }
    }
}

fn fetch(scanner_id: Option<u64>, asked: Asked) -> ScanRequest {
    ScanRequest {
        scanner_id,
        number_of_rows: Some(100),
        client_handles_partials: Some(asked.partials),
        client_handles_heartbeats: Some(asked.partials),
        ..ScanRequest::default()
    }
}

/// Adds the results of an answer to the rows.
fn join(rows: &mut Vec<Row>, continues: &mut bool, answer: &ScanResponse, block: &Bytes, asked: Asked) {
    let mut cells = Cells::new(block);
    let results = answer.cells_per_result.len();
    for (at, count) in answer.cells_per_result.iter().enumerate() {
        let partial = answer.partial_flag_per_result[at];
        assert!(
            !partial || at + 1 == results,
            "cut in the middle of an answer: {asked:?}"
        );
        assert!(!partial || asked.partials, "cut without being asked: {asked:?}");
        let mut row: Row = Row::default();
        for _ in 0..*count {
            let cell = cells.require().expect("as many cells as the answer says");
            row.0 = cell.row.to_vec();
            row.1.push((cell.qualifier.to_vec(), cell.value.to_vec()));
        }
        match rows.last_mut().filter(|_| *continues) {
            Some(begun) => {
                assert_eq!(begun.0, row.0, "{asked:?}");
                begun.1.extend(row.1);
            }
            None => rows.push(row),
        }
        *continues = partial;
    }
}

/// `count` and joins by row are right whatever the size of an answer and the filter.
#[test]
fn rows_are_put_together_whatever_a_filter_removes() {
    let mut table = Table::new();
    for filter in [
        "",
        "KeyOnlyFilter()",
        "KeyOnlyFilter(true)",
        "FirstKeyOnlyFilter() AND KeyOnlyFilter()",
        "KeyOnlyFilter() OR ColumnPrefixFilter('q3')",
        "SKIP QualifierFilter(!=, 'binary:zz') AND KeyOnlyFilter()",
    ] {
        for reversed in [false, true] {
            let uncut = Asked {
                filter,
                bytes: 100 << 20,
                reversed,
                partials: false,
            };
            let expected = table.rows(uncut);
            assert_eq!(expected.len(), 4, "{filter}");
            for (bytes, partials) in [
                (2 << 20, true),
                (2 << 20, false),
                (1 << 20, true),
                (5_000, true),
                (100, true),
                (1, true),
                (1, false),
            ] {
                let asked = Asked {
                    bytes,
                    partials,
                    ..uncut
                };
                assert!(table.rows(asked) == expected, "{asked:?}");
            }
        }
    }
    table.server.stop();
}
