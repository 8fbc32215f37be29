//! Native calls that meet faults ([`crate::ephemeral::faults`]).
//!
//! A Multi does not fail as a whole: as in HBase, each of its regions does. A scanner whose region
//! is not served any more is closed, as HBase closes those of a closed region; the client opens
//! another one after its last row.

use std::sync::Arc;

use basalt_engine::schema::TableName;
use basalt_idl::native::Reply as _;
use basalt_idl::native::messages::{
    BulkLoadHFileRequest, ClientServiceMethod, CoprocessorServiceRequest, GetRequest, MultiRequest,
    MultiResponse, MutateRequest, RegionActionResult, RegionSpecifier, ScanRequest,
};
use bytes::Bytes;

use super::peer::Method;
use super::reply::{Reply, exception_pair};
use super::state::Connection;
use super::{region, request, scan};
use crate::ephemeral::faults::{Call, Faults, ScanPosition};
use crate::observe::metrics::Api;
use crate::service::Failure;
use crate::service::faults::{Consequence, carry_out};

/// Applies an armed fault to a call, if there is one. A message that cannot be decoded meets none:
/// the call itself reports the error.
pub(super) async fn meet(
    connection: &Arc<Connection>,
    faults: &Faults,
    method: Method,
    parameter: &Bytes,
) -> Option<Consequence> {
    let Method::Client(method) = method else {
        return None;
    };
    let described = describe(connection, method, parameter.clone()).ok()??;
    let scanner = described.scanner;
    let call = Call {
        api: Api::Native,
        method: method.name(),
        table: described.table,
        scan: described.scan,
    };
    let consequence = match carry_out(&connection.server, faults, call).await? {
        Consequence::RegionChanged(failure) => Consequence::Fails(failure),
        other => other,
    };
    if let (Consequence::Fails(failure), Some(id)) = (&consequence, scanner)
        && !failure.leaves_scanner()
    {
        scan::discard(connection, id);
    }
    Some(consequence)
}

/// Answers a call with a fault's failure.
pub(super) fn refuse(
    method: Method,
    parameter: Bytes,
    failure: Failure,
    reply: &mut Reply,
) -> Result<(), Failure> {
    if method != Method::Client(ClientServiceMethod::Multi) {
        return Err(failure);
    }
    let call: MultiRequest = request::decode(parameter)?;
    let refused = RegionActionResult {
        exception: Some(exception_pair(&failure)),
        ..RegionActionResult::default()
    };
    reply.message(&MultiResponse {
        region_action_result: vec![refused; call.region_action.len()],
        ..MultiResponse::default()
    });
    Ok(())
}

/// The parts of a call on which faults depend.
struct Described {
    table: TableName,
    /// The scanner that the call fetches from.
    scanner: Option<u64>,
    scan: Option<ScanPosition>,
}

impl Described {
    fn of(connection: &Connection, region: &RegionSpecifier) -> Result<Self, Failure> {
        Ok(Self {
            table: region::table(connection, region)?,
            scanner: None,
            scan: None,
        })
    }
}

/// Describes a call from its message; `None` for calls that meet no faults.
fn describe(
    connection: &Connection,
    method: ClientServiceMethod,
    parameter: Bytes,
) -> Result<Option<Described>, Failure> {
    let region = match method {
        ClientServiceMethod::Get => request::decode::<GetRequest>(parameter)?.region,
        ClientServiceMethod::Mutate => request::decode::<MutateRequest>(parameter)?.region,
        ClientServiceMethod::ExecService => request::decode::<CoprocessorServiceRequest>(parameter)?.region,
        ClientServiceMethod::BulkLoadHFile => request::decode::<BulkLoadHFileRequest>(parameter)?.region,
        ClientServiceMethod::Multi => {
            // A client sends a Multi for one table.
            let groups = request::decode::<MultiRequest>(parameter)?.region_action;
            let Some(first) = groups.into_iter().next() else {
                return Ok(None);
            };
            first.region
        }
        ClientServiceMethod::Scan => return of_scan(connection, &request::decode(parameter)?),
        _ => return Ok(None),
    };
    Described::of(connection, &region).map(Some)
}

fn of_scan(connection: &Connection, call: &ScanRequest) -> Result<Option<Described>, Failure> {
    if !scan::reads(call) {
        return Ok(None);
    }
    let Some(id) = call.scanner_id else {
        let region = call.region.as_ref();
        return region.map(|region| Described::of(connection, region)).transpose();
    };
    let position = connection
        .server
        .scan_position(scan::session_id(id)?, connection.owner());
    Ok(position.map(|(table, scan)| Described {
        table,
        scanner: Some(id),
        scan,
    }))
}
