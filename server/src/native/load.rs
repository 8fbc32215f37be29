//! Bulk load: PrepareBulkLoad, BulkLoadHFile and CleanupBulkLoad.
//!
//! 1. A client asks for a staging directory (PrepareBulkLoad).
//! 2. For each region it names HFiles, all of whose rows lie in that region (BulkLoadHFile). The
//!    engine copies them and makes them part of the region, all or none.
//! 3. The client has the staging directory removed (CleanupBulkLoad).
//!
//! Older clients call the same three as the endpoint `SecureBulkLoadService` ([`secure`]).
//!
//! `staging` decides which files may be read. They are never moved or changed, whatever `copy_file`
//! says. The load always gets a sequence id of its own, whatever `assign_seq_num` says.
//!
//! A file with rows outside the region is answered with `loaded` = false, as in HBase: the region
//! may have been split meanwhile, and BulkLoadHFilesTool then divides the file and tries again. All
//! other refusals are exceptions that name the problem.

use std::path::PathBuf;
use std::sync::Arc;

use basalt_engine::engine::{LoadFile, RegionInfo};
use basalt_idl::native::messages::bulk_load_h_file_request::FamilyPath;
use basalt_idl::native::messages::region_specifier::RegionSpecifierType;
use basalt_idl::native::messages::{
    BulkLoadHFileRequest, BulkLoadHFileResponse, CleanupBulkLoadRequest, CleanupBulkLoadResponse,
    NameBytesPair, PrepareBulkLoadRequest, PrepareBulkLoadResponse, RegionSpecifier,
    SecureBulkLoadHFilesRequest, SecureBulkLoadHFilesResponse, SecureBulkLoadServiceMethod,
};
use bytes::Bytes;

use super::reply::endpoint_answer;
use super::staging::Staging;
use super::state::Connection;
use super::{region, request, schema};
use crate::config::Config;
use crate::service::Failure;
use crate::service::admin::{cluster, regions};

/// Most files of one call.
const FILES_MAX: usize = 10_000;

/// Makes a staging directory.
pub(super) async fn prepare(
    connection: &Connection,
    call: PrepareBulkLoadRequest,
) -> Result<PrepareBulkLoadResponse, Failure> {
    let table = schema::table_name(&call.table_name)?;
    let admin = connection.admin();
    regions::check_loadable(&admin, &table)?;
    connection
        .server
        .on_pool(move |server| {
            let bulk_token = Staging::of(server.config())?.create(&table)?;
            Ok(PrepareBulkLoadResponse { bulk_token })
        })
        .await
}

/// Removes a staging directory.
pub(super) async fn clean_up(
    connection: &Connection,
    call: CleanupBulkLoadRequest,
) -> Result<CleanupBulkLoadResponse, Failure> {
    let admin = connection.admin();
    // Clients name the region whose files they have loaded.
    match &call.region {
        Some(specifier) => regions::may_load(&admin, &region::table(connection, specifier)?)?,
        None => cluster::load(&admin)?,
    }
    connection
        .server
        .on_pool(move |server| {
            Staging::of(server.config())?.remove(&call.bulk_token)?;
            Ok(CleanupBulkLoadResponse {})
        })
        .await
}

/// Loads files into a region.
pub(super) async fn load(
    connection: &Arc<Connection>,
    call: BulkLoadHFileRequest,
) -> Result<BulkLoadHFileResponse, Failure> {
    connection.server.admission().admit()?;
    let region = region::serving(connection, &call.region, None)?;
    let loaded = load_files(connection, region, call.region, call.family_path).await?;
    Ok(BulkLoadHFileResponse { loaded })
}

/// The calls of clients before HBase 2 with `SecureBulkLoadEndpoint` in their configuration: the same
/// three steps as an endpoint of a region. The delegation token is ignored.
pub(super) async fn secure(
    connection: &Arc<Connection>,
    region: Arc<RegionInfo>,
    method: SecureBulkLoadServiceMethod,
    request: Bytes,
) -> Result<NameBytesPair, Failure> {
    const PROTOS: &str = "SecureBulkLoadProtos$";
    let server = &connection.server;
    Ok(match method {
        SecureBulkLoadServiceMethod::PrepareBulkLoad => {
            let made = prepare(connection, request::decode(request)?).await?;
            endpoint_answer(&format!("{PROTOS}PrepareBulkLoadResponse"), &made)
        }
        SecureBulkLoadServiceMethod::CleanupBulkLoad => {
            let done = clean_up(connection, request::decode(request)?).await?;
            endpoint_answer(&format!("{PROTOS}CleanupBulkLoadResponse"), &done)
        }
        SecureBulkLoadServiceMethod::SecureBulkLoadHFiles => {
            server.admission().admit()?;
            let call: SecureBulkLoadHFilesRequest = request::decode(request)?;
            let specifier = RegionSpecifier {
                r#type: RegionSpecifierType::RegionName.into(),
                value: Bytes::from(region.name()),
            };
            let loaded = load_files(connection, region, specifier, call.family_path).await?;
            let done = SecureBulkLoadHFilesResponse { loaded };
            endpoint_answer(&format!("{PROTOS}SecureBulkLoadHFilesResponse"), &done)
        }
    })
}

/// Loads files into a region. False: some of their rows are outside it, and nothing was loaded.
async fn load_files(
    connection: &Arc<Connection>,
    region: Arc<RegionInfo>,
    specifier: RegionSpecifier,
    family_path: Vec<FamilyPath>,
) -> Result<bool, Failure> {
    let server = &connection.server;
    let families = family_path.iter().map(|offered| &offered.family[..]);
    regions::may_load_into(&connection.admin(), &region.table, families)?;
    if family_path.len() > FILES_MAX {
        return Err(Failure::do_not_retry(format!(
            "{} files in one call; the limit is {FILES_MAX}: load them in several calls",
            family_path.len()
        )));
    }
    let _permit = server.admission().bulk_load().await;
    let (admin, gone) = (connection.admin(), Arc::clone(&connection.sender.gone));
    server
        .on_pool(move |server| {
            let files = files(server.config(), &family_path)?;
            let loaded = regions::load(&admin, &region, region::name(&specifier), &files, &gone)?;
            if let Some(cells) = loaded {
                let (name, count) = (&region.encoded_name, files.len());
                tracing::info!("bulk load: {count} files with {cells} cells into region {name}");
            }
            Ok(loaded.is_some())
        })
        .await
}

/// The files of a call, if all of them may be read.
fn files(config: &Config, family_path: &[FamilyPath]) -> Result<Vec<LoadFile>, Failure> {
    let staging = Staging::of(config)?;
    let file = |family: &Bytes, path: PathBuf| LoadFile {
        family: family.to_vec(),
        path,
    };
    family_path
        .iter()
        .map(|offered| Ok(file(&offered.family, staging.readable(&offered.path)?)))
        .collect()
}
