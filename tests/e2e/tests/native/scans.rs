//! Scans of native clients: pieces of rows, limits, the end of a region, renewals, heartbeats,
//! cursors and metrics. The answers are those of HBase 2.6 in the same cases.

use basalt_idl::native::cells::Cells;
use basalt_idl::native::frame::Request;
use basalt_idl::native::messages::{
    Filter, FlushRegionRequest, FlushRegionResponse, MultiResponse, RegionSpecifier, RequestHeader, Scan,
    ScanRequest, ScanResponse,
};
use basalt_test_support::Server;
use bytes::Bytes;
use prost::Message;

use super::client::{Client, start_with_table};
use super::requests::{action, cell, multi, put};

/// Timeout of a call whose scan finds nothing.
const CALL_TIMEOUT_MS: u32 = 20;

/// A table `t` with one region, and a client.
struct Table {
    _dir: tempfile::TempDir,
    server: Server,
    region: RegionSpecifier,
    client: Client,
}

impl Table {
    fn new() -> Self {
        let (dir, server, region, client) = start_with_table(&[]);
        Self {
            _dir: dir,
            server,
            region,
            client,
        }
    }

    /// Puts rows, each with `cells` cells of this value.
    fn put(&mut self, rows: &[&'static str], cells: usize, value: &str) {
        let mut block = Vec::new();
        for row in rows {
            for number in 0..cells {
                cell(row, &format!("q{number}"), value).encode(&mut block);
            }
        }
        let actions = rows.iter().map(|row| action(0, put(row, cells as i32)));
        let call = multi(&self.region, actions.collect());
        self.client.call(1, "Multi", &call, &block);
        let response = self.client.response().unwrap();
        let answer = MultiResponse::decode(response.result).unwrap();
        let results = &answer.region_action_result[0].result_or_exception;
        assert!(results.iter().all(|result| result.exception.is_none()));
    }

    fn flush(&self) {
        let call = FlushRegionRequest {
            region: self.region.clone(),
            ..FlushRegionRequest::default()
        };
        Client::connect(&self.server, "AdminService").ask::<FlushRegionResponse>("FlushRegion", &call);
    }

    /// A call of Java's client that opens a scanner.
    fn open(&self, scan: Scan, rows: u32) -> ScanRequest {
        ScanRequest {
            region: Some(self.region.clone()),
            scan: Some(scan),
            ..next(None, rows)
        }
    }

    /// Makes a call; its answer, and the rows and qualifiers of its cells.
    fn ask(&mut self, call: &ScanRequest) -> (ScanResponse, Vec<String>) {
        self.client.call(3, "Scan", call, b"");
        let response = self.client.response().unwrap();
        assert_eq!(response.header.exception, None);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let cells = Cells::new(&response.cells).map(Result::unwrap);
        let names = cells.map(|cell| text(cell.row) + &text(cell.qualifier)).collect();
        (ScanResponse::decode(response.result).unwrap(), names)
    }
}

/// A call of Java's client that fetches.
fn next(scanner_id: Option<u64>, rows: u32) -> ScanRequest {
    ScanRequest {
        scanner_id,
        number_of_rows: Some(rows),
        client_handles_partials: Some(true),
        client_handles_heartbeats: Some(true),
        ..ScanRequest::default()
    }
}

fn filtered(class: &str, message: Vec<u8>) -> Scan {
    Scan {
        filter: Some(Filter {
            name: format!("org.apache.hadoop.hbase.filter.{class}"),
            serialized_filter: Some(Bytes::from(message)),
        }),
        ..Scan::default()
    }
}

/// A length-delimited field of a protobuf message.
fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[(tag << 3) | 2, content.len() as u8], content].concat()
}

/// A scan with a filter that rejects every cell and never ends the scan.
fn passes_nothing() -> Scan {
    let name = field(1, b"org.apache.hadoop.hbase.filter.SubstringComparator");
    let comparator = [name, field(2, &field(1, b"nothing"))].concat();
    filtered(
        "ValueFilter",
        field(1, &[&[8, 2][..], &field(2, &comparator)].concat()),
    )
}

/// The filter of [`passes_nothing`].
pub(super) fn passes_no_value() -> Filter {
    passes_nothing().filter.expect("the scan has a filter")
}

fn flags(answer: &ScanResponse) -> (Option<bool>, Option<bool>) {
    (answer.more_results, answer.more_results_in_region)
}

const MORE: (Option<bool>, Option<bool>) = (Some(true), Some(true));
const REGION_END: (Option<bool>, Option<bool>) = (Some(true), Some(false));

/// The size limit cuts a row for a client that handles parts, and only for such a client. The parts
/// together are the row, in memory and in a store file.
#[test]
fn long_rows_come_in_parts_of_the_size_limit() {
    let mut table = Table::new();
    table.put(&["a"], 4, &"v".repeat(1_000));
    table.put(&["b"], 2, &"v".repeat(1_000));
    for is_flushed in [false, true] {
        if is_flushed {
            table.flush();
        }
        let scan = Scan {
            max_result_size: Some(2_500),
            ..Scan::default()
        };
        let (first, cells) = table.ask(&table.open(scan.clone(), u32::MAX));
        assert_eq!(cells, ["aq0", "aq1", "aq2"]);
        assert_eq!(
            (&first.cells_per_result[..], &first.partial_flag_per_result[..]),
            (&[3][..], &[true][..])
        );
        assert_eq!((flags(&first), first.heartbeat_message), (MORE, None));
        let (second, cells) = table.ask(&next(first.scanner_id, u32::MAX));
        assert_eq!(cells, ["aq3", "bq0", "bq1"]);
        assert_eq!(second.cells_per_result, [1, 2]);
        assert_eq!(second.partial_flag_per_result, [false, false]);
        assert_eq!(flags(&second), REGION_END);

        let whole = ScanRequest {
            client_handles_partials: None,
            ..table.open(scan, u32::MAX)
        };
        let (first, cells) = table.ask(&whole);
        assert_eq!(cells, ["aq0", "aq1", "aq2", "aq3"]);
        assert_eq!(
            (&first.partial_flag_per_result[..], flags(&first)),
            (&[false][..], MORE)
        );
    }
    table.server.stop();
}

/// After writes and a flush, a scan returns the rest of a row that it has cut as the row was when the
/// scan began.
#[test]
fn the_rest_of_a_row_is_of_the_same_snapshot() {
    let mut table = Table::new();
    table.put(&["a"], 6, &"v".repeat(1_000));
    let scan = Scan {
        max_result_size: Some(2_500),
        ..Scan::default()
    };
    let (first, mut cells) = table.ask(&table.open(scan, u32::MAX));
    assert_eq!(first.partial_flag_per_result, [true]);
    table.put(&["a"], 9, "later");
    table.flush();
    let (second, rest) = table.ask(&next(first.scanner_id, u32::MAX));
    cells.extend(rest);
    assert_eq!(cells, ["aq0", "aq1", "aq2", "aq3", "aq4", "aq5"]);
    assert_eq!(flags(&second), REGION_END);
    table.server.stop();
}

/// The reply with the last row of the region says that the region is at its end.
#[test]
fn a_full_answer_says_that_the_region_is_at_its_end() {
    let mut table = Table::new();
    table.put(&["a", "b", "c"], 1, "v");
    for (rows, end) in [(2, MORE), (3, REGION_END), (4, REGION_END)] {
        let (answer, _) = table.ask(&table.open(Scan::default(), rows));
        assert_eq!(flags(&answer), end, "{rows} rows");
    }
    let before_c = Scan {
        stop_row: Some(Bytes::from_static(b"c")),
        ..Scan::default()
    };
    let (answer, _) = table.ask(&table.open(before_c, 2));
    assert_eq!(flags(&answer), REGION_END, "the stop row is next");
    let reversed = Scan {
        reversed: Some(true),
        ..Scan::default()
    };
    let (answer, cells) = table.ask(&table.open(reversed, 3));
    assert_eq!(
        (&cells[..], flags(&answer)),
        (&["cq0".into(), "bq0".into(), "aq0".to_owned()][..], REGION_END)
    );
    table.server.stop();
}

/// A filter that accepts no further rows ends the region. It ends the whole scan if the reply has no
/// results.
#[test]
fn a_filter_that_is_done_ends_the_region_or_the_scan() {
    let mut table = Table::new();
    table.put(&["a", "b", "c"], 1, "v");
    let page = filtered("PageFilter", vec![8, 2]);
    let (answer, cells) = table.ask(&table.open(page, 2));
    assert_eq!((cells.len(), flags(&answer)), (2, REGION_END));
    let stop = Scan {
        start_row: Some(Bytes::from_static(b"b")),
        ..filtered("InclusiveStopFilter", field(1, b"a"))
    };
    let (answer, cells) = table.ask(&table.open(stop, 2));
    assert_eq!((cells.len(), flags(&answer)), (0, (Some(false), Some(false))));
    let no_rows = Scan {
        start_row: Some(Bytes::from_static(b"c")),
        stop_row: Some(Bytes::from_static(b"a")),
        ..filtered("PageFilter", vec![8, 0])
    };
    let (answer, cells) = table.ask(&table.open(no_rows, 2));
    assert_eq!((cells.len(), flags(&answer)), (0, (Some(false), Some(false))));
    let (answer, cells) = table.ask(&table.open(passes_nothing(), 2));
    assert_eq!(
        (cells.len(), flags(&answer)),
        (0, REGION_END),
        "this filter is not done"
    );
    table.server.stop();
}

/// A renewal has a sequence number of its own. Numbers of rows, limits of rows and closing belong to
/// each call.
#[test]
fn each_call_says_how_far_it_goes() {
    let mut table = Table::new();
    table.put(&["a", "b", "c", "d", "e"], 1, "v");
    let (opened, cells) = table.ask(&table.open(Scan::default(), 0));
    assert_eq!((cells.len(), flags(&opened)), (0, MORE));
    let numbered = |number, call: ScanRequest| ScanRequest {
        next_call_seq: Some(number),
        ..call
    };
    let fetch = |rows| next(opened.scanner_id, rows);
    let (_, cells) = table.ask(&numbered(
        0,
        ScanRequest {
            number_of_rows: None,
            ..fetch(0)
        },
    ));
    assert_eq!(cells, ["aq0"], "one row without a number");
    let renew = ScanRequest {
        renew: Some(true),
        ..fetch(0)
    };
    let (renewed, _) = table.ask(&numbered(1, renew.clone()));
    assert_eq!(
        (flags(&renewed), renewed.scanner_id),
        ((None, None), opened.scanner_id)
    );
    let repeated = table.client.refusal("Scan", &numbered(1, fetch(1)), b"");
    assert_eq!(repeated.0, "OutOfOrderScannerNextException");
    assert!(
        repeated
            .1
            .contains("Expected nextCallSeq: 2 But the nextCallSeq got from client: 1")
    );
    let limited = ScanRequest {
        limit_of_rows: Some(2),
        ..fetch(1)
    };
    let (answer, cells) = table.ask(&numbered(2, limited.clone()));
    assert_eq!(
        (cells.len(), flags(&answer)),
        (1, MORE),
        "fewer rows than the limit"
    );
    let at_limit = ScanRequest {
        number_of_rows: Some(9),
        ..limited
    };
    let (answer, cells) = table.ask(&numbered(3, at_limit));
    assert_eq!((cells.len(), flags(&answer)), (2, (Some(false), Some(true))));
    let (answer, _) = table.ask(&renew);
    assert_eq!(flags(&answer), (None, None), "the scanner has ended");

    let closing = ScanRequest {
        close_scanner: Some(true),
        ..table.open(Scan::default(), 1)
    };
    let (answer, cells) = table.ask(&closing);
    assert_eq!((cells.len(), flags(&answer)), (1, MORE));
    let (after, cells) = table.ask(&next(answer.scanner_id, 1));
    assert_eq!((cells.len(), flags(&after)), (0, (None, None)));
    table.server.stop();
}

/// The limit of rows ends the scan. The answer says nevertheless whether rows follow in the region.
#[test]
fn a_limit_at_the_end_of_a_region_says_so() {
    let mut table = Table::new();
    table.put(&["a", "b", "c"], 1, "v");
    let mut limited = |limit, scan| {
        let call = ScanRequest {
            limit_of_rows: Some(limit),
            ..table.open(scan, 9)
        };
        let (answer, cells) = table.ask(&call);
        (cells.len(), flags(&answer))
    };
    let (more, end) = ((Some(false), Some(true)), (Some(false), Some(false)));
    assert_eq!(limited(2, Scan::default()), (2, more));
    assert_eq!(limited(3, Scan::default()), (3, end));
    assert_eq!(limited(4, Scan::default()), (3, REGION_END));
    let before_c = Scan {
        stop_row: Some(Bytes::from_static(b"c")),
        ..Scan::default()
    };
    assert_eq!(limited(2, before_c), (2, end), "the stop row is next");
    let reversed = || Scan {
        reversed: Some(true),
        ..Scan::default()
    };
    assert_eq!(limited(2, reversed()), (2, more));
    assert_eq!(limited(3, reversed()), (3, end));
    table.server.stop();
}

/// Clients of HBase 1.x read one row with a scan that begins and ends there: they cannot say whether
/// the stop row is included.
#[test]
fn a_scan_that_begins_at_its_stop_row_is_of_one_row() {
    let mut table = Table::new();
    table.put(&["a", "b", "c"], 1, "v");
    let mut rows = |include_stop_row| {
        let scan = Scan {
            start_row: Some(Bytes::from_static(b"b")),
            stop_row: Some(Bytes::from_static(b"b")),
            include_stop_row,
            ..Scan::default()
        };
        table.ask(&table.open(scan, 9)).1
    };
    assert_eq!(rows(None), ["bq0"]);
    assert_eq!(rows(Some(true)), ["bq0"]);
    assert!(rows(Some(false)).is_empty());
    table.server.stop();
}

/// Metrics count the rows that were looked at and those that the filter left out.
#[test]
fn scan_metrics_count_rows() {
    let mut table = Table::new();
    table.put(&["a", "b", "c"], 1, "v");
    let metrics = |table: &mut Table, scan| {
        let tracked = ScanRequest {
            track_scan_metrics: Some(true),
            ..table.open(scan, 10)
        };
        let metrics = table.ask(&tracked).0.scan_metrics.unwrap().metrics;
        let value = |name| {
            let found = metrics.iter().find(|metric| metric.name.as_deref() == Some(name));
            found.and_then(|metric| metric.value)
        };
        (value("ROWS_SCANNED"), value("ROWS_FILTERED"))
    };
    assert_eq!(metrics(&mut table, Scan::default()), (Some(3), Some(0)));
    assert_eq!(metrics(&mut table, passes_nothing()), (Some(3), Some(3)));
    let behind_a = Scan {
        start_row: Some(Bytes::from_static(b"a")),
        include_start_row: Some(false),
        ..Scan::default()
    };
    assert_eq!(metrics(&mut table, behind_a), (Some(2), Some(0)));
    let (answer, _) = table.ask(&table.open(Scan::default(), 10));
    assert_eq!(answer.scan_metrics, None);
    table.server.stop();
}

/// A scan that finds nothing for long sends a heartbeat before the client's timeout, with a cursor if
/// the client asks for one. For a client that takes no heartbeats the scan continues.
#[test]
fn a_scan_that_finds_nothing_sends_heartbeats() {
    const ROWS: usize = 200_000;
    let mut table = Table::new();
    let names: Vec<&'static str> = (0..ROWS).map(|number| &*format!("r{number:06}").leak()).collect();
    for rows in names.chunks(20_000) {
        table.put(rows, 1, &"value ".repeat(8));
    }
    let mut ask = |call: &ScanRequest| {
        let header = RequestHeader {
            call_id: Some(4),
            method_name: Some("Scan".to_owned()),
            timeout: Some(CALL_TIMEOUT_MS),
            ..RequestHeader::default()
        };
        let mut out = Vec::new();
        Request::encode(&header, call, b"", &mut out);
        table.client.send(&out);
        ScanResponse::decode(table.client.response().unwrap().result).unwrap()
    };
    let scan = Scan {
        need_cursor_result: Some(true),
        ..passes_nothing()
    };
    let open = ScanRequest {
        region: Some(table.region.clone()),
        scan: Some(scan.clone()),
        ..next(None, 10)
    };
    let first = ask(&open);
    assert_eq!((first.heartbeat_message, flags(&first)), (Some(true), MORE));
    assert!(first.cells_per_result.is_empty());
    let mut places = vec![first.cursor.clone().unwrap().row.unwrap()];
    loop {
        let answer = ask(&next(first.scanner_id, 10));
        if answer.more_results_in_region == Some(false) {
            assert_eq!((answer.heartbeat_message, &answer.cursor), (None, &None));
            break;
        }
        assert_eq!(answer.heartbeat_message, Some(true));
        places.push(answer.cursor.unwrap().row.unwrap());
    }
    assert!(places.is_sorted() && places[0] > "r000000", "{places:?}");
    let without_cursor = ScanRequest {
        scan: Some(passes_nothing()),
        ..open.clone()
    };
    let answer = ask(&without_cursor);
    assert_eq!((answer.heartbeat_message, answer.cursor), (Some(true), None));
    for (partials, heartbeats) in [(Some(true), None), (None, Some(true))] {
        let without_heartbeats = ScanRequest {
            client_handles_partials: partials,
            client_handles_heartbeats: heartbeats,
            ..open.clone()
        };
        let answer = ask(&without_heartbeats);
        assert_eq!((answer.heartbeat_message, flags(&answer)), (None, REGION_END));
    }
    table.server.stop();
}
