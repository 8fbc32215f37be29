//! Identities of the engine's things, as types that cannot be swapped.

use std::fmt;

/// Order of an edit: one counter for the whole server, assigned when the edit joins the WAL. HBase calls it
/// mvcc or sequence id. Cells with a greater sequence id were written later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqId(pub u64);

impl SeqId {
    /// Before every edit.
    pub const ZERO: Self = Self(0);
    /// After every edit: a read at this point also sees edits that are not published yet.
    pub const MAX: Self = Self(u64::MAX);

    /// The next one.
    #[must_use]
    #[inline]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for SeqId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A client's name for an operation that must not be applied twice: a number for its connection and
/// one for the operation. A retry carries the same pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce {
    /// The client's connection (HBase: nonce group).
    pub group: u64,
    /// The operation (HBase: nonce). Never 0, which is no nonce in HBase, and in the log the mark of a
    /// standby.
    pub number: u64,
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}:{:016x}", self.group, self.number)
    }
}

/// A region, for ever: never used again after a split, a merge or a drop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u64);

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A store file. Never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u64);

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// 16 random bytes that say which file this is, whatever its name: it detects copied or swapped
/// files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Uuid(pub [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Most clusters that an [`Origin`] lists.
pub const ORIGIN_CLUSTERS_MAX: usize = 100;

/// The clusters that an edit has passed before this one: HBase's cluster ids. A replication source does not
/// send an edit to a cluster that is in the list. Empty for a write of a client; an empty list is not
/// allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin(Box<[Uuid]>);

impl Origin {
    /// These clusters, in the order in which the edit has passed them. `None` if there are more than
    /// [`ORIGIN_CLUSTERS_MAX`].
    pub fn new(clusters: Vec<Uuid>) -> Option<Self> {
        (clusters.len() <= ORIGIN_CLUSTERS_MAX).then(|| Self(clusters.into_boxed_slice()))
    }

    /// The clusters.
    pub fn clusters(&self) -> &[Uuid] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_prints_like_a_uuid() {
        let uuid = Uuid(*b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f");
        assert_eq!(uuid.to_string(), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
