//! Where the tables are: in this server's engine.

use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::TableName;

use super::Failure;
use crate::server::Server;

/// Where the tables of a server are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Backend<'s> {
    /// In this process.
    Local(&'s Arc<Engine>),
}

impl<'s> Backend<'s> {
    pub(crate) fn of(server: &'s Server) -> Self {
        Self::Local(server.engine())
    }

    /// The engine, for calls that only make sense where the tables are.
    #[expect(clippy::unnecessary_wraps, reason = "tables in another server have none")]
    pub(crate) fn engine(self) -> Result<&'s Arc<Engine>, Failure> {
        match self {
            Self::Local(engine) => Ok(engine),
        }
    }

    /// The region of a row, if it can be had without waiting.
    pub(crate) fn region_of(self, table: &TableName, row: &[u8]) -> Option<RegionInfo> {
        match self {
            Self::Local(engine) => engine.region_of(table, row).ok(),
        }
    }
}
