//! Thrift 1's scanners.

use std::sync::Arc;

use basalt_engine::cell::CellBatch;
use basalt_engine::op::{Columns, FamilySelection, ReadSpec, Scan};
use basalt_idl::thrift1::{self, args};
use bytes::Bytes;

use super::data::{before, columns};
use crate::limits::admission::Class;
use crate::server::Server;
use crate::service::scans::{self, Shortest};
use crate::service::{Caller, Failure};
use crate::thrift::from_thrift;

pub(super) fn range(
    start: Option<&Bytes>,
    stop: Option<&Bytes>,
    wanted: Option<&Vec<Bytes>>,
    timestamp: Option<i64>,
) -> Result<(Scan, bool), Failure> {
    let start_row = start.map(|row| row.to_vec()).unwrap_or_default();
    let stop_row = stop.map(|row| row.to_vec()).unwrap_or_default();
    let scan = Scan {
        // Start equal to stop is a get of that row, as in Thrift 2.
        include_stop: !start_row.is_empty() && start_row == stop_row,
        start_row,
        stop_row,
        spec: ReadSpec {
            families: columns(wanted),
            time_range: before(timestamp)?,
            ..ReadSpec::default()
        },
        ..Scan::default()
    };
    Ok((scan, false))
}

/// Rows that start with the prefix: up to the next prefix of the same length.
pub(super) fn prefix(prefix: Option<&Bytes>, wanted: Option<&Vec<Bytes>>) -> Result<(Scan, bool), Failure> {
    let mut stop = prefix.map(|prefix| prefix.to_vec()).unwrap_or_default();
    while let Some(last) = stop.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            break;
        }
        stop.pop();
    }
    range(prefix, Some(&Bytes::from(stop)), wanted, None)
}

/// A scan and whether its columns are sorted. A filter with a regular expression is compiled on the
/// pool.
pub(super) async fn t_scan(server: &Arc<Server>, scan: thrift1::TScan) -> Result<(Scan, bool), Failure> {
    if !from_thrift::has_regex(scan.filter_string.as_ref(), None) {
        return scan_of(&scan);
    }
    server.compiled(Class::User, move |_| scan_of(&scan)).await
}

fn scan_of(scan: &thrift1::TScan) -> Result<(Scan, bool), Failure> {
    let (mut engine_scan, _) = range(
        scan.start_row.as_ref(),
        scan.stop_row.as_ref(),
        scan.columns.as_ref(),
        scan.timestamp,
    )?;
    engine_scan.caching = from_thrift::caching(scan.caching);
    engine_scan.batch = scan
        .batch_size
        .and_then(|batch| usize::try_from(batch).ok())
        .filter(|batch| *batch > 0);
    engine_scan.reversed = scan.reversed.unwrap_or(false);
    engine_scan.spec.cache_blocks = scan.cache_blocks.unwrap_or(true);
    engine_scan.spec.filter = from_thrift::filter(scan.filter_string.as_ref(), None)?;
    Ok((engine_scan, scan.sort_columns.unwrap_or(false)))
}

pub(super) async fn scanner_get(
    server: &Arc<Server>,
    caller: &mut Caller,
    id: Option<i32>,
    count: Option<i32>,
) -> Result<scans::Results, Failure> {
    let id = id.ok_or(crate::server::sessions::SessionError::Unknown)?;
    scans::fetch(server, caller, id, count.unwrap_or(0), Shortest::Response).await
}

/// The cells of a family in that row, or in the last row before it that has some. HBase 1 scanned
/// backwards for it, and failed if there was none; here the list is then empty.
pub(super) async fn row_or_before(
    server: &Arc<Server>,
    caller: &mut Caller,
    args: args::GetRowOrBefore,
) -> Result<CellBatch, Failure> {
    let table = from_thrift::table(args.table_name.as_ref())?;
    let missing = |what: &str| Failure::illegal_argument(format!("the {what} is missing"));
    let family = args.family.ok_or_else(|| missing("family"))?;
    let scan = Scan {
        // An empty row is the end of the table, as for every scan backwards.
        start_row: args.row.ok_or_else(|| missing("row"))?.to_vec(),
        reversed: true,
        limit: Some(1),
        spec: ReadSpec {
            families: vec![FamilySelection {
                family: family.to_vec(),
                columns: Columns::All,
            }],
            ..ReadSpec::default()
        },
        ..Scan::default()
    };
    Ok(scans::fetch_once(server, caller, table, scan, 1).await?.batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_at_the_next_one() {
        let stop = |prefix_bytes: &'static [u8]| {
            prefix(Some(&Bytes::from_static(prefix_bytes)), None)
                .unwrap()
                .0
                .stop_row
        };
        assert_eq!(stop(b"ab"), b"ac");
        assert_eq!(stop(b"a\xff"), b"b");
        assert_eq!(stop(b"\xff\xff"), b"", "to the end of the table");
    }
}
