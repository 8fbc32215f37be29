//! Carries out faults that a test has armed ([`crate::ephemeral::faults`]): the part common to all
//! protocols. `thrift/faults.rs` and `native/faults.rs` have the rest.

use std::sync::Arc;
use std::time::Duration;

use basalt_engine::Engine;
use basalt_engine::Error;
use basalt_engine::schema::{Escaped, TableName};
use tokio::time::{Instant, sleep_until};

use super::Failure;
use crate::cluster::Placement;
use crate::ephemeral::faults::{Call, Faults, Kind, ScanPosition};
use crate::security::Owner;
use crate::server::{Instance, Server};

/// Interval at which a delayed call checks whether the server stops.
const LOOK: Duration = Duration::from_millis(50);

/// The part of a fault that its call's adapter carries out.
#[derive(Debug)]
pub(crate) enum Consequence {
    /// The call fails, and is not run.
    Fails(Box<Failure>),
    /// The connection is closed; the call is not run.
    DropsConnection,
    /// The call is run, and the connection is closed instead of an answer.
    DropsReply,
    /// The region that the call's scan reads is another one from now on.
    RegionChanged(Box<Failure>),
}

impl Server {
    /// The faults that calls may meet; `None` unless a test owns the server and has armed some.
    pub(crate) fn armed_faults(&self) -> Option<&Faults> {
        let faults = &self.controls()?.faults;
        faults.are_armed().then_some(faults)
    }

    /// The position of a scan between two fetches: its table, and its row if it has reached one.
    pub(crate) fn scan_position(&self, id: i32, owner: Owner) -> Option<(TableName, Option<ScanPosition>)> {
        let (table, row) = self.sessions().position(id, owner)?;
        let position = row.and_then(|row| {
            let region = self.engine().region_of(&table, &row).ok()?;
            let engine = Arc::clone(self.engine());
            Some(ScanPosition { row, region, engine })
        });
        Some((table, position))
    }
}

/// Applies an armed fault to a call, if there is one: waits for a delay, splits or moves the
/// region. Returns the fault's remaining effect; `None`: the call goes on.
pub(crate) async fn carry_out(server: &Arc<Server>, faults: &Faults, call: Call) -> Option<Consequence> {
    match faults.take(&call)? {
        Kind::RegionTooBusy => Some(fails(too_busy(server, &call))),
        Kind::NotServingRegion => Some(fails(not_serving(server, &call))),
        Kind::Delay(delay) => {
            wait(server.instance(), delay).await;
            None
        }
        Kind::DropConnection => Some(Consequence::DropsConnection),
        Kind::DropReply => Some(Consequence::DropsReply),
        Kind::Split(row) => {
            change_region(server, call, move |server, scan| {
                split(server.engine(), &scan, row.as_deref())
            })
            .await
        }
        Kind::Move => change_region(server, call, |server, scan| move_region(server, &scan)).await,
    }
}

/// Waits for this time, or until the server stops.
async fn wait(instance: &Instance, delay: Duration) {
    let end = Instant::now() + delay;
    while instance.is_ready() && Instant::now() < end {
        sleep_until(end.min(Instant::now() + LOOK)).await;
    }
}

fn fails(failure: Failure) -> Consequence {
    Consequence::Fails(Box::new(failure))
}

async fn change_region(
    server: &Arc<Server>,
    call: Call,
    change: impl FnOnce(&Server, ScanPosition) -> Result<(), Failure> + Send + 'static,
) -> Option<Consequence> {
    let failure = not_serving(server, &call);
    let scan = call.scan?;
    Some(match server.on_pool(move |server| change(server, scan)).await {
        Ok(()) => Consequence::RegionChanged(Box::new(failure)),
        Err(failure) => fails(Failure::do_not_retry(format!(
            "the fault that a test asked for cannot happen: {}",
            failure.with_class()
        ))),
    })
}

/// Splits the region of a scan at `row`, or where [`ScanPosition::split_row`] says. The region may be
/// gone since the fault was found to match: another call has then changed it.
fn split(engine: &Engine, scan: &ScanPosition, row: Option<&[u8]>) -> Result<(), Failure> {
    let Some(row) = scan.split_row(row) else {
        return Ok(());
    };
    match engine.split_region(scan.region.id, Some(&row)) {
        Ok(_) | Err(Error::NoSuchRegion(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Moves the region of a scan to another virtual server, if there are several.
fn move_region(server: &Server, scan: &ScanPosition) -> Result<(), Failure> {
    let placement = server.placement();
    if placement.servers().len() > 1 {
        placement.move_region(server.engine(), &scan.region, None)?;
    }
    Ok(())
}

/// HBase's text for a full memstore, without the figures.
fn too_busy(server: &Server, call: &Call) -> Failure {
    Failure::busy(format!(
        "Over memstore limit, table={}, server={}: a fault that a test asked for",
        call.table,
        name(server.placement())
    ))
}

/// HBase's text for a region that is elsewhere.
fn not_serving(server: &Server, call: &Call) -> Failure {
    let region = match &call.scan {
        Some(scan) => Escaped(&scan.region.name()).to_string(),
        None => format!("A region of {}", call.table),
    };
    Failure::not_serving(format!(
        "{region} is not online on {}: a fault that a test asked for",
        name(server.placement())
    ))
}

fn name(placement: &Placement) -> String {
    placement.servers()[0].to_string()
}
