//! The expected content of the database.
//!
//! Assigned timestamps rise from call to call whatever the machine's clock does, so no two writes
//! of a column have the same timestamp, and HBase's rules about equal ones are not needed. Writes
//! of one row within a millisecond have later timestamps than the model expects ([`Row::is`]).
//!
//! Families either keep one version and get no tombstone that would uncover an older one, or keep
//! more versions than are ever written. So the visible cells never depend on what flushes and
//! compactions have dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use basalt_engine::engine::LoadFile;
use basalt_engine::id::RegionId;
use basalt_engine::schema::TableDescriptor;

/// Versions that the families which keep many keep.
pub(crate) const MANY: i32 = 1000;

/// Maximum time by which a row runs ahead of assigned time when the workload deletes and writes it
/// within a millisecond.
pub(crate) const ROW_AHEAD_MS: i64 = 12;

/// One version of a column.
pub(crate) type Version = (i64, Vec<u8>);

/// Visible state of a row: the versions of each column (family, qualifier), newest first. No column
/// is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row(pub(crate) BTreeMap<(String, String), Vec<Version>>);

impl Row {
    /// The newest value of a column.
    pub(crate) fn newest(&self, family: &str, qualifier: &str) -> Option<&Version> {
        self.0.get(&(family.to_owned(), qualifier.to_owned()))?.first()
    }

    /// Puts a version that is newer than all others. `many`: whether the family keeps them.
    pub(crate) fn put(&mut self, family: &str, qualifier: &str, timestamp: i64, value: Vec<u8>, many: bool) {
        let versions = self
            .0
            .entry((family.to_owned(), qualifier.to_owned()))
            .or_default();
        if !many {
            versions.clear();
        }
        versions.insert(0, (timestamp, value));
    }

    /// Removes those versions for which `goes` says so.
    pub(crate) fn remove(&mut self, mut goes: impl FnMut(&str, &str, i64) -> bool) {
        self.0.retain(|(family, qualifier), versions| {
            versions.retain(|(timestamp, _)| !goes(family, qualifier, *timestamp));
            !versions.is_empty()
        });
    }

    /// Whether a row read from the engine matches this one: the same values in the same order, each
    /// with its timestamp or one at most [`ROW_AHEAD_MS`] later.
    pub(crate) fn is(&self, shown: &Self) -> bool {
        let same = |(known, shown): (&Version, &Version)| {
            known.1 == shown.1 && (known.0..=known.0 + ROW_AHEAD_MS).contains(&shown.0)
        };
        let rises = |versions: &Vec<Version>| versions.windows(2).all(|pair| pair[0].0 > pair[1].0);
        self.0.keys().eq(shown.0.keys())
            && self.0.values().zip(shown.0.values()).all(|(known, shown)| {
                known.len() == shown.len() && known.iter().zip(shown).all(same) && rises(shown)
            })
    }

    /// The newest timestamp in the row, 0 if it is empty.
    pub(crate) fn newest_time(&self) -> i64 {
        let versions = self.0.values().flatten();
        versions.map(|(timestamp, _)| *timestamp).max().unwrap_or(0)
    }

    /// Whether nothing can be seen of it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Rows by key; none is empty. Shared, because every crash is compared with a copy.
pub(crate) type Rows = BTreeMap<String, Arc<Row>>;

/// Visible state of a row.
pub(crate) fn state_of(rows: &Rows, row: &str) -> Row {
    rows.get(row).map(|row| Row::clone(row)).unwrap_or_default()
}

/// A row is so from now on.
pub(crate) fn set(rows: &mut Rows, row: &str, state: Row) {
    if state.is_empty() {
        rows.remove(row);
    } else {
        rows.insert(row.to_owned(), Arc::new(state));
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// The requested descriptor.
    pub(crate) descriptor: TableDescriptor,
    /// Whether it takes data calls.
    pub(crate) enabled: bool,
    /// The visible rows.
    pub(crate) rows: Rows,
}

/// Tables by name.
pub(crate) type Tables = BTreeMap<String, Table>;

/// A row that is written with a durability below the default: a crash may take it back to any state since it
/// was last known durable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weak {
    /// The states it had; the first is durable.
    pub(crate) states: Vec<Row>,
    /// One of the writes was not logged: no sync of the log makes it durable.
    pub(crate) unlogged: bool,
}

/// The call in flight when the process died.
#[derive(Clone, Debug, Default)]
pub(crate) enum Pending {
    /// None that changes anything.
    #[default]
    Nothing,
    /// A write.
    Rows {
        /// Table of the rows.
        table: String,
        /// State of each row after the write.
        after: Vec<(String, Row)>,
        /// It is one edit of the log: all of its rows or none.
        whole: bool,
    },
    /// A read of the timestamps of a row that has been written: they may be up to [`ROW_AHEAD_MS`]
    /// later than the model's.
    Times {
        /// Table of the row.
        table: String,
        /// Key of the row.
        row: String,
    },
    /// A change of the schema or of snapshots.
    Schema(Box<Change>),
}

/// The state after a change of the schema or of snapshots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    /// All tables afterwards.
    pub(crate) tables: Tables,
    /// All snapshots afterwards, by name, each as the table that it is of was.
    pub(crate) snapshots: Tables,
    /// A table that gets other regions, with the ids of those that it has: nothing else may tell whether it
    /// was restored.
    pub(crate) restored: Option<(String, Vec<RegionId>)>,
}

/// The acknowledged or observed state, and the call in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// Acknowledged, or seen by a read.
    pub(crate) tables: Tables,
    /// Snapshots by name, each as the table that it is of was.
    pub(crate) snapshots: Tables,
    /// Rows that may go back, by table and key.
    pub(crate) weak: BTreeMap<(String, String), Weak>,
    /// The call in flight.
    pub(crate) pending: Pending,
    /// The last increment or append with a nonce, to be sent again.
    pub(crate) retry: Option<Retry>,
    /// The bulk load that is under way.
    pub(crate) offered: Option<Offered>,
    /// The newest timestamp that an acknowledged write has.
    pub(crate) stamped_ms: i64,
    /// Number of the next write: it is in every value, so that values tell which write they are of.
    pub(crate) writes: u64,
    /// The calls so far, the last ones of them, for people.
    pub(crate) story: std::collections::VecDeque<String>,
}

impl Told {
    /// A table that is known to be there.
    pub(crate) fn table(&self, name: &str) -> &Table {
        &self.tables[name]
    }

    /// Visible state of a row.
    pub(crate) fn row(&self, table: &str, row: &str) -> Row {
        state_of(&self.tables[table].rows, row)
    }

    /// A row is so from now on.
    pub(crate) fn set_row(&mut self, table: &str, row: &str, state: Row) {
        let Some(table) = self.tables.get_mut(table) else {
            return;
        };
        set(&mut table.rows, row, state);
    }

    /// Everything written so far is durable, in one table or in all.
    pub(crate) fn flushed(&mut self, table: Option<&str>) {
        self.weak
            .retain(|(of, _), _| table.is_some_and(|table| table != of.as_str()));
    }

    /// The log was synced.
    pub(crate) fn synced(&mut self) {
        self.weak.retain(|_, weak| weak.unlogged);
    }

    /// Notes a call.
    pub(crate) fn tell(&mut self, what: String) {
        if self.story.len() == 40 {
            self.story.pop_front();
        }
        self.story.push_back(what);
    }

    /// The last calls, one a line.
    pub(crate) fn story(&self) -> String {
        let lines: Vec<&str> = self.story.iter().map(String::as_str).collect();
        lines.join("\n    ")
    }
}

/// Effect of an operation with a nonce.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// Adds to column `n` of each of these families.
    Increment(Vec<(String, i64)>),
    /// Appends to column `s` of family `b`.
    Append(String),
}

/// An operation that can be sent again.
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    pub(crate) table: String,
    pub(crate) row: String,
    pub(crate) change: Operation,
    pub(crate) number: u64,
    /// The row before it and after it.
    pub(crate) before: Row,
    pub(crate) after: Row,
    /// When it was sent first.
    pub(crate) sent_ms: u64,
    /// Whether it is known to have been applied.
    pub(crate) acknowledged: bool,
}

/// A bulk load that is under way, or was when the process died.
#[derive(Clone, Debug)]
pub(crate) struct Offered {
    pub(crate) table: String,
    /// The files, each with its bytes.
    pub(crate) files: Vec<(LoadFile, Vec<u8>)>,
    /// State of each row after the load.
    pub(crate) after: Vec<(String, Row)>,
}

/// The first row in which two tables differ.
pub(crate) fn difference(expected: &Rows, found: &Rows) -> String {
    let keys = expected.keys().chain(found.keys());
    for key in keys {
        let (should, is) = (state_of(expected, key), state_of(found, key));
        if should != is {
            return format!("row {key} is {is:?}, must be {should:?}");
        }
    }
    "no difference".into()
}
