//! Native calls, decoded and converted as the server does it.
//!
//! ```text
//! input = frames: u32 length | that many bytes; the first one is the connection header
//! ```
//!
//! 1. The header says which service is called, and how cells are packed.
//! 2. A request is taken apart; its cell block is unpacked to at most [`PLAIN_BYTES`].
//! 3. Its arguments are decoded and converted for the engine, within the memory that the server
//!    reserves for them before ([`arguments::memory_bytes`]) and [`SMALL_ARGUMENTS`].
//! 4. Its filters and conditions are decoded, within the memory for filters.
//! 5. Plain writes of a Multi or Mutate have the mutations and results of the decoded message.

use basalt_engine::Result;
use basalt_engine::filter::FilterSpec;
use basalt_idl::native::cells::Cells;
use basalt_idl::native::compress::Room;
use basalt_idl::native::frame::{Request, decode_connection_header};
use basalt_idl::native::messages::{
    self as pb, AdminServiceMethod as Admin, ClientServiceMethod as Client, MasterServiceMethod as Master,
    MutationProto,
};
use basalt_server::native::decode::arguments;
use basalt_server::native::decode::condition::Condition;
use basalt_server::native::decode::peer::{Method, Peer};
use basalt_server::native::decode::plain_writes::{MultiGroups, PlainMutate, PlainWrites};
use basalt_server::native::decode::request;
use bytes::Bytes;
use prost::Message;

use super::filters::regex_bytes;
use super::rpc_frames::frames;
use crate::memory;

/// Most plain bytes of a packed cell block.
const PLAIN_BYTES: usize = 64 << 10;
/// Arguments up to this many bytes in memory are not reserved by the server, and texts of refusals.
const SMALL_ARGUMENTS: usize = 16 << 10;
/// Memory of a filter for each byte of it.
const PER_FILTER_BYTE: usize = 32;

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let mut frames = frames(input);
    let header = frames.next().map(decode_connection_header);
    let Some(Ok(header)) = header else { return };
    let Ok(peer) = Peer::new(&header) else { return };
    for frame in frames {
        let Ok(request) = Request::decode(frame) else {
            return;
        };
        call(peer, request);
    }
}

/// Every reservation is granted: the target `cell_blocks` counts them.
struct Granted;

impl Room for Granted {
    fn reserve(&mut self, _: usize) -> bool {
        true
    }

    fn release(&mut self, _: usize) {}
}

fn call(peer: Peer, request: Request) {
    let Some(method) = Method::find(peer.service, request.header.method()) else {
        return;
    };
    assert_eq!(method.name(), request.header.method());
    let cells = match peer.packing {
        Some(packed) if !request.cells.is_empty() => {
            let Ok(plain) = packed.unpack(&request.cells, PLAIN_BYTES, &mut Granted) else {
                return;
            };
            plain.into()
        }
        _ => request.cells,
    };
    let parameter = request.parameter;
    let received = parameter.len() + cells.len();
    let reserved = arguments::memory_bytes(method, &parameter, &cells);
    let allowed = SMALL_ARGUMENTS + 2 * received + reserved;
    let converted = memory::within(received, allowed, || convert(method, &parameter, &cells));
    match method {
        Method::Client(Client::Multi) => compare_plain_writes(parameter.clone(), &cells),
        Method::Client(Client::Mutate) => compare_plain_mutate(&parameter, &cells),
        _ => {}
    }
    if converted.is_ok()
        && let Method::Client(method) = method
    {
        for filter in filters(method, parameter) {
            filter.decode();
        }
    }
}

/// Compares plain writes of a Multi with those of the decoded groups.
fn compare_plain_writes(parameter: Bytes, cells: &Bytes) {
    let Ok(groups) = request::decode::<MultiGroups>(parameter) else {
        return;
    };
    for group in &groups.region_action {
        let Some(writes) = PlainWrites::parse(group) else {
            continue;
        };
        let decoded: pb::RegionAction = request::decode(group.clone()).expect("it was read");
        let mutations: Option<Vec<_>> = decoded
            .action
            .iter()
            .map(|action| action.mutation.clone())
            .collect();
        let mutations = mutations.expect("plain writes only");
        assert_eq!(
            format!("{:?}", writes.mutations(cells)),
            format!("{:?}", request::rows(&mutations, cells))
        );
        let done = |action: &pb::Action| pb::ResultOrException {
            index: action.index,
            result: Some(pb::Result::default()),
            ..pb::ResultOrException::default()
        };
        let result = pb::RegionActionResult {
            result_or_exception: decoded.action.iter().map(done).collect(),
            ..pb::RegionActionResult::default()
        };
        assert_eq!(writes.done(), result.encode_to_vec());
    }
}

/// Compares the plain write of a Mutate with that of the decoded call.
fn compare_plain_mutate(parameter: &Bytes, cells: &Bytes) {
    let Some((region, write)) = PlainMutate::parse(parameter) else {
        return;
    };
    let decoded: pb::MutateRequest = request::decode(parameter.clone()).expect("it was read");
    assert_eq!(region, decoded.region);
    assert_eq!(write.row(), decoded.mutation.row());
    let rows = request::rows(std::slice::from_ref(&decoded.mutation), cells);
    assert_eq!(
        format!("{:?}", write.mutation(cells)),
        format!("{:?}", rows.map(|mut rows| rows.remove(0)))
    );
}

/// Decodes a call and converts all but its filters and conditions.
fn convert(method: Method, parameter: &Bytes, cells: &Bytes) -> Result<()> {
    let parameter = parameter.clone();
    match method {
        Method::Client(Client::Get) => read(&request::decode::<pb::GetRequest>(parameter)?.get),
        Method::Client(Client::Scan) => {
            let call: pb::ScanRequest = request::decode(parameter)?;
            call.scan
                .map_or(Ok(()), |scan| request::scan(&scan, None).map(drop))
        }
        Method::Client(Client::Mutate) => {
            if let Some((_, write)) = PlainMutate::parse(&parameter) {
                // The decoded call below has the same fault.
                let _ = write.mutation(cells);
            }
            let call: pb::MutateRequest = request::decode(parameter)?;
            write(&call.mutation, &mut Cells::new(cells))
        }
        Method::Client(Client::Multi) => {
            let groups: MultiGroups = request::decode(parameter.clone())?;
            for writes in groups.region_action.iter().filter_map(PlainWrites::parse) {
                // The groups before it may have cells of their own: a fault is none here.
                let _ = writes.mutations(cells);
            }
            drop(groups);
            multi(&request::decode(parameter)?, cells)
        }
        Method::Client(Client::ExecService) => {
            endpoint(request::decode::<pb::CoprocessorServiceRequest>(parameter)?.call)
        }
        Method::Client(_) | Method::Master(_) | Method::Admin(_) => decode_other(method, parameter),
        // They are answered without reading their messages.
        Method::ClientMeta(_) | Method::BootstrapNode(_) => Ok(()),
    }
}

fn read(get: &pb::Get) -> Result<()> {
    request::read_of(get, None).map(drop)
}

/// Converts a mutation; its cells are the next ones of the block.
fn write<'a>(mutation: &'a MutationProto, block: &mut Cells<'a>) -> Result<()> {
    request::row(mutation)?;
    if !request::is_update(mutation) {
        return request::write(mutation, block).map(drop);
    }
    request::update(mutation, block)?;
    request::ttl(mutation)?;
    request::time_range(mutation.time_range.as_deref())?;
    request::durability(mutation);
    request::returns_results(mutation);
    Ok(())
}

/// Converts the groups of a Multi: as an atomic group, and as a run of puts and deletes that are
/// applied together.
fn multi(call: &pb::MultiRequest, cells: &Bytes) -> Result<()> {
    let mut sent = Cells::new(cells);
    for group in &call.region_action {
        let begin = sent.offset();
        let mutations = group
            .action
            .iter()
            .filter_map(|action| action.mutation.as_deref());
        mutations
            .clone()
            .try_for_each(|mutation| request::skip_cells(mutation, &mut sent))?;
        let own = cells.slice(begin..sent.offset());
        let mut block = Cells::new(&own);
        mutations
            .clone()
            .try_for_each(|mutation| write(mutation, &mut block))?;
        let together: Vec<&MutationProto> = mutations.collect();
        if !together.iter().any(|mutation| request::is_update(mutation)) {
            assert!(request::rows(&together, &own)?.len() <= together.len());
        }
        for action in &group.action {
            action.get.as_ref().map_or(Ok(()), |get| read(get))?;
            let call = action.service_call.as_deref().cloned();
            call.map_or(Ok(()), endpoint)?;
        }
    }
    Ok(())
}

/// Decodes the request of an endpoint.
fn endpoint(call: pb::CoprocessorServiceCall) -> Result<()> {
    match call.service_name.as_str() {
        pb::AggregateServiceMethod::SERVICE => {
            let wanted: pb::AggregateRequest = request::decode(call.request)?;
            request::scan(&wanted.scan, None).map(drop)
        }
        pb::MultiRowMutationServiceMethod::SERVICE => {
            let rows: pb::MutateRowsRequest = request::decode(call.request)?;
            let mut block = Cells::new(b"");
            rows.mutation_request
                .iter()
                .try_for_each(|mutation| write(mutation, &mut block))
        }
        _ => Ok(()),
    }
}

/// A filter or condition of a call.
enum Judged {
    Filter(pb::Filter),
    Condition(pb::Condition),
}

impl Judged {
    fn decode(&self) {
        let bytes = match self {
            Self::Filter(filter) => filter.encode_to_vec(),
            Self::Condition(condition) => condition.encode_to_vec(),
        };
        let beside = PER_FILTER_BYTE * bytes.len() + regex_bytes(&bytes);
        match self {
            Self::Filter(filter) => decode_filter(filter, bytes.len(), beside),
            Self::Condition(condition) => {
                let read = || Condition::decode(condition);
                if let Ok(decoded) = memory::bounded(bytes.len(), beside, read) {
                    decoded.for_engine();
                }
            }
        }
    }
}

/// A filter that is accepted and may be too slow for a network thread is known before it is decoded.
fn decode_filter(filter: &pb::Filter, received: usize, beside: usize) {
    let decoded = memory::bounded(received, beside, || request::decode_filter(filter));
    if let Ok(decoded) = decoded
        && memory_of_regex(&decoded)
    {
        assert!(request::has_regex(filter), "a regular expression goes unnoticed");
    }
}

/// Whether the filter has a compiled regular expression.
fn memory_of_regex(filter: &FilterSpec) -> bool {
    filter.to_string().contains("regexstring:")
}

fn filters(method: Client, parameter: Bytes) -> Vec<Judged> {
    let mut all = Vec::new();
    match method {
        Client::Get => {
            let call = pb::GetRequest::decode(parameter).expect("it was decoded before");
            all.extend(call.get.filter.map(Judged::Filter));
        }
        Client::Scan => {
            let call = pb::ScanRequest::decode(parameter).expect("it was decoded before");
            let filter = call.scan.and_then(|scan| scan.filter);
            all.extend(filter.map(Judged::Filter));
        }
        Client::Mutate => {
            let call = pb::MutateRequest::decode(parameter).expect("it was decoded before");
            all.extend(call.condition.map(Judged::Condition));
        }
        Client::Multi => {
            let call = pb::MultiRequest::decode(parameter).expect("it was decoded before");
            all.extend(call.condition.map(Judged::Condition));
            for group in call.region_action {
                all.extend(group.condition.map(Judged::Condition));
                let gets = group.action.into_iter().filter_map(|action| action.get);
                all.extend(gets.filter_map(|get| get.filter.map(Judged::Filter)));
            }
        }
        _ => {}
    }
    all
}

/// Decodes the message of a call that is not converted here, if its method has one.
fn decode_other(method: Method, parameter: Bytes) -> Result<()> {
    macro_rules! decode {
        ($($pattern:pat => $message:ident,)*) => {
            match method {
                $($pattern => request::decode::<pb::$message>(parameter).map(drop),)*
                _ => Ok(()),
            }
        };
    }
    decode! {
        Method::Client(Client::BulkLoadHFile) => BulkLoadHFileRequest,
        Method::Client(Client::PrepareBulkLoad) => PrepareBulkLoadRequest,
        Method::Client(Client::CleanupBulkLoad) => CleanupBulkLoadRequest,
        Method::Client(Client::ExecRegionServerService) => CoprocessorServiceRequest,
        Method::Master(Master::GetTableNames) => GetTableNamesRequest,
        Method::Master(Master::GetTableDescriptors) => GetTableDescriptorsRequest,
        Method::Master(Master::GetTableState) => GetTableStateRequest,
        Method::Master(Master::CreateTable) => CreateTableRequest,
        Method::Master(Master::DeleteTable) => DeleteTableRequest,
        Method::Master(Master::TruncateTable) => TruncateTableRequest,
        Method::Master(Master::ModifyTable) => ModifyTableRequest,
        Method::Master(Master::AddColumn) => AddColumnRequest,
        Method::Master(Master::ModifyColumn) => ModifyColumnRequest,
        Method::Master(Master::DeleteColumn) => DeleteColumnRequest,
        Method::Master(Master::FlushTable) => FlushTableRequest,
        Method::Master(Master::CreateNamespace) => CreateNamespaceRequest,
        Method::Master(Master::ModifyNamespace) => ModifyNamespaceRequest,
        Method::Master(Master::ExecProcedure) => ExecProcedureRequest,
        Method::Master(Master::Snapshot) => SnapshotRequest,
        Method::Master(Master::RestoreSnapshot) => RestoreSnapshotRequest,
        Method::Master(Master::DeleteSnapshot) => DeleteSnapshotRequest,
        Method::Master(Master::SplitRegion) => SplitTableRegionRequest,
        Method::Master(Master::MergeTableRegions) => MergeTableRegionsRequest,
        Method::Master(Master::MoveRegion) => MoveRegionRequest,
        Method::Master(Master::SetSplitOrMergeEnabled) => SetSplitOrMergeEnabledRequest,
        Method::Master(Master::SetQuota) => SetQuotaRequest,
        Method::Master(Master::GetLogEntries) => LogRequest,
        Method::Admin(Admin::GetRegionInfo) => GetRegionInfoRequest,
        Method::Admin(Admin::GetRegionLoad) => GetRegionLoadRequest,
        Method::Admin(Admin::CompactRegion) => CompactRegionRequest,
        Method::Admin(Admin::ClearRegionBlockCache) => ClearRegionBlockCacheRequest,
        Method::Admin(Admin::GetLogEntries) => LogRequest,
        Method::Admin(Admin::GetSlowLogResponses) => SlowLogResponseRequest,
    }
}
