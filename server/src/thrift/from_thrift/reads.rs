//! Decoding of gets and scans.

use std::sync::Arc;

use basalt_engine::filter::FilterSpec;
use basalt_engine::op::{FamilySelection, ReadSpec, ReadTier, Scan, TimeRange};
use basalt_idl::thrift2;
use bytes::Bytes;

use super::{negative_time, raw, row, select, time_range};
use crate::service::Failure;

/// The filter of a read. Both forms are read, then the bytes win, as in HBase: a string that cannot
/// be parsed is always an error.
pub(in crate::thrift) fn filter(
    string: Option<&Bytes>,
    bytes: Option<&Bytes>,
) -> Result<Option<Arc<FilterSpec>>, Failure> {
    let from_string = string
        .map(|string| FilterSpec::parse(string))
        .transpose()
        .map_err(|error| Failure::illegal_argument(error.to_string()))?;
    let from_bytes = bytes
        .map(|bytes| FilterSpec::decode(bytes, rand::random()))
        .transpose()
        .map_err(|error| Failure::do_not_retry(error.to_string()))?;
    Ok(from_bytes.or(from_string).map(Arc::new))
}

/// The read of a `TGet`.
pub(in crate::thrift) fn get(get: &thrift2::TGet) -> Result<ReadSpec, Failure> {
    row(Some(&get.row))?;
    let time_range = match (get.timestamp, &get.time_range) {
        (Some(timestamp), _) if timestamp < 0 => return Err(negative_time(timestamp)),
        (Some(timestamp), _) => TimeRange::at(timestamp),
        (None, Some(range)) => time_range(range.min_stamp, range.max_stamp)?,
        (None, None) => TimeRange::ALL,
    };
    Ok(ReadSpec {
        families: columns(get.columns.as_deref()),
        time_range,
        max_versions: versions(get.max_versions.unwrap_or(1))?,
        family_limit: get.store_limit.and_then(|limit| usize::try_from(limit).ok()),
        family_offset: positive(get.store_offset).unwrap_or(0),
        cache_blocks: get.cache_blocks.unwrap_or(true),
        filter: filter(get.filter_string.as_ref(), get.filter_bytes.as_ref())?,
        raw: raw(&get.attributes)?,
        ..ReadSpec::default()
    })
}

/// Versions of a get: at least one.
pub(in crate::thrift) fn versions(versions: i32) -> Result<i32, Failure> {
    if versions <= 0 {
        Err(Failure::plain_io("maxVersions must be positive"))
    } else {
        Ok(versions)
    }
}

/// The scan of a Thrift 2 `TScan`.
pub(in crate::thrift) fn scan(scan: &thrift2::TScan) -> Result<Scan, Failure> {
    let ranges = scan.col_fam_time_range_map.iter().flatten();
    let start_row = scan.start_row.as_deref().unwrap_or_default().to_vec();
    let stop_row = scan.stop_row.as_deref().unwrap_or_default().to_vec();
    Ok(Scan {
        include_start: true,
        // Start equal to stop is a get of that row: HBase's deprecated setters, which its gateway uses, make
        // it so.
        include_stop: !start_row.is_empty() && start_row == stop_row,
        start_row,
        stop_row,
        reversed: scan.reversed.unwrap_or(false),
        batch: positive(scan.batch_size),
        limit: positive(scan.limit).map(|limit| limit as u64),
        caching: positive(scan.caching),
        spec: ReadSpec {
            families: columns(scan.columns.as_deref()),
            time_range: match &scan.time_range {
                Some(range) => time_range(range.min_stamp, range.max_stamp)?,
                None => TimeRange::ALL,
            },
            family_time_ranges: ranges
                .map(|(family, range)| Ok((family.to_vec(), time_range(range.min_stamp, range.max_stamp)?)))
                .collect::<Result<_, Failure>>()?,
            // HBase's Scan takes any number: below one it returns nothing useful, so one is the least.
            max_versions: scan.max_versions.max(1),
            cache_blocks: scan.cache_blocks.unwrap_or(true),
            filter: filter(scan.filter_string.as_ref(), scan.filter_bytes.as_ref())?,
            raw: raw(&scan.attributes)?,
            ..ReadSpec::default()
        },
        tier: ReadTier::All,
    })
}

fn columns(columns: Option<&[thrift2::TColumn]>) -> Vec<FamilySelection> {
    let columns = columns.into_iter().flatten();
    select(columns.map(|column| (column.family.clone(), column.qualifier.clone())))
}

/// A bound of a read; nothing set, or nonsense, means none.
pub(in crate::thrift) fn positive(bound: Option<i32>) -> Option<usize> {
    usize::try_from(bound?).ok().filter(|bound| *bound > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn the_bytes_of_a_filter_win_but_the_string_must_be_one() {
        let string = bytes("PageFilter(1)");
        let other = FilterSpec::first_key_only();
        let encoded = Bytes::from(other.encode());
        let both = filter(Some(&string), Some(&encoded)).unwrap();
        assert_eq!(both.as_deref(), Some(&other));
        for wrong in ["", "PageFilter("] {
            assert!(filter(Some(&bytes(wrong)), Some(&encoded)).is_err(), "{wrong:?}");
        }
    }
}
