//! The order of rows.
//!
//! Rows are ordered as unsigned bytes, with one exception, HBase's (`MetaCellComparator`): rows of
//! `hbase:meta` are names of regions, `table,start,id`, and are ordered by table, then by start row, then by
//! id. As plain bytes a start row that begins with a byte below the comma would come before the empty one.

use std::cmp::Ordering;

use smallvec::SmallVec;

/// Whether `row` lies at or behind `start`, as every row does behind an empty one.
///
/// Comparing with an empty bound would give the same result at a higher cost: the C library's
/// `memcmp` may load through a mask (AVX-512), and a load of no bytes from the dangling pointer of
/// an empty `Vec` stalls the processor.
#[inline]
pub fn is_from(row: &[u8], start: &[u8]) -> bool {
    start.is_empty() || row >= start
}

/// How the rows of a table are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// As unsigned bytes, shorter prefix first.
    #[default]
    Bytes,
    /// By the parts of a region's name.
    Meta,
}

impl RowOrder {
    /// Where `left` stands in relation to `right`. Only equal rows compare as equal.
    #[inline]
    pub fn compare(self, left: &[u8], right: &[u8]) -> Ordering {
        match self {
            Self::Bytes => left.cmp(right),
            Self::Meta => Name::of(left).cmp(&Name::of(right)),
        }
    }

    /// The smallest row behind `row`.
    pub fn successor(self, row: &[u8]) -> SmallVec<[u8; 64]> {
        let mut next = SmallVec::with_capacity(row.len() + 2);
        next.extend_from_slice(row);
        if self == Self::Bytes {
            next.push(0);
            return next;
        }
        let name = Name::of(row);
        match name.start_and_id {
            None => next.extend_from_slice(b",,"),
            // An id has no comma, so the first one behind `table,start` as an id begins with the table and a
            // greater byte.
            Some((_, id)) if id == row => {
                next.push(b',');
                next.extend_from_slice(name.table);
                next.push(b',' + 1);
            }
            Some(_) => next.push(0),
        }
        next
    }
}

/// A row of `hbase:meta`, taken apart.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name<'a> {
    table: &'a [u8],
    /// `None` where there is no comma. With a single comma there is no id, and HBase takes the
    /// whole row as the id.
    start_and_id: Option<(&'a [u8], &'a [u8])>,
}

impl<'a> Name<'a> {
    fn of(row: &'a [u8]) -> Self {
        let comma = |byte: &u8| *byte == b',';
        let Some(first) = row.iter().position(comma) else {
            return Self {
                table: row,
                start_and_id: None,
            };
        };
        let (table, rest) = (&row[..first], &row[first + 1..]);
        let start_and_id = match rest.iter().rposition(comma) {
            Some(last) => (&rest[..last], &rest[last + 1..]),
            None => (rest, row),
        };
        Self {
            table,
            start_and_id: Some(start_and_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The order in which HBase 2.6 returned these rows of `hbase:meta`.
    #[test]
    fn meta_rows_are_ordered_as_hbase_does() {
        let rows: [&[u8]; 9] = [
            b"hbase:namespace",
            b"hbase:namespace,,1795293939229.226433b886f3a0cd37b04c0802f5953e.",
            b"off,,1795293941850.27c23ff86e721bc0564db0726bbf1036.",
            b"t",
            b"t,,1795293941110.b16202f35b57a514e7b6cd92473f1b1f.",
            b"t,\x01,1795293941110.78d51f265c30559f2e777b39c13c8b31.",
            b"t, a,b,1795293941110.a10032b124a8f7d4db101bb6af8737df.",
            b"t,m,1795293941110.4c2d51b8116e395790fb042ef2721e37.",
            // Asked for the row at or before this one, HBase returned the one above.
            b"t,m",
        ];
        for (index, row) in rows.iter().enumerate() {
            for (other_index, other) in rows.iter().enumerate() {
                assert_eq!(RowOrder::Meta.compare(row, other), index.cmp(&other_index));
            }
        }
        assert_eq!(RowOrder::Bytes.compare(rows[4], rows[5]), Ordering::Greater);
    }

    fn row() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0, b',', b'-', b'a', b'b']), 0..6)
    }

    proptest! {
        #[test]
        fn an_order_is_total_and_has_successors(rows in prop::collection::vec(row(), 3)) {
            for order in [RowOrder::Bytes, RowOrder::Meta] {
                let [a, b, c] = [&rows[0], &rows[1], &rows[2]];
                prop_assert_eq!(order.compare(a, b), order.compare(b, a).reverse());
                prop_assert_eq!(order.compare(a, b).is_eq(), a == b);
                if order.compare(a, b).is_lt() && order.compare(b, c).is_lt() {
                    prop_assert!(order.compare(a, c).is_lt());
                }
                let next = order.successor(a);
                prop_assert!(order.compare(a, &next).is_lt());
                if order.compare(a, b).is_lt() {
                    prop_assert!(order.compare(&next, b).is_le(), "{:?} {:?} {:?}", a, next, b);
                }
            }
        }
    }
}
