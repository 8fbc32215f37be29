//! State of the master that native clients see.

use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

pub(crate) use procedures::Failed;
use procedures::{Nonce, Procedures};

mod procedures;

/// State of the master. It is not persisted; the engine keeps the switches of background work.
#[derive(Debug)]
pub(crate) struct MasterState {
    pub(crate) procedures: Procedures,
    /// Held during a change, so that a repeated call waits and returns the id of the first.
    changing: Mutex<()>,
    /// The switch of a janitor of `hbase:meta`, which has nothing to do: the table is computed.
    pub(crate) janitor: AtomicBool,
    /// The switch of a cleaner of archived files, of which there are none.
    pub(crate) cleaner: AtomicBool,
}

impl MasterState {
    /// The state of a server that has just started. Procedure ids begin with `start_code`.
    pub(crate) fn new(start_code: u64) -> Self {
        Self {
            procedures: Procedures::new(start_code),
            changing: Mutex::default(),
            janitor: AtomicBool::new(true),
            cleaner: AtomicBool::new(true),
        }
    }

    /// Runs `change` unless a call with this nonce has run it; returns the procedure id.
    pub(crate) fn change<E>(
        &self,
        nonce: (Option<u64>, Option<u64>),
        change: impl FnOnce() -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        self.change_or_fail(nonce, || change().map(|()| None))
    }

    /// As [`Self::change`], for a change that may fail although its call succeeds.
    pub(crate) fn change_or_fail<E>(
        &self,
        nonce: (Option<u64>, Option<u64>),
        change: impl FnOnce() -> Result<Option<Failed>, E>,
    ) -> Result<Option<u64>, E> {
        let nonce: Option<Nonce> = match nonce {
            (Some(group), Some(nonce)) if nonce != 0 => Some((group, nonce)),
            _ => None,
        };
        let _alone = self.changing.lock();
        if let Some(id) = nonce.and_then(|nonce| self.procedures.repeated(nonce)) {
            return Ok(Some(id));
        }
        let failed = change()?;
        Ok(Some(self.procedures.finished(nonce, failed)))
    }
}
