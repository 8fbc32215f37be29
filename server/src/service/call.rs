//! A running call, and the connection that sends it.
//!
//! Each call of a connection has a [`Call`], which the functions of `service` take: it says who calls
//! ([`Caller`]), and collects what the end of the call needs (`pipeline::settle`). Work that moves to the
//! pool takes the caller along, not the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use basalt_engine::cell::{Budget, CellBatch, OnShortage};

use super::describe::Description;
use crate::limits::admission::{Memory, MemoryPermit};
use crate::security::Caller;

/// State of a connection that its calls use one after another, or each in its turn.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) caller: Arc<Caller>,
    /// Whether the client has closed the connection: set while a call runs, for work that is useless
    /// from then on.
    pub(crate) gone: Arc<AtomicBool>,
    memory: Arc<Memory>,
}

impl Sender {
    pub(crate) fn new(caller: Arc<Caller>, memory: &Arc<Memory>) -> Self {
        Self {
            caller,
            gone: Arc::default(),
            memory: Arc::clone(memory),
        }
    }
}

/// Notifies the calls of a sender, when it is dropped, that the client has gone.
pub(crate) struct Told(Arc<AtomicBool>);

impl Told {
    pub(crate) fn of(sender: &Sender) -> Self {
        Self(Arc::clone(&sender.gone))
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Things that a call leaves to its connection.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The batch for results, for the next call; `None` while a call uses it, and when none is kept.
    pub(crate) batch: Option<CellBatch>,
    /// The reservation for the reply, to be taken over; `None` if the reply is small.
    pub(crate) reply: Option<MemoryPermit>,
}

/// A call that runs.
#[derive(Debug)]
pub(crate) struct Call<'c> {
    sender: &'c Sender,
    kept: &'c mut Kept,
    /// When its whole message had arrived.
    began: Instant,
    /// Memory reserved for the arguments; 0 for small arguments.
    pub(crate) arguments_bytes: usize,
    /// Table, rows and columns of the call.
    pub(crate) description: Description,
}

impl<'c> Call<'c> {
    /// A call whose message had arrived at `began`.
    pub(crate) fn new(sender: &'c Sender, kept: &'c mut Kept, began: Instant) -> Self {
        Self {
            sender,
            kept,
            began,
            arguments_bytes: 0,
            description: Description::default(),
        }
    }

    pub(crate) fn caller(&self) -> &'c Arc<Caller> {
        &self.sender.caller
    }

    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Whether the client has closed the connection.
    pub(crate) fn is_gone(&self) -> bool {
        self.sender.gone.load(Ordering::Acquire)
    }

    /// Lends the batch for results; [`Self::put_batch`] returns it.
    pub(crate) fn take_batch(&mut self) -> CellBatch {
        let new = || CellBatch::charged_to(Arc::clone(&self.sender.memory) as Arc<dyn Budget>);
        self.kept.batch.take().unwrap_or_else(new)
    }

    /// Things that it leaves to its connection.
    pub(crate) fn kept(&mut self) -> &mut Kept {
        self.kept
    }

    /// The reservation for the reply.
    pub(crate) fn reply(&mut self) -> &mut MemoryPermit {
        let empty = || MemoryPermit::empty(&self.sender.memory);
        self.kept.reply.get_or_insert_with(empty)
    }

    /// Takes a batch back for the next call, unless it has grown large.
    pub(crate) fn put_batch(&mut self, mut batch: CellBatch) {
        const KEEP_BYTES: usize = 64 << 10;
        if batch.memory_bytes() <= KEEP_BYTES {
            batch.clear();
            batch.set_on_shortage(OnShortage::Leave);
            // The reply may have taken the batch's reservation. A batch that cannot be reserved
            // again is not kept.
            self.kept.batch = batch.is_reserved().then_some(batch);
        }
    }
}
