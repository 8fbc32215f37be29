//! Faults on demand: a test arms faults for the next calls of a data method, to see whether client
//! code survives it. Only ephemeral servers have this ([`crate::ephemeral::Controls`]).
//!
//! 1. A test arms a list of [`Fault`]s, which replaces the present one. Each names a method,
//!    optionally a table, and a number of calls.
//! 2. A protocol adapter describes each data call as a [`Call`] before it runs it, while something
//!    is armed. [`Faults::take`] counts the call against the first fault that matches and returns
//!    its effect; a call meets at most one fault.
//! 3. The adapter carries that out: `service/faults.rs` for all protocols, `thrift/faults.rs` for Thrift,
//!    `native/faults.rs` for native calls.
//!
//! A fault whose calls are used up is no longer armed. Each one that a call meets is logged and
//! counted by its kind, and the text of its exception says that a test caused it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use basalt_engine::Engine;
use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::TableName;
use metrics::{Counter, counter};
use parking_lot::Mutex;

use crate::observe::metrics::{Api, names};

mod given;
mod methods;

pub(crate) use given::{Given, check_all, from_json, to_json};
pub(crate) use methods::{Methods, is_data, is_fetch};

/// The effect of a fault on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It fails with RegionTooBusyException.
    RegionTooBusy,
    /// It fails with NotServingRegionException.
    NotServingRegion,
    /// It begins after this delay.
    Delay(Duration),
    /// The call's connection is closed; the call is not run.
    DropConnection,
    /// It is run, and its connection is closed instead of an answer.
    DropReply,
    /// The region that its scan reads is split at this row, or else behind the scan's last row.
    Split(Option<Vec<u8>>),
    /// The region that its scan reads is moved.
    Move,
}

impl Kind {
    /// The names of all kinds, in the order of the enum.
    pub(crate) const NAMES: [&str; 7] = [
        "region_too_busy",
        "not_serving_region",
        "delay",
        "drop_connection",
        "drop_reply",
        "split",
        "move",
    ];

    pub(crate) fn name(&self) -> &'static str {
        let index = match self {
            Self::RegionTooBusy => 0,
            Self::NotServingRegion => 1,
            Self::Delay(_) => 2,
            Self::DropConnection => 3,
            Self::DropReply => 4,
            Self::Split(_) => 5,
            Self::Move => 6,
        };
        Self::NAMES[index]
    }

    /// Whether it happens between two results of a scan.
    fn needs_scan(&self) -> bool {
        matches!(self, Self::Split(_) | Self::Move)
    }
}

/// A fault that the next calls of a method meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) methods: Methods,
    /// The table of the calls; `None`: any user table.
    pub(crate) table: Option<TableName>,
    /// Calls that it still applies to.
    pub(crate) calls: u32,
    pub(crate) kind: Kind,
}

/// A data call, as far as faults depend on it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) api: Api,
    pub(crate) method: &'static str,
    pub(crate) table: TableName,
    /// Set if the call fetches from a scan that has reached a row.
    pub(crate) scan: Option<ScanPosition>,
}

/// The position of a scan between two fetches.
#[derive(Clone, Debug)]
pub(crate) struct ScanPosition {
    /// The row that it has reached.
    pub(crate) row: Vec<u8>,
    /// The region that has this row now.
    pub(crate) region: RegionInfo,
    /// Decides where the region can be split.
    pub(crate) engine: Arc<Engine>,
}

impl ScanPosition {
    /// The row at which a fault splits the region: `given`, or else right behind the row that the scan
    /// has reached, or at that row if the region ends there. `None` if the region cannot be split there,
    /// for example because it begins with that row.
    pub(crate) fn split_row(&self, given: Option<&[u8]>) -> Option<Vec<u8>> {
        let at = |row: &[u8]| self.engine.split_row(self.region.id, row);
        match given {
            Some(row) => at(row),
            None => at(&[&self.row[..], &[0]].concat()).or_else(|| at(&self.row)),
        }
    }
}

impl Fault {
    fn matches(&self, call: &Call) -> bool {
        let is_table = match &self.table {
            Some(table) => *table == call.table,
            None => !call.table.is_system(),
        };
        is_table && self.methods.contain(call.api, call.method) && self.can_happen(call)
    }

    /// Whether the call's scan, if this fault needs one, is where it can happen.
    fn can_happen(&self, call: &Call) -> bool {
        match (&self.kind, &call.scan) {
            (Kind::Split(row), Some(scan)) => scan.split_row(row.as_deref()).is_some(),
            (kind, scan) => scan.is_some() || !kind.needs_scan(),
        }
    }
}

/// The faults that calls are to meet.
#[derive(Debug)]
pub(crate) struct Faults {
    /// Whether the list has an element, so that calls need not lock it.
    are_armed: AtomicBool,
    list: Mutex<Vec<Fault>>,
}

/// The count of calls that met a fault of this kind.
fn injected(kind: &'static str) -> Counter {
    counter!(names::FAULTS_INJECTED, "kind" => kind)
}

impl Faults {
    /// No faults. The counts of all kinds begin at zero, so that `rate()` sees the first fault.
    pub(crate) fn new() -> Self {
        for kind in Kind::NAMES {
            injected(kind).increment(0);
        }
        Self {
            are_armed: AtomicBool::default(),
            list: Mutex::default(),
        }
    }

    pub(crate) fn are_armed(&self) -> bool {
        self.are_armed.load(Ordering::Acquire)
    }

    /// Arms these faults instead of the present ones.
    pub(crate) fn set(&self, faults: Vec<Fault>) {
        let mut list = self.list.lock();
        *list = faults;
        self.are_armed.store(!list.is_empty(), Ordering::Release);
    }

    /// The faults that are armed, each with the calls that are left.
    pub(crate) fn list(&self) -> Vec<Fault> {
        self.list.lock().clone()
    }

    /// Counts a call against the first fault that matches it. Returns the fault's effect on the
    /// call.
    pub(crate) fn take(&self, call: &Call) -> Option<Kind> {
        let mut list = self.list.lock();
        let index = list.iter().position(|fault| fault.matches(call))?;
        let fault = &mut list[index];
        fault.calls -= 1;
        let (kind, left) = (fault.kind.clone(), fault.calls);
        if left == 0 {
            list.remove(index);
            self.are_armed.store(!list.is_empty(), Ordering::Release);
        }
        drop(list);
        injected(kind.name()).increment(1);
        let (method, table) = (call.method, &call.table);
        tracing::warn!(fault = kind.name(), method, %table, left, "a fault that a test asked for is injected");
        Some(kind)
    }
}

#[cfg(test)]
mod tests;
