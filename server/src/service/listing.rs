//! Memory of answers that list what there is: tables, regions, namespaces, snapshots, quotas, slow calls.
//!
//! Such an answer is as large as the catalog and not as its call, and it exists several times while it
//! is made: copies of names and options, the protocol's messages, the encoded reply. [`reserve`]
//! reserves an upper bound from the memory for calls before any of that is built. The connection keeps
//! the reply's part until the client has received it, and drops a slow reader.
//!
//! Callers: handlers of Thrift and native RPC, pages and ZooKeeper's nodes, before they collect anything.

use basalt_engine::engine::CatalogSize;
use basalt_engine::schema::TableName;
use basalt_engine::seeded;

use super::Failure;
use crate::limits::admission::{Admission, Busy, MemoryPermit, Purpose};
use crate::server::Server;

/// Memory of an answer that is not reserved.
const FREE_BYTES: u64 = 16 << 10;

/// Copies of each text: in a neutral value, in the protocol's message, encoded, and once more while
/// the encoded answer grows.
const TEXT_COPIES: u64 = 5;
/// Memory of a table beside its texts.
const TABLE_BYTES: u64 = 1 << 10;
/// Memory of a family with HBase's dozen of default options, beside its texts.
const FAMILY_BYTES: u64 = 6 << 10;
/// Memory of an option beside its texts: a node of a map, a pair of buffers, their headers.
const OPTION_BYTES: u64 = 256;
/// Memory of a name beside its text.
const NAME_BYTES: u64 = 256;
/// Memory of a region with its figures, beside its texts.
const REGION_BYTES: u64 = 2 << 10;
/// Memory of a snapshot or of a limit of a quota. Their names are short.
const ENTRY_BYTES: u64 = 4 << 10;
/// Limits that an owner of a quota can have.
const LIMITS_OF_OWNER: u64 = 9;

/// The content of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Listing<'a> {
    /// Descriptors of all tables.
    Tables,
    /// The descriptor of a table.
    Table(&'a TableName),
    /// Names of all tables.
    Names,
    /// Namespaces with their properties.
    Namespaces,
    /// All regions.
    Regions,
    /// Regions of a table.
    RegionsOf(&'a TableName),
    /// The status of the cluster: its regions, and its tables by name.
    Cluster,
    /// Snapshots of tables.
    Snapshots,
    /// Quotas of all owners.
    Quotas,
    /// Records of the slow log.
    SlowLog,
    /// A copy of this many bytes of the call.
    Copy(usize),
}

/// Upper bound on the memory of an answer.
pub(crate) fn bytes(server: &Server, listing: Listing<'_>) -> u64 {
    let engine = server.engine();
    let all = || engine.catalog_size();
    match listing {
        Listing::Tables => tables(all()),
        Listing::Table(table) => tables(engine.table_size(table)),
        Listing::Names => names(all()),
        Listing::Namespaces => tables(engine.namespaces_size()),
        Listing::Regions => regions(all()),
        Listing::RegionsOf(table) => regions(engine.table_size(table)),
        Listing::Cluster => regions(all()) + 2 * names(all()),
        Listing::Snapshots => ENTRY_BYTES * engine.snapshots().len() as u64,
        Listing::Quotas => {
            let owners = server.admission().capacity().list_quotas().len() as u64;
            ENTRY_BYTES * LIMITS_OF_OWNER * owners
        }
        Listing::SlowLog => TEXT_COPIES * server.load().slow_log.bytes(),
        Listing::Copy(bytes) => 2 * bytes as u64,
    }
}

fn tables(size: CatalogSize) -> u64 {
    TABLE_BYTES * size.tables
        + FAMILY_BYTES * size.families
        + OPTION_BYTES * size.options
        + TEXT_COPIES * (size.name_bytes + size.option_bytes)
}

fn names(size: CatalogSize) -> u64 {
    NAME_BYTES * size.tables + TEXT_COPIES * size.name_bytes
}

fn regions(size: CatalogSize) -> u64 {
    // A region's name has its start row, too.
    REGION_BYTES * size.regions + 2 * TEXT_COPIES * size.region_bytes
}

/// Adds the memory of an answer to `permit`. Small answers need none.
pub(crate) async fn reserve(
    server: &Server,
    listing: Listing<'_>,
    permit: &mut MemoryPermit,
) -> Result<(), Failure> {
    reserve_bytes(server, bytes(server, listing), permit).await
}

/// Adds this much memory of an answer to `permit`: of one that has several listings.
pub(crate) async fn reserve_bytes(
    server: &Server,
    bytes: u64,
    permit: &mut MemoryPermit,
) -> Result<(), Failure> {
    if bytes <= FREE_BYTES || seeded::is_on("listings-not-reserved") {
        return Ok(());
    }
    let reserved = permit.add(bytes, Purpose::Serve).await;
    reserved.map_err(|busy| refused(server.admission(), busy))
}

fn refused(admission: &Admission, busy: Busy) -> Failure {
    admission.count(busy);
    busy.into()
}
