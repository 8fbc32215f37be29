//! Which store files the running compactions of a region read.
//!
//! Compactions of one region run at the same time as long as each has files of its own. To begin
//! one, a thread reads the claims, chooses among the unclaimed files, and claims its pick, all
//! under one lock. The claim ends when the result is in the region's version, or the compaction has
//! failed.
//!
//! A requested compaction of all files needs a store without running compactions. While it waits,
//! no other begins in the store, so it is not delayed for ever.
//!
//! Invariants: no file has two claims. A file of a version that was loaded under the lock is free
//! unless it is claimed: a compaction's claim ends only after its inputs have left the version.

use std::collections::BTreeSet;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::id::FileId;

/// The claims of one region.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    state: Mutex<ClaimState>,
    released: Condvar,
}

/// The claims, and the stores whose compaction of all files waits.
#[derive(Debug, Default)]
pub(crate) struct ClaimState {
    files: BTreeSet<FileId>,
    /// Families that wait for all their files.
    awaited: BTreeSet<Vec<u8>>,
}

/// Files that no other compaction takes while this lives.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    claims: &'a Claims,
    files: Vec<FileId>,
}

impl Claims {
    /// Nothing changes as long as the guard lives.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ClaimState> {
        self.state.lock()
    }

    /// Claims these files. None of them is claimed.
    pub(crate) fn claim(&self, mut state: MutexGuard<'_, ClaimState>, files: Vec<FileId>) -> Claim<'_> {
        for file in &files {
            assert!(
                state.files.insert(*file),
                "file {file:?} is being compacted already"
            );
        }
        Claim { claims: self, files }
    }

    /// Waits until a claim has ended.
    pub(crate) fn wait(&self, state: &mut MutexGuard<'_, ClaimState>) {
        self.released.wait(state);
    }
}

impl ClaimState {
    /// Whether a running compaction reads this file.
    pub(crate) fn is_claimed(&self, file: FileId) -> bool {
        self.files.contains(&file)
    }

    /// Records whether a compaction of all files of this family is waiting.
    pub(crate) fn set_awaited(&mut self, family: &[u8], awaited: bool) {
        if !awaited {
            self.awaited.remove(family);
        } else if !self.awaited.contains(family) {
            self.awaited.insert(family.to_vec());
        }
    }

    /// Whether a compaction of all files of this family is waiting.
    pub(crate) fn is_awaited(&self, family: &[u8]) -> bool {
        self.awaited.contains(family)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut state = self.claims.state.lock();
        for file in &self.files {
            state.files.remove(file);
        }
        drop(state);
        self.claims.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_lasts_until_it_is_dropped() {
        let claims = Claims::default();
        let claimed = || [1, 2, 3].map(|id| claims.lock().is_claimed(FileId(id)));
        let first = claims.claim(claims.lock(), vec![FileId(1), FileId(2)]);
        let second = claims.claim(claims.lock(), vec![FileId(3)]);
        assert_eq!(claimed(), [true, true, true]);
        drop(first);
        assert_eq!(claimed(), [false, false, true]);
        drop(second);
        assert_eq!(claimed(), [false; 3]);
    }

    /// The end of a claim wakes its waiter.
    #[test]
    fn the_end_of_a_claim_is_noticed() {
        let claims = Claims::default();
        let claim = claims.claim(claims.lock(), vec![FileId(1)]);
        std::thread::scope(|scope| {
            let mut state = claims.lock();
            let ends = scope.spawn(move || drop(claim));
            while state.is_claimed(FileId(1)) {
                claims.wait(&mut state);
            }
            drop(state);
            ends.join().unwrap();
        });
    }

    #[test]
    #[should_panic(expected = "is being compacted already")]
    fn a_file_is_not_claimed_twice() {
        let claims = Claims::default();
        claims.lock().files.insert(FileId(1));
        claims.claim(claims.lock(), vec![FileId(1)]);
    }
}
