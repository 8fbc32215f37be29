//! The cache of region locations: for each table the known regions by start key.
//!
//! Regions of one table in the cache never overlap: a region that is added replaces all that it overlaps, as
//! after a split or a merge. An entry is dropped only by a caller that failed with it; a newer entry that
//! has taken its place stays.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use basalt_idl::native::messages::{self, RegionSpecifier, region_specifier::RegionSpecifierType};
use bytes::Bytes;

use crate::name::TableName;
use crate::server_name::ServerName;

/// A region and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The full name: `table,start key,id.encoded name.`
    pub name: Bytes,
    /// The table.
    pub table: TableName,
    /// Milliseconds since 1970 of its creation.
    pub id: u64,
    /// The first row key; empty at the start of the table.
    pub start_key: Bytes,
    /// The first row key behind it; empty at the end of the table.
    pub end_key: Bytes,
    /// The server.
    pub server: ServerName,
    /// The server's `host:port`.
    pub(super) address: Arc<str>,
}

impl Region {
    pub(super) fn new(name: Bytes, info: &messages::RegionInfo, server: ServerName) -> Region {
        Region {
            name,
            table: super::schema::name_of(&info.table_name),
            id: info.region_id,
            start_key: info.start_key.clone().unwrap_or_default(),
            end_key: info.end_key.clone().unwrap_or_default(),
            address: server.address().into(),
            server,
        }
    }

    /// The 32 hexadecimal digits behind the name's last dot but one; the whole name if there are none.
    pub fn encoded_name(&self) -> &[u8] {
        let name = self.name.strip_suffix(b".").unwrap_or(&self.name);
        name.rsplit(|byte| *byte == b'.').next().unwrap_or(name)
    }

    /// Whether a row lies in the region.
    pub fn contains(&self, row: &[u8]) -> bool {
        self.start_key <= row && (self.end_key.is_empty() || row < self.end_key)
    }

    /// Whether the region has the rows just below `row`; an empty `row` is the end of the table.
    pub(super) fn contains_before(&self, row: &[u8]) -> bool {
        let is_last = self.end_key.is_empty();
        if row.is_empty() {
            return is_last;
        }
        self.start_key < row && (is_last || row <= self.end_key)
    }

    pub(super) fn specifier(&self) -> RegionSpecifier {
        RegionSpecifier {
            r#type: RegionSpecifierType::RegionName.into(),
            value: self.name.clone(),
        }
    }

    pub(super) fn to_info(&self) -> messages::RegionInfo {
        messages::RegionInfo {
            region_id: self.id,
            table_name: super::schema::name_to(&self.table),
            start_key: Some(self.start_key.clone()),
            end_key: Some(self.end_key.clone()),
            offline: Some(false),
            split: Some(false),
            replica_id: Some(0),
        }
    }
}

/// The known regions.
#[derive(Debug, Default)]
pub(super) struct RegionCache {
    tables: RwLock<HashMap<TableName, ByStart>>,
}

type ByStart = BTreeMap<Bytes, Arc<Region>>;

impl RegionCache {
    /// The region that has a row.
    pub(super) fn find(&self, table: &TableName, row: &[u8]) -> Option<Arc<Region>> {
        self.last_of(table, Bound::Included(row), |region| region.contains(row))
    }

    /// The region that has the rows just below `row`; an empty `row` is the end of the table.
    pub(super) fn find_before(&self, table: &TableName, row: &[u8]) -> Option<Arc<Region>> {
        let bound = if row.is_empty() {
            Bound::Unbounded
        } else {
            Bound::Excluded(row)
        };
        self.last_of(table, bound, |region| region.contains_before(row))
    }

    fn last_of(
        &self,
        table: &TableName,
        bound: Bound<&[u8]>,
        fits: impl Fn(&Region) -> bool,
    ) -> Option<Arc<Region>> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let mut regions = tables.get(table)?.range::<[u8], _>((Bound::Unbounded, bound));
        let (_, region) = regions.next_back()?;
        fits(region).then(|| Arc::clone(region))
    }

    /// The known regions of a table.
    pub(super) fn of_table(&self, table: &TableName) -> Vec<Arc<Region>> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let regions = tables.get(table).into_iter().flat_map(BTreeMap::values);
        regions.map(Arc::clone).collect()
    }

    /// Adds a region, replacing all that it overlaps. One that ends before it starts is not kept.
    pub(super) fn insert(&self, region: Arc<Region>) {
        if !region.end_key.is_empty() && region.end_key <= region.start_key {
            return;
        }
        let mut tables = self.write();
        let regions = tables.entry(region.table.clone()).or_default();
        for start_key in overlapped(regions, &region) {
            regions.remove(&start_key);
        }
        regions.insert(region.start_key.clone(), region);
    }

    /// Drops a region, unless another location of it was added meanwhile.
    pub(super) fn remove(&self, region: &Region) {
        let mut tables = self.write();
        if let Some(regions) = tables.get_mut(&region.table)
            && regions
                .get(&region.start_key)
                .is_some_and(|known| **known == *region)
        {
            regions.remove(&region.start_key);
        }
    }

    /// Records that a region is on another server.
    pub(super) fn moved(&self, region: &Region, server: ServerName) {
        if server == region.server {
            // The hint names the server that was just called: only meta can have a better location.
            return self.remove(region);
        }
        self.insert(Arc::new(Region {
            address: server.address().into(),
            server,
            ..region.clone()
        }));
    }

    /// Drops everything on a server.
    pub(super) fn remove_server(&self, address: &str) {
        for regions in self.write().values_mut() {
            regions.retain(|_, known| &*known.address != address);
        }
    }

    /// Drops a table.
    pub(super) fn remove_table(&self, table: &TableName) {
        self.write().remove(table);
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<TableName, ByStart>> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The start keys of the regions that a region overlaps: perhaps the last one before it, and all that start
/// in it.
fn overlapped(regions: &ByStart, region: &Region) -> Vec<Bytes> {
    let (start, end) = (&region.start_key[..], &region.end_key[..]);
    let mut before = regions.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(start)));
    let before = before.next_back().filter(|(_, known)| known.contains(start));
    let end = if end.is_empty() {
        Bound::Unbounded
    } else {
        Bound::Excluded(end)
    };
    let within = regions.range::<[u8], _>((Bound::Included(start), end));
    before
        .into_iter()
        .chain(within)
        .map(|(start_key, _)| start_key.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> TableName {
        name.parse().unwrap()
    }

    fn region(start: &'static str, end: &'static str, port: u16) -> Arc<Region> {
        let server = ServerName {
            host: "h".to_owned(),
            port,
            start_code: 1,
        };
        Arc::new(Region {
            name: Bytes::from(format!("t,{start},1.0123456789abcdef0123456789abcdef.")),
            table: table("t"),
            id: 1,
            start_key: Bytes::from(start),
            end_key: Bytes::from(end),
            address: server.address().into(),
            server,
        })
    }

    fn cache(regions: &[Arc<Region>]) -> RegionCache {
        let cache = RegionCache::default();
        for region in regions {
            cache.insert(Arc::clone(region));
        }
        cache
    }

    #[test]
    fn rows_are_found_in_their_region() {
        let (first, last) = (region("", "m", 1), region("m", "", 2));
        let cache = cache(&[Arc::clone(&first), Arc::clone(&last)]);
        for (row, expected) in [("", &first), ("lz", &first), ("m", &last), ("z", &last)] {
            assert_eq!(
                cache.find(&table("t"), row.as_bytes()).as_ref(),
                Some(expected),
                "{row}"
            );
        }
        for (row, expected) in [("", &last), ("a", &first), ("m", &first), ("m0", &last)] {
            let found = cache.find_before(&table("t"), row.as_bytes());
            assert_eq!(found.as_ref(), Some(expected), "before {row}");
        }
        assert_eq!(cache.find(&table("u"), b"a"), None);
    }

    #[test]
    fn a_gap_has_no_region() {
        let cache = cache(&[region("b", "c", 1), region("d", "e", 1)]);
        for row in ["a", "c", "cz", "e", "z"] {
            assert_eq!(cache.find(&table("t"), row.as_bytes()), None, "{row}");
        }
        for row in ["", "b", "d", "ez"] {
            assert_eq!(
                cache.find_before(&table("t"), row.as_bytes()),
                None,
                "before {row}"
            );
        }
        assert!(cache.find_before(&table("t"), b"e").is_some());
    }

    #[test]
    fn daughters_replace_their_parent_and_merged_regions_their_parents() {
        let cache = cache(&[region("", "m", 1), region("m", "", 1)]);
        let (low, high) = (region("", "d", 1), region("d", "m", 1));
        cache.insert(Arc::clone(&low));
        assert_eq!(cache.find(&table("t"), b"e"), None);
        cache.insert(high);
        assert_eq!(cache.find(&table("t"), b"c"), Some(low));
        let merged = region("d", "", 1);
        cache.insert(Arc::clone(&merged));
        assert_eq!(cache.find(&table("t"), b"e"), Some(Arc::clone(&merged)));
        assert_eq!(cache.find(&table("t"), b"z"), Some(merged));
    }

    /// Rows of meta are not trusted to be consistent.
    #[test]
    fn a_region_that_ends_before_it_starts_is_not_kept() {
        let cache = cache(&[region("m", "d", 1), region("m", "m", 1)]);
        assert_eq!(cache.find(&table("t"), b"m"), None);
    }

    /// A caller that failed with an old location must not drop the new one.
    #[test]
    fn an_old_location_does_not_remove_a_new_one() {
        let (old, new) = (region("", "", 1), region("", "", 2));
        let cache = cache(&[Arc::clone(&old), Arc::clone(&new)]);
        cache.remove(&old);
        assert_eq!(cache.find(&table("t"), b"a"), Some(Arc::clone(&new)));
        cache.remove(&new);
        assert_eq!(cache.find(&table("t"), b"a"), None);
    }

    #[test]
    fn a_move_and_a_lost_server_change_locations() {
        let (one, two) = (region("", "m", 1), region("m", "", 2));
        let cache = cache(&[Arc::clone(&one), Arc::clone(&two)]);
        cache.moved(&one, two.server.clone());
        assert_eq!(cache.find(&table("t"), b"a").unwrap().server, two.server);
        cache.remove_server("h:2");
        assert_eq!(cache.find(&table("t"), b"a"), None);
        assert_eq!(cache.find(&table("t"), b"m"), None);
    }

    /// A server that names itself as the new place is not trusted: the call would return there for ever.
    #[test]
    fn a_move_to_the_same_server_drops_the_location() {
        let one = region("", "", 1);
        let cache = cache(&[Arc::clone(&one)]);
        cache.moved(&one, one.server.clone());
        assert_eq!(cache.find(&table("t"), b"a"), None);
    }

    #[test]
    fn the_encoded_name_is_the_hash() {
        assert_eq!(
            region("a.b", "", 1).encoded_name(),
            b"0123456789abcdef0123456789abcdef"
        );
    }
}
