//! Charging of data calls to `capacity`: which rows, on which virtual servers, how many bytes.
//!
//! 1. Before a call touches data, one of the `charge_...` functions charges it. If nothing is
//!    limited, each only checks that.
//! 2. The pipeline waits for the returned time: a timer, no thread.
//! 3. A read that has its results charges their bytes ([`Server::charge_read`]).
//!
//! Bytes are those of cells in HBase's form (`KeyValueUtil.length`): rows, families, qualifiers and values,
//! and 20 for each cell. Calls on system tables are not charged, as in HBase. A check-and-mutate, an
//! increment and an append count as a read and a write (`QuotaUtil.getQuotaOperationType`).

use basalt_engine::cell::{Cell, CellBatch};
use basalt_engine::op::{ReadSpec, RowMutation};
use basalt_engine::schema::TableName;
use bytes::Bytes;
use smallvec::{SmallVec, smallvec};
use tokio::time::Instant;

use super::Failure;
use super::group::Group;
use super::sizes::{cell_bytes, mutation_bytes};
use crate::cluster::Place;
use crate::limits::capacity::{Charge, Cost};
use crate::security::Caller;
use crate::server::Server;
use crate::server::sessions::OpenScan;

/// A call that was charged; empty where nothing is limited.
#[derive(Debug)]
#[must_use]
pub(crate) struct Charged(Option<Box<Call>>);

#[derive(Debug)]
struct Call {
    table: TableName,
    charge: Charge,
    until: Option<Instant>,
}

impl Charged {
    /// A call that nothing limits.
    pub(super) const NOTHING: Self = Self(None);

    /// Until when the call is to be held back, if it is.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.0.as_ref().and_then(|call| call.until)
    }
}

impl Server {
    /// Charges rows that are to be written.
    pub(super) fn charge_writes(
        &self,
        caller: &Caller,
        table: &TableName,
        mutations: &[RowMutation<'_>],
    ) -> Result<Charged, Failure> {
        let written = mutations.iter().filter(|mutation| !mutation.writes.is_empty());
        let cost = |mutation: &RowMutation<'_>| Cost::write(mutation_bytes(mutation) as u64);
        self.charge(
            caller,
            table,
            written.map(|mutation| (mutation.row, cost(mutation))),
        )
    }

    /// Charges rows that are to be read and written together.
    pub(super) fn charge_group(&self, caller: &Caller, group: &Group<'_>) -> Result<Charged, Failure> {
        // The read of a step covers one condition.
        let others = group.conditions.iter().skip(group.steps.len());
        let read = others.map(|condition| (condition.row, Cost::READ));
        let written = group.steps.iter().map(|step| {
            let mut cost = Cost::write(step.bytes() as u64);
            cost.add(Cost::READ);
            (step.row(), cost)
        });
        self.charge(caller, &group.table, written.chain(read))
    }

    /// Charges rows that are to be read.
    pub(super) fn charge_gets(
        &self,
        caller: &Caller,
        table: &TableName,
        wanted: &[(Bytes, ReadSpec)],
    ) -> Result<Charged, Failure> {
        self.charge(
            caller,
            table,
            wanted.iter().map(|(row, _)| (&row[..], Cost::READ)),
        )
    }

    /// Charges a fetch: one read of the server that has the region with which it begins.
    pub(super) fn charge_fetch(&self, caller: &Caller, scan: &OpenScan) -> Result<Charged, Failure> {
        let capacity = self.admission().capacity();
        let table = &scan.pending.table;
        if !capacity.is_on() || table.is_system() {
            return Ok(Charged(None));
        }
        let mut charge = Charge::default();
        let place = capacity.rehearsal().and_then(|_| self.place_of_fetch(scan));
        charge.add(place.and_then(charged_server), Cost::READ);
        self.apply_charge(caller, table, charge)
    }

    /// The server of the region that a fetch begins with; `None` where there is none, in which case
    /// the fetch itself will fail.
    fn place_of_fetch(&self, open: &OpenScan) -> Option<Place> {
        if let Some(scanner) = &open.scanner {
            let region = scanner.next_region()?;
            return Some(self.placement().place(region.id));
        }
        let (table, scan) = (&open.pending.table, &open.pending.scan);
        if scan.reversed && scan.start_row.is_empty() {
            let last = self.engine().regions(table).ok()?.pop()?;
            return Some(self.placement().place(last.id));
        }
        self.place_of(table, &scan.start_row).ok()
    }

    fn place_of(&self, table: &TableName, row: &[u8]) -> basalt_engine::Result<Place> {
        let (region, _) = self.engine().locate(table, row)?;
        Ok(self.placement().place(region.id))
    }

    /// Charges rows with these costs. Evaluates none of them if nothing is limited.
    fn charge<'r>(
        &self,
        caller: &Caller,
        table: &TableName,
        costs: impl Iterator<Item = (&'r [u8], Cost)>,
    ) -> Result<Charged, Failure> {
        let capacity = self.admission().capacity();
        if !capacity.is_on() || table.is_system() {
            return Ok(Charged(None));
        }
        let is_rehearsal = capacity.rehearsal().is_some();
        let mut charge = Charge::default();
        for (row, cost) in costs {
            let mut server = None;
            if is_rehearsal {
                // If the table does not exist, the call itself will fail.
                let Ok(place) = self.place_of(table, row) else {
                    return Ok(Charged(None));
                };
                server = charged_server(place);
            }
            charge.add(server, cost);
        }
        self.apply_charge(caller, table, charge)
    }

    fn apply_charge(
        &self,
        caller: &Caller,
        table: &TableName,
        mut charge: Charge,
    ) -> Result<Charged, Failure> {
        let capacity = self.admission().capacity();
        let until = capacity.charge(caller.user_name(), table, &mut charge)?;
        Ok(Charged(Some(Box::new(Call {
            table: table.clone(),
            charge,
            until,
        }))))
    }

    /// Charges a call with the bytes that it has read.
    pub(crate) fn charge_read(&self, charged: &Charged, batch: &CellBatch) {
        let Some(call) = &charged.0 else { return };
        let capacity = self.admission().capacity();
        let is_rehearsal = capacity.rehearsal().is_some();
        let mut by_server: SmallVec<[(u16, u64); 4]> = smallvec![];
        let mut total = 0;
        for row in batch.rows() {
            let bytes = |cell: Cell<'_>| {
                let key = cell.key;
                cell_bytes(key.row(), key.family(), key.qualifier(), cell.value) as u64
            };
            let bytes: u64 = row.cells().map(bytes).sum();
            total += bytes;
            // The table may have been dropped since: then there is no server to charge.
            if is_rehearsal && let Ok(place) = self.place_of(&call.table, row.key()) {
                match by_server.iter_mut().find(|(server, _)| *server == place.server) {
                    Some((_, sum)) => *sum += bytes,
                    None => by_server.push((place.server, bytes)),
                }
            }
        }
        capacity.charge_read(&call.charge, &by_server, total);
    }
}

/// The virtual server that is charged for a row; `None` where the region is not assigned.
fn charged_server(place: Place) -> Option<u16> {
    (!place.is_unassigned).then_some(place.server)
}
