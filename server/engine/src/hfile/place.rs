//! Where a cursor stands in a data block.

use super::block::Check;
use crate::cell::Key;
use crate::codec::Cursor;
use crate::id::SeqId;

/// Where the parts of one cell are in a block's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) key_bytes: u32,
    pub(super) value_at: u32,
    pub(super) value_bytes: u32,
    pub(super) tags_at: u32,
    pub(super) tags_bytes: u32,
    /// Where the next cell starts.
    pub(super) next: u32,
    pub(super) seq: SeqId,
}

impl Position {
    /// Takes the value, which `input` is in front of.
    pub(super) fn take_value(&mut self, input: &mut Cursor<'_>, value_bytes: usize) -> Option<()> {
        self.value_at = offset(input.position()).ok()?;
        self.value_bytes = offset(value_bytes).ok()?;
        input.bytes(value_bytes)?;
        Some(())
    }
}

/// A cell of a block. A block whose keys omit shared parts does not have the whole key; then it is
/// here.
///
/// Belongs to one cursor, which uses it for one block after the other, so that the key's memory is
/// allocated once.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) position: Position,
    /// The flat key, for a place in a block of PREFIX, DIFF or FAST_DIFF; meaningless in other
    /// blocks.
    pub(super) key: Vec<u8>,
}

impl Place {
    /// The key stored in the place.
    /// REQUIRES: it was decoded from a block that has been checked.
    #[inline]
    pub(super) fn decoded_key(&self) -> Key<'_> {
        Key::trusted(&self.key)
    }
}

/// An offset in a block, or a length.
pub(super) fn offset(bytes: usize) -> Check<u32> {
    u32::try_from(bytes).map_err(|_| "data block of more than 4 GiB".to_owned())
}
