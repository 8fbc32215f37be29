//! State of a connection between calls.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

use super::peer::{Codec, Peer};
use super::reply::CellBlock;
use super::scanners::Scanners;
use crate::limits::admission::Held;
use crate::server::Server;
use crate::service::Caller;

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
}

impl Connection {
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
        CellBlock::new(codec, Held::nothing(self.server.admission().memory()))
    }
}
