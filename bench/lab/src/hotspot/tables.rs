//! The tables of a run: created, flushed and dropped; and the server's work meanwhile.

use basalt_client::FamilySchema;
use basalt_load::error::{During, Result};
use basalt_load::session::Session;
use basalt_load::tables::Tables;

use super::numbering::Counter;
use super::{FAMILY, Run};
use crate::designs::{Design, DesignName};
use crate::hotspot::design_report::ServerWork;

/// Minutes of a day: it stands for rows without end.
const MINUTES_PER_DAY: u64 = 1_440;

impl Run {
    /// A table split for the design.
    pub(super) async fn create_table(&self, name: &str, design: &Design) -> Result<()> {
        let regions = usize::try_from(self.arguments.regions).unwrap_or(usize::MAX);
        let endless = u64::from(self.arguments.rows_per_minute) * MINUTES_PER_DAY;
        let bounded = self.row_count.min(self.rows.len().unwrap_or(endless));
        let splits = design.split_points(regions, &self.rows.minutes(bounded))?;
        self.create(name, splits).await
    }

    /// The counter that numbers a design's rows, in a table of its own so that it is not among the figures.
    pub(super) async fn create_counter(&self, design: DesignName) -> Result<Option<Counter>> {
        let block = self.arguments.sequence_block;
        if !design.is_numbered_by_counter() || block == 0 {
            return Ok(None);
        }
        let name = self.counter_table();
        self.create(&name, Vec::new()).await?;
        let session = Session::on(&self.target, &name)?;
        Ok(Some(Counter { session, block }))
    }

    pub(super) fn counter_table(&self) -> String {
        format!("{}counter", self.arguments.table_prefix)
    }

    pub(super) fn tables(&self) -> Tables<'_> {
        Tables {
            target: &self.target,
            replace: self.arguments.replace_tables,
        }
    }

    async fn create(&self, name: &str, splits: Vec<Vec<u8>>) -> Result<()> {
        self.tables()
            .create(name, vec![FamilySchema::new(FAMILY)], splits)
            .await
    }

    pub(super) async fn drop_table(&self, name: &str) -> Result<()> {
        self.tables().drop(name).await
    }

    pub(super) async fn flush(&self, name: &str) -> Result<()> {
        self.tables().flush(name).await
    }

    /// The server's background work since its start; `None` where the server does not report it.
    pub(super) async fn server_work(&self) -> Result<Option<ServerWork>> {
        if !self.target.is_basalt {
            return Ok(None);
        }
        let status = self.target.admin.status().await;
        let status = status.during(|| "status of the server".to_owned())?;
        Ok(Some(ServerWork {
            flushes: status.flushes,
            compactions: status.compactions,
        }))
    }
}
