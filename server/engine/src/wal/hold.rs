//! Readers outside of the engine that need segments: a backup that copies them, or one that ships the log as
//! it grows. A [`LogHold`] keeps its segment and all later ones from removal.
//!
//! The removal of segments asks for the oldest held one twice: when it chooses ([`Wal::first_kept`]), so
//! that the manifest goes on naming what is kept, and before each file, for holds that came in between.
//!
//! [`Wal::first_kept`]: super::Wal::first_kept

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Held segments with the number of their holds. Its lock is taken alone.
#[derive(Debug, Default)]
pub(super) struct Holds(Mutex<BTreeMap<u64, usize>>);

impl Holds {
    /// The oldest held segment; `u64::MAX` without holds.
    pub(super) fn oldest(&self) -> u64 {
        self.0.lock().keys().next().copied().unwrap_or(u64::MAX)
    }

    fn add(&self, segment: u64) {
        *self.0.lock().entry(segment).or_default() += 1;
    }

    fn remove(&self, segment: u64) {
        let mut held = self.0.lock();
        if let Some(count) = held.get_mut(&segment) {
            *count -= 1;
            if *count == 0 {
                held.remove(&segment);
            }
        }
    }
}

/// Keeps a segment and all later ones until it is dropped.
#[derive(Debug)]
pub struct LogHold {
    holds: Arc<Holds>,
    segment: u64,
}

impl LogHold {
    pub(super) fn new(holds: &Arc<Holds>, segment: u64) -> Self {
        holds.add(segment);
        Self {
            holds: Arc::clone(holds),
            segment,
        }
    }

    /// The oldest segment that is kept.
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// Releases the segments before this one.
    pub fn advance(&mut self, segment: u64) {
        if segment > self.segment {
            self.holds.add(segment);
            self.holds.remove(self.segment);
            self.segment = segment;
        }
    }
}

impl Drop for LogHold {
    fn drop(&mut self) {
        self.holds.remove(self.segment);
    }
}
