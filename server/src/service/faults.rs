//! Carrying out faults that a test has armed ([`crate::faults`]): the part common to all protocols, and
//! Thrift's calls.
//!
//! A region that is split or moved between two results of a scan makes a native client locate it
//! again. A Thrift client does not see it, as with HBase's gateway, whose own client does that: there
//! the scan goes on.

use std::sync::Arc;
use std::time::Duration;

use basalt_engine::schema::{Escaped, TableName};
use basalt_idl::schema::StructDescriptor;
use basalt_idl::wire::{Reader, WireError, WireType};
use tokio::time::{Instant, sleep_until};

use super::{Called, Caller, Failure, Server, method_of, slow_log};
use crate::faults::{Call, Faults, Kind, ScanPosition, is_data, is_fetch};
use crate::sessions::Owner;

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
        let faults = &self.controls.as_ref()?.faults;
        faults.are_armed().then_some(faults)
    }

    /// The position of a scan between two fetches: its table, and its row if it has reached one.
    pub(crate) fn scan_position(&self, id: i32, owner: Owner) -> Option<(TableName, Option<ScanPosition>)> {
        let (table, row) = self.sessions().position(id, owner)?;
        let position = row.and_then(|row| {
            let region = self.engine().region_of(&table, &row).ok()?;
            Some(ScanPosition { row, region })
        });
        Some((table, position))
    }
}

/// Lets a call meet a fault, if one is armed for it: waits for a delay, splits or moves the region.
/// Returns the part that is left; `None`: the call goes on.
pub(crate) async fn carry_out(server: &Arc<Server>, faults: &Faults, call: Call) -> Option<Consequence> {
    match faults.take(&call)? {
        Kind::RegionTooBusy => Some(fails(too_busy(server, &call))),
        Kind::NotServingRegion => Some(fails(not_serving(server, &call))),
        Kind::Delay(delay) => {
            wait(server, delay).await;
            None
        }
        Kind::DropConnection => Some(Consequence::DropsConnection),
        Kind::DropReply => Some(Consequence::DropsReply),
        Kind::Split(row) => change_region(server, call, move |server, scan| split(server, &scan, row)).await,
        Kind::Move => change_region(server, call, |server, scan| move_region(server, &scan)).await,
    }
}

/// Waits for this time, or until the server stops.
async fn wait(server: &Server, delay: Duration) {
    let end = Instant::now() + delay;
    while server.is_ready() && Instant::now() < end {
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

/// Splits the region of a scan at `row`, or behind the row that the scan has reached.
fn split(server: &Server, scan: &ScanPosition, row: Option<Vec<u8>>) -> Result<(), Failure> {
    let behind = [&scan.row[..], &[0]].concat();
    let row = match row {
        Some(row) => row,
        None if scan.region.contains(&behind) => behind,
        // The scan's row is the last one that the region can have.
        None => scan.row.clone(),
    };
    server.engine().split_region(scan.region.id, Some(&row))?;
    Ok(())
}

/// Moves the region of a scan to another virtual server, if there are several.
fn move_region(server: &Server, scan: &ScanPosition) -> Result<(), Failure> {
    if server.engine().servers().len() > 1 {
        server.engine().move_region(scan.region.id, None)?;
    }
    Ok(())
}

/// HBase's text for a full memstore, without the figures.
fn too_busy(server: &Server, call: &Call) -> Failure {
    Failure::busy(format!(
        "Over memstore limit, table={}, server={}: a fault that a test asked for",
        call.table,
        name(server)
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
        name(server)
    ))
}

fn name(server: &Server) -> String {
    let first = server.engine().servers().first();
    first.map(ToString::to_string).unwrap_or_default()
}

/// Lets a Thrift call meet a fault. `reader` is at its arguments. Arguments that cannot be read meet
/// none: the call itself reports the error.
pub(super) async fn meet<R: Reader>(
    server: &Arc<Server>,
    faults: &Faults,
    caller: &Caller,
    called: Called,
    reader: R,
) -> Option<Consequence> {
    let call = describe(server, caller, called, reader)?;
    match carry_out(server, faults, call).await? {
        Consequence::RegionChanged(_) => None,
        consequence => Some(consequence),
    }
}

fn describe<R: Reader>(server: &Server, caller: &Caller, called: Called, mut reader: R) -> Option<Call> {
    let (api, number) = called.number();
    let method = method_of(api, number).1;
    if !is_data(api, method.name) {
        return None;
    }
    let (table, scan) = if is_fetch(method.name) {
        let id = scanner_id(&mut reader).ok()??;
        server.scan_position(id, caller.owner())?
    } else {
        (table(&mut reader, method.args)?, None)
    };
    Some(Call {
        api,
        method: method.name,
        table,
        scan,
    })
}

fn table<R: Reader>(reader: &mut R, args: &StructDescriptor) -> Option<TableName> {
    TableName::parse(&slow_log::table_named(reader, args)?).ok()
}

/// The first argument of a call that fetches.
fn scanner_id<R: Reader>(reader: &mut R) -> Result<Option<i32>, WireError> {
    reader.struct_begin()?;
    while let Some(field) = reader.field_begin()? {
        if (field.id, field.wire_type) == (1, WireType::I32) {
            return Ok(Some(reader.i32()?));
        }
        reader.skip(field.wire_type)?;
    }
    Ok(None)
}
