//! Cell blocks that are compressed, or of another form than KeyValueCodec's, in requests and responses,
//! within the memory for calls.
//!
//! A small block is packed or unpacked on the network thread. A large one, or one that turns out to
//! be large or has to wait for memory, goes to the pool, where it takes a place as any data call.

use std::sync::Arc;

use basalt_engine::Error;
use basalt_engine::cell::{Account, Budget, OnShortage};
use basalt_idl::native::compress::{Room, UnpackError};
use basalt_idl::native::forms::Packing;
use bytes::Bytes;

use crate::limits::admission::{Class, Memory, MemoryPermit};
use crate::server::Server;
use crate::service::Failure;

/// Blocks with more packed bytes are unpacked on the pool.
const INLINE_PACKED: usize = 16 << 10;
/// Blocks with more plain bytes are packed and unpacked on the pool.
const INLINE_PLAIN: usize = 128 << 10;

/// Unpacks the cells of a call. Their memory is added to `permit`.
pub(super) async fn unpack(
    server: &Arc<Server>,
    packing: Option<Packing>,
    cells: Bytes,
    permit: &mut MemoryPermit,
) -> Result<Bytes, Failure> {
    let Some(packing) = packing.filter(|_| !cells.is_empty()) else {
        return Ok(cells);
    };
    let max = server.config().server.max_message_bytes;
    let memory = Arc::clone(server.admission().memory());
    if cells.len() <= INLINE_PACKED {
        let mut room = Reserved::new(&memory, OnShortage::Leave);
        match packing.unpack(&cells, max.min(INLINE_PLAIN), &mut room) {
            Ok(plain) => return Ok(room.hand_over(plain, permit)),
            Err(UnpackError::TooLarge(_) | UnpackError::NoRoom(_)) => {}
            Err(error) => return Err(failure(&error, None)),
        }
    }
    server.admission().admit_to_queue()?;
    let unpacked = server
        .run_queued(Class::User, move |_| {
            let mut room = Reserved::new(&memory, OnShortage::Wait);
            match packing.unpack(&cells, max, &mut room) {
                Ok(plain) => Ok((plain, room)),
                Err(error) => Err(failure(&error, room.refused)),
            }
        })
        .await;
    let (plain, room) = unpacked.inspect_err(|failure| {
        if failure.can_retry() {
            server.admission().count_memory();
        }
    })?;
    Ok(room.hand_over(plain, permit))
}

/// Packs the cells of a response to a call of this class.
pub(super) async fn pack(
    server: &Arc<Server>,
    class: Class,
    packing: Packing,
    plain: Vec<u8>,
) -> Result<Vec<u8>, Failure> {
    let pack = move |plain: Vec<u8>| {
        let packed = packing.pack(plain);
        packed.map_err(|error| Failure::do_not_retry(format!("the response cannot be packed: {error}")))
    };
    if plain.len() <= INLINE_PLAIN {
        return pack(plain);
    }
    // The call has been served, so it is not refused any more.
    let _place = server.admission().permit_again(class).await;
    server.on_pool(move |_| pack(plain)).await
}

/// Memory that is reserved while a block is unpacked.
#[derive(Debug)]
struct Reserved {
    account: Account,
    /// Why a reservation was refused.
    refused: Option<Error>,
}

impl Reserved {
    fn new(memory: &Arc<Memory>, on_shortage: OnShortage) -> Self {
        let budget: Arc<dyn Budget> = Arc::clone(memory) as _;
        Self {
            account: Account::new(budget, 0, on_shortage),
            refused: None,
        }
    }

    /// Moves the reservation of the unpacked cells to `permit`.
    fn hand_over(mut self, plain: Vec<u8>, permit: &mut MemoryPermit) -> Bytes {
        permit.take_over(self.account.give(self.account.bytes()) as u64);
        plain.into()
    }
}

impl Room for Reserved {
    fn reserve(&mut self, bytes: usize) -> bool {
        match self.account.add(bytes) {
            Ok(()) => true,
            Err(error) => {
                self.refused = Some(error);
                false
            }
        }
    }

    fn release(&mut self, bytes: usize) {
        self.account.remove(bytes);
    }
}

fn failure(error: &UnpackError, refused: Option<Error>) -> Failure {
    match (error, refused) {
        (UnpackError::NoRoom(_), Some(refused)) => refused.into(),
        (UnpackError::TooLarge(_), _) => Failure::do_not_retry(format!(
            "{error} (server.max_message_bytes); send fewer cells in a call"
        )),
        _ => Failure::do_not_retry(error.to_string()),
    }
}
