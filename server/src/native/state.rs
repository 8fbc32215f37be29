//! State of a connection between calls.

use std::sync::Arc;

use basalt_engine::cell::CellBatch;
use parking_lot::Mutex;

use super::peer::{Codec, Peer};
use super::reply::CellBlock;
use super::scanners::Scanners;
use crate::limits::admission::MemoryPermit;
use crate::security::Owner;
use crate::server::Server;
use crate::service::{AdminCall, Call, Sender};

/// Largest batch that is kept between calls.
const KEEP_BYTES: usize = 2 << 10;

/// State shared by the calls of a connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) server: Arc<Server>,
    pub(super) peer: Peer,
    pub(super) sender: Sender,
    /// Scanners that this connection has open.
    pub(super) scanners: Mutex<Scanners>,
    /// The batch of a get, kept for the next one.
    pub(super) kept: Mutex<Option<CellBatch>>,
}

impl Connection {
    /// Lends a get the kept batch, if there is one.
    pub(super) fn lend(&self, call: &mut Call<'_>) {
        call.kept().batch = self.kept.lock().take();
    }

    /// Keeps the batch of a get if it is small: an idle connection must not hold much.
    pub(super) fn keep(&self, call: &mut Call<'_>, batch: CellBatch) {
        if batch.memory_bytes() <= KEEP_BYTES {
            call.put_batch(batch);
            *self.kept.lock() = call.kept().batch.take();
        }
    }

    /// Owner of the scanners that this connection opens.
    pub(super) fn owner(&self) -> Owner {
        self.sender.caller.owner()
    }

    /// For calls that change or ask about tables, regions and the server.
    pub(super) fn admin(&self) -> AdminCall {
        AdminCall::new(&self.server, &self.sender.caller)
    }

    /// An empty cell block for a response.
    pub(super) fn cell_block(&self, codec: Codec) -> CellBlock {
        CellBlock::new(codec, MemoryPermit::empty(self.server.admission().memory()))
    }
}
