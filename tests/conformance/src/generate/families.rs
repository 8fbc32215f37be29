//! Families and their options.
//!
//! Options that decide what a flush or a compaction drops are drawn once for each name of a family
//! and stay the same for the whole script, in every descriptor of it: when a flush happens between
//! two descriptors is not the same on both servers (HBase flushes when it reopens a region), so the
//! dropped cells would not be either.

use basalt_calls::Value;

use super::{Generator, record};

/// Options that decide which of a family's cells are kept.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    versions: Option<i64>,
    min_versions: Option<i64>,
    ttl: Option<i64>,
    keep_deleted: Option<i64>,
}

impl Generator {
    fn kept(&mut self, name: &str) -> Kept {
        if let Some(kept) = self.kept.get(name) {
            return kept.clone();
        }
        let versions = self.maybe(0.8, |this| this.int(1..=4));
        // Explicit timestamps are of 1970: with a TTL they are expired, and only MIN_VERSIONS keeps them.
        let ttl = self.maybe(0.15, |_| 100_000);
        let kept = Kept {
            versions,
            min_versions: ttl.and_then(|_| self.maybe(0.7, |this| this.int(1..=versions.unwrap_or(1)))),
            ttl,
            keep_deleted: match ttl {
                Some(_) => self.maybe(0.4, |this| this.int(0..=2)),
                None => self.maybe(0.4, |this| this.int(0..=1)),
            },
        };
        self.kept.insert(name.to_owned(), kept.clone());
        kept
    }

    /// A family with options that affect reads, and some that do not.
    pub(super) fn family_descriptor(&mut self, name: &str) -> Value {
        let kept = self.kept(name);
        record([
            ("name", Some(name.into())),
            ("maxVersions", kept.versions.map(Value::Int)),
            ("minVersions", kept.min_versions.map(Value::Int)),
            ("timeToLive", kept.ttl.map(Value::Int)),
            ("keepDeletedCells", kept.keep_deleted.map(Value::Int)),
            ("bloomnFilterType", self.maybe(0.5, |this| this.int(0..=2).into())),
            (
                "dataBlockEncoding",
                self.maybe(0.5, |this| this.one_of(&[0_i64, 2, 3, 4, 7]).into()),
            ),
            ("compressionType", self.maybe(0.2, |_| 1.into())),
            (
                "blockSize",
                self.maybe(0.5, |this| {
                    let bytes = this.one_of(&[1024_i64, 65536]);
                    let one_block = this.empty_qualifiers;
                    if one_block { 65536 } else { bytes }.into()
                }),
            ),
            ("inMemory", self.maybe(0.2, |this| this.chance(0.5).into())),
            (
                "blockCacheEnabled",
                self.maybe(0.2, |this| this.chance(0.5).into()),
            ),
            ("scope", self.maybe(0.1, |this| this.int(0..=1).into())),
            ("attributes", self.maybe(0.1, Self::attributes)),
            ("configuration", self.maybe(0.1, Self::attributes)),
        ])
    }
}
