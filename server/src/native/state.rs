//! State of a connection between calls.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use basalt_engine::cell::CellBatch;
use parking_lot::Mutex;

use super::peer::{Codec, Peer};
use super::reply::CellBlock;
use super::scanners::Scanners;
use crate::limits::admission::MemoryPermit;
use crate::server::Server;
use crate::service::Caller;

/// Largest batch that is kept between calls.
const KEEP_BYTES: usize = 2 << 10;

/// State shared by the calls of a connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) server: Arc<Server>,
    pub(super) peer: Peer,
    pub(super) number: u64,
    pub(super) address: Option<SocketAddr>,
    /// Scanners that this connection has open.
    pub(super) scanners: Mutex<Scanners>,
    /// Whether the client has closed the connection: long scans end.
    pub(super) gone: Arc<AtomicBool>,
    /// The caller of a get, kept for the next one with its batch.
    pub(super) kept: Mutex<Option<Caller>>,
}

impl Connection {
    /// The caller of a get: the kept one, if there is one.
    pub(super) fn caller_of_get(&self) -> Caller {
        let kept = self.kept.lock().take();
        kept.unwrap_or_else(|| self.caller())
    }

    /// Keeps the caller of a get, and its batch if that is small: an idle connection must not hold
    /// much.
    pub(super) fn keep(&self, mut caller: Caller, batch: CellBatch) {
        if batch.memory_bytes() <= KEEP_BYTES {
            caller.put_batch(batch);
            *self.kept.lock() = Some(caller);
        }
    }

    /// A new caller, for one call.
    pub(super) fn caller(&self) -> Caller {
        Caller::connected(self.number, self.server.admission().memory())
            .at(self.address)
            .until(&self.gone)
    }

    /// The client's address.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// An empty cell block for a response.
    pub(super) fn cell_block(&self, codec: Codec) -> CellBlock {
        CellBlock::new(codec, MemoryPermit::empty(self.server.admission().memory()))
    }
}
