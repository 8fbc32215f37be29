//! The options of a table that each write asks for, parsed once for each version of the table.

use crate::options::Options;
use crate::schema::{CellLimit, Durability, TableDescriptor};

/// Options of a table that each write needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteOptions {
    /// READONLY.
    pub(crate) is_read_only: bool,
    /// DURABILITY.
    pub(crate) durability: Durability,
    /// `None`: the server's, like the two that follow.
    cell_limit: Option<CellLimit>,
    flush_bytes: Option<u64>,
    block_multiplier: Option<u64>,
}

impl WriteOptions {
    pub(super) fn of(table: &TableDescriptor) -> Self {
        Self {
            is_read_only: table.read_only(),
            durability: table.durability(),
            cell_limit: CellLimit::of_table(table),
            flush_bytes: table.memstore_flush_bytes(),
            block_multiplier: table.block_multiplier(),
        }
    }

    /// The largest cell that a write may have.
    pub(crate) fn cell_limit(&self, server: &Options) -> CellLimit {
        self.cell_limit
            .unwrap_or(CellLimit::of_server(server.cell_max_bytes))
    }

    /// The memstore size at which a region is flushed.
    pub(crate) fn flush_bytes(&self, server: &Options) -> u64 {
        self.flush_bytes.unwrap_or(server.memstore_flush_bytes)
    }

    /// The memstore size at which a region refuses writes.
    pub(crate) fn blocking_bytes(&self, server: &Options) -> u64 {
        let multiplier = self.block_multiplier.unwrap_or(server.memstore_block_multiplier);
        self.flush_bytes(server).saturating_mul(multiplier)
    }
}
