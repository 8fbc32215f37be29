//! Which columns are wanted, and how many versions of them (HBase: `ExplicitColumnTracker`,
//! `ScanWildcardColumnTracker`).

use smallvec::SmallVec;

use crate::cell::Key;

use super::Expiry;

/// Answer to "is this version wanted?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    /// Yes.
    Include,
    /// Yes, and it is the column's last.
    IncludeLast,
    /// Yes, and nothing more is wanted of the row.
    IncludeLastOfRow,
    /// No: the same version again, an older write.
    Duplicate,
    /// No, nor is any older one.
    Enough,
}

/// Answer to "is this column wanted?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Yes.
    Yes,
    /// No; a later one is.
    Later,
    /// No, nor is any later one.
    NoMore,
}

/// All columns of the row.
#[derive(Debug)]
pub(super) struct AllColumns {
    max_versions: u64,
    expiry: Expiry,
    /// The column that is being counted, once `counting`.
    qualifier: SmallVec<[u8; 32]>,
    counting: bool,
    /// Puts of it so far.
    count: u64,
    /// Timestamp and type of its last included cell.
    last: Option<(i64, u8)>,
}

impl AllColumns {
    pub(super) fn new(max_versions: u64, expiry: Expiry) -> Self {
        Self {
            max_versions,
            expiry,
            qualifier: SmallVec::new(),
            counting: false,
            count: 0,
            last: None,
        }
    }

    /// Versions of a column that are results.
    pub(super) fn max_versions(&self) -> u64 {
        self.max_versions
    }

    pub(super) fn clear(&mut self) {
        self.counting = false;
    }

    /// Counts the cell. Tombstones take the version of the put before them.
    pub(super) fn check_versions(&mut self, key: Key<'_>, is_delete: bool) -> Versions {
        let this = (key.timestamp(), key.type_code());
        if !self.counting || self.qualifier[..] != *key.qualifier() {
            self.qualifier.clear();
            self.qualifier.extend_from_slice(key.qualifier());
            self.counting = true;
            self.count = 0;
            self.last = None;
        } else if self.last == Some(this) {
            return Versions::Duplicate;
        }
        if !is_delete {
            self.count += 1;
        }
        if self.count > self.max_versions {
            return Versions::Enough;
        }
        if self.count > self.expiry.min_versions && self.expiry.is_old(this.0) {
            return Versions::Enough;
        }
        self.last = Some(this);
        Versions::Include
    }
}

/// Columns asked for by name.
#[derive(Debug)]
pub(super) struct NamedColumns {
    max_versions: u64,
    expiry: Expiry,
    /// Sorted, each once.
    wanted: Vec<Vec<u8>>,
    /// The next one of interest.
    at: usize,
    /// Versions of it so far.
    count: u64,
    /// Timestamp and type of its last included cell.
    last: Option<(i64, u8)>,
}

impl NamedColumns {
    pub(super) fn new(wanted: Vec<Vec<u8>>, max_versions: u64, expiry: Expiry) -> Self {
        debug_assert!(wanted.is_sorted_by(|left, right| left < right));
        Self {
            max_versions,
            expiry,
            wanted,
            at: 0,
            count: 0,
            last: None,
        }
    }

    /// Versions of a column that are results.
    pub(super) fn max_versions(&self) -> u64 {
        self.max_versions
    }

    /// The columns, sorted.
    pub(super) fn wanted(&self) -> &[Vec<u8>] {
        &self.wanted
    }

    pub(super) fn clear(&mut self) {
        self.at = 0;
        self.count = 0;
        self.last = None;
    }

    /// The next column of interest.
    pub(super) fn next(&self) -> Option<&[u8]> {
        self.wanted.get(self.at).map(Vec::as_slice)
    }

    fn step(&mut self) {
        self.at += 1;
        self.count = 0;
        self.last = None;
    }

    /// Nothing more is wanted of this column, nor of those before it.
    pub(super) fn done_with(&mut self, qualifier: &[u8]) {
        while self.next().is_some_and(|next| next <= qualifier) {
            self.step();
        }
    }

    pub(super) fn check_column(&mut self, qualifier: &[u8]) -> Wanted {
        loop {
            match self.next() {
                None => return Wanted::NoMore,
                Some(next) if next == qualifier => return Wanted::Yes,
                Some(next) if next > qualifier => return Wanted::Later,
                Some(_) => self.step(),
            }
        }
    }

    /// Counts a cell of the next wanted column. As in HBase the version that reaches MIN_VERSIONS is included
    /// although it may be expired, also when it is one more than MIN_VERSIONS because younger ones were not
    /// expired.
    pub(super) fn check_versions(&mut self, key: Key<'_>, is_delete: bool) -> Versions {
        let this = (key.timestamp(), key.type_code());
        if self.last == Some(this) {
            return Versions::Duplicate;
        }
        if is_delete {
            return Versions::Include;
        }
        self.count += 1;
        if self.count >= self.max_versions
            || (self.count >= self.expiry.min_versions && self.expiry.is_old(this.0))
        {
            self.step();
            return if self.next().is_none() {
                Versions::IncludeLastOfRow
            } else {
                Versions::IncludeLast
            };
        }
        self.last = Some(this);
        Versions::Include
    }
}
