//! Thrift 1's descriptions of scans.

use std::sync::Arc;

use basalt_engine::op::{ReadSpec, Scan};
use basalt_idl::thrift1;
use bytes::Bytes;

use super::{before, columns};
use crate::limits::admission::Class;
use crate::server::Server;
use crate::thrift::from_thrift;
use crate::thrift::handlers::Result;

pub(super) fn range(
    start: Option<Bytes>,
    stop: Option<Bytes>,
    wanted: Option<Vec<Bytes>>,
    timestamp: Option<i64>,
) -> Result<(Scan, bool)> {
    let start_row = Vec::from(start.unwrap_or_default());
    let stop_row = Vec::from(stop.unwrap_or_default());
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
pub(super) fn prefix(prefix: Option<Bytes>, wanted: Option<Vec<Bytes>>) -> Result<(Scan, bool)> {
    let mut stop = prefix.as_deref().unwrap_or_default().to_vec();
    while let Some(last) = stop.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            break;
        }
        stop.pop();
    }
    range(prefix, Some(Bytes::from(stop)), wanted, None)
}

/// A scan and whether its columns are sorted. A filter with a regular expression is compiled on the
/// pool.
pub(super) async fn t_scan(server: &Arc<Server>, scan: thrift1::TScan) -> Result<(Scan, bool)> {
    if !from_thrift::has_regex(scan.filter_string.as_ref(), None) {
        return scan_of(scan);
    }
    server.compiled(Class::User, move |_| scan_of(scan)).await
}

fn scan_of(scan: thrift1::TScan) -> Result<(Scan, bool)> {
    let (mut engine_scan, _) = range(scan.start_row, scan.stop_row, scan.columns, scan.timestamp)?;
    engine_scan.caching = from_thrift::positive(scan.caching);
    engine_scan.batch = from_thrift::positive(scan.batch_size);
    engine_scan.reversed = scan.reversed.unwrap_or(false);
    engine_scan.spec.cache_blocks = scan.cache_blocks.unwrap_or(true);
    engine_scan.spec.filter = from_thrift::filter(scan.filter_string.as_ref(), None)?;
    Ok((engine_scan, scan.sort_columns.unwrap_or(false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_at_the_next_one() {
        let stop = |prefix_bytes: &'static [u8]| {
            prefix(Some(Bytes::from_static(prefix_bytes)), None)
                .unwrap()
                .0
                .stop_row
        };
        assert_eq!(stop(b"ab"), b"ac");
        assert_eq!(stop(b"a\xff"), b"b");
        assert_eq!(stop(b"\xff\xff"), b"", "to the end of the table");
    }
}
