//! The memory of a request's head while it arrives.
//!
//! The HTTP library collects a head of up to 64 KiB by itself, before any route sees the request. So
//! the socket counts the bytes of a head, and reserves those that are not free from the memory for
//! calls. A client that sends no more of a large head loses its connection when other calls need the
//! memory.

use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use crate::http::answer::{Closing, watch};
use crate::limits::admission::{Busy, Memory, MemoryPermit, SlowClient};

/// The head that arrives on a connection, shared by its socket and its service.
#[derive(Clone)]
pub(super) struct Head(Arc<Mutex<State>>);

struct State {
    permit: MemoryPermit,
    bytes: usize,
    /// Registered while the head is large, with the task that ends the connection when it is dropped.
    slow: Option<(Arc<SlowClient>, AbortOnDropHandle<()>)>,
    peer: IpAddr,
    closing: Closing,
}

impl Head {
    pub(super) fn new(memory: &Arc<Memory>, peer: IpAddr, closing: Closing) -> Self {
        Self(Arc::new(Mutex::new(State {
            permit: MemoryPermit::empty(memory),
            bytes: 0,
            slow: None,
            peer,
            closing,
        })))
    }

    /// Counts bytes of the head that have arrived. Fails when there is no memory for them.
    pub(super) fn arrived(&self, bytes: usize) -> Result<(), Busy> {
        let mut state = self.0.lock();
        state.bytes += bytes;
        let total = state.bytes;
        if !state.permit.try_raise(total) {
            return Err(state.permit.memory().busy(bytes as u64));
        }
        if !state.permit.has_bytes() {
            return Ok(());
        }
        let reserved = state.permit.bytes();
        if let Some((slow, _)) = &state.slow {
            slow.progress(bytes, reserved);
            return Ok(());
        }
        let slow = Arc::new(state.permit.memory().slow_client(Some(state.peer), reserved));
        let watching = watch(Arc::clone(&slow), state.closing.clone());
        state.slow = Some((slow, watching));
        Ok(())
    }

    /// Releases the memory: the head is complete, and its request is served.
    pub(super) fn is_complete(&self) {
        let mut state = self.0.lock();
        state.bytes = 0;
        state.slow = None;
        state.permit.set(0);
    }
}
