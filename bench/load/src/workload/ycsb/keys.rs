//! Row keys, and the numbers of rows that can be read: those whose insert was acknowledged and all before
//! them.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::PoisonError;

use bytes::Bytes;

use super::properties::Properties;
use crate::load::choose::fnv_hash;

/// The row key of record `number`.
pub(super) fn row_key(properties: &Properties, number: u64) -> Bytes {
    let number = if properties.hashed {
        fnv_hash(number)
    } else {
        number
    };
    let width = properties.zero_padding as usize;
    Bytes::from(format!("user{number:0width$}"))
}

/// Records that are there, from the first on without a gap.
#[derive(Debug)]
pub(super) struct Inserted {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The next record to insert.
    next: u64,
    /// All records before it are there.
    end: u64,
    /// Records behind it that are there too.
    ahead: BTreeSet<u64>,
}

impl Inserted {
    /// The keys when `end` records are there.
    pub(super) fn new(end: u64) -> Inserted {
        let state = State {
            next: end,
            end,
            ahead: BTreeSet::new(),
        };
        Inserted {
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // The state is whole after every call under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A record for the caller to insert.
    pub(super) fn take(&self) -> u64 {
        let mut state = self.state();
        state.next += 1;
        state.next - 1
    }

    /// The record is there, or never will be: readers need not wait for it.
    pub(super) fn settle(&self, record: u64) {
        let mut state = self.state();
        state.ahead.insert(record);
        while state.ahead.first() == Some(&state.end) {
            state.ahead.pop_first();
            state.end += 1;
        }
    }

    /// All records before it can be read.
    pub(super) fn end(&self) -> u64 {
        self.state().end
    }
}
