//! The sender of a call: state that a connection keeps between its calls.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use basalt_engine::cell::{Budget, CellBatch, OnShortage};
use basalt_engine::schema::TableName;

use crate::limits::admission::{Memory, MemoryPermit};
use crate::server::sessions::Owner;

/// State of a client between its calls.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Owner of the scanners that it opens.
    owner: Owner,
    /// Where it comes from.
    pub(crate) address: Option<SocketAddr>,
    /// The table of the scanner that the running call fetches from: its arguments do not name it.
    pub(crate) scanned: Option<TableName>,
    /// The batch for results, reused by each call; `None` while a call uses it, and when none is
    /// kept.
    batch: Option<CellBatch>,
    /// The reservation for the reply of the running call. The connection takes it over.
    reply: MemoryPermit,
    /// Memory reserved for the arguments of the running call; 0 for small arguments.
    pub(crate) arguments_bytes: usize,
    /// The client has closed the connection: set while a call runs, for work that is useless from
    /// then on.
    gone: Arc<AtomicBool>,
    /// The running call has met a fault that closes the connection without an answer.
    pub(crate) is_cut: bool,
}

impl Caller {
    /// A connection of the main port that has not called yet. `connection` is its number.
    pub(crate) fn connected(connection: u64, memory: &Arc<Memory>) -> Self {
        Self::new(Owner::Connection(connection), memory)
    }

    /// The sender of one call over HTTP.
    pub(crate) fn over_http(memory: &Arc<Memory>) -> Self {
        Self::new(Owner::Http, memory)
    }

    fn new(owner: Owner, memory: &Arc<Memory>) -> Self {
        Self {
            owner,
            address: None,
            scanned: None,
            batch: None,
            reply: MemoryPermit::empty(memory),
            arguments_bytes: 0,
            gone: Arc::default(),
            is_cut: false,
        }
    }

    pub(crate) fn at(mut self, address: Option<SocketAddr>) -> Self {
        self.address = address;
        self
    }

    /// Sets how much memory is reserved for the arguments of its call.
    pub(crate) fn with_arguments(mut self, bytes: usize) -> Self {
        self.arguments_bytes = bytes;
        self
    }

    /// Sets the flag that its connection raises when the client has closed it.
    pub(crate) fn until(mut self, gone: &Arc<AtomicBool>) -> Self {
        self.gone = Arc::clone(gone);
        self
    }

    /// The client's address, without the port.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.address.map(|address| address.ip())
    }

    /// Whether the client has closed the connection, as detected while a call runs.
    pub(crate) fn gone(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.gone)
    }

    pub(crate) fn take_scanned(&mut self) -> Option<TableName> {
        self.scanned.take()
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Lends the batch out; give it back with [`Self::put_batch`].
    pub(crate) fn take_batch(&mut self) -> CellBatch {
        let new = || CellBatch::charged_to(Arc::clone(self.reply.memory()) as Arc<dyn Budget>);
        self.batch.take().unwrap_or_else(new)
    }

    /// The reservation for the reply of the last call, to be taken over.
    pub(crate) fn reply(&mut self) -> &mut MemoryPermit {
        &mut self.reply
    }

    /// Takes a batch back for the next call, unless it has grown large.
    pub(crate) fn put_batch(&mut self, mut batch: CellBatch) {
        const KEEP_BYTES: usize = 64 << 10;
        if batch.memory_bytes() <= KEEP_BYTES {
            batch.clear();
            batch.set_on_shortage(OnShortage::Leave);
            // The reply may have taken the batch's reservation. A batch that cannot be reserved
            // again is not kept.
            self.batch = batch.is_reserved().then_some(batch);
        }
    }

    /// Memory that is kept for the next call.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.batch.as_ref().map_or(0, CellBatch::memory_bytes)
    }

    /// Releases the memory that is kept for the next call.
    pub(crate) fn release(&mut self) {
        self.batch = None;
    }
}
