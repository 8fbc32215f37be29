//! Bulk load: PrepareBulkLoad, BulkLoadHFile and CleanupBulkLoad.
//!
//! 1. A client asks for a staging directory (PrepareBulkLoad).
//! 2. For each region it names HFiles, all of whose rows lie in that region (BulkLoadHFile). The
//!    engine copies them and makes them part of the region, all or none.
//! 3. The client has the staging directory removed (CleanupBulkLoad).
//!
//! `staging` decides which files may be read. They are never moved or changed, whatever `copy_file`
//! says. The load always gets a sequence id of its own, whatever `assign_seq_num` says.
//!
//! A file with rows outside the region is answered with `loaded` = false, as in HBase: the region
//! may have been split meanwhile, and BulkLoadHFilesTool then divides the file and tries again. All
//! other refusals are exceptions that name the problem.

use std::path::PathBuf;
use std::sync::Arc;

use basalt_engine::Error;
use basalt_engine::engine::LoadFile;
use basalt_engine::schema::TableState;
use basalt_idl::native::messages::{
    BulkLoadHFileRequest, BulkLoadHFileResponse, CleanupBulkLoadRequest, CleanupBulkLoadResponse,
    PrepareBulkLoadRequest, PrepareBulkLoadResponse,
};

use super::reply::Reply;
use super::staging::Staging;
use super::state::Connection;
use super::{region, schema};
use crate::server::Server;
use crate::service::Failure;

/// Most files of one call.
const FILES_MAX: usize = 10_000;

/// Makes a staging directory.
pub(super) async fn prepare(
    server: &Arc<Server>,
    call: PrepareBulkLoadRequest,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let table = schema::table_name(&call.table_name)?;
    let (_, state) = server.engine().describe_table(&table)?;
    if state != TableState::Enabled {
        let state = state.as_str();
        return Err(Error::TableNotEnabled { table, state }.into());
    }
    reply
        .fill_on_pool(server, move |server, reply| {
            let bulk_token = Staging::of(server.config())?.create(&table)?;
            reply.message(&PrepareBulkLoadResponse { bulk_token });
            Ok(())
        })
        .await
}

/// Removes a staging directory.
pub(super) async fn clean_up(
    server: &Arc<Server>,
    call: CleanupBulkLoadRequest,
    reply: &mut Reply,
) -> Result<(), Failure> {
    reply
        .fill_on_pool(server, move |server, reply| {
            Staging::of(server.config())?.remove(&call.bulk_token)?;
            reply.message(&CleanupBulkLoadResponse {});
            Ok(())
        })
        .await
}

/// Loads files into a region.
pub(super) async fn load(
    connection: &Arc<Connection>,
    call: BulkLoadHFileRequest,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let server = &connection.server;
    server.admission().admit()?;
    let region = region::serving(server, &call.region, None)?;
    if call.family_path.len() > FILES_MAX {
        return Err(Failure::do_not_retry(format!(
            "{} files in one call; the limit is {FILES_MAX}: load them in several calls",
            call.family_path.len()
        )));
    }
    let _permit = server
        .bulk_loads()
        .acquire()
        .await
        .map_err(|_| Error::ShuttingDown)?;
    let gone = connection.caller().gone();
    reply
        .fill_on_pool(server, move |server, reply| {
            let files = files(server, &call)?;
            let loaded = match server.engine().bulk_load(region.id, &files, &gone) {
                Ok(cells) => {
                    let (name, count) = (&region.encoded_name, files.len());
                    tracing::info!("bulk load: {count} files with {cells} cells into region {name}");
                    true
                }
                Err(Error::WrongRegion(what)) => {
                    tracing::info!("bulk load: nothing was loaded: {what}");
                    false
                }
                // The region may have been split or merged while the call waited.
                Err(error) => return Err(region::gone(error, &call.region)),
            };
            reply.message(&BulkLoadHFileResponse { loaded });
            Ok(())
        })
        .await
}

/// The files of a call, if all of them may be read.
fn files(server: &Server, call: &BulkLoadHFileRequest) -> Result<Vec<LoadFile>, Failure> {
    let staging = Staging::of(server.config())?;
    let file = |family: &bytes::Bytes, path: PathBuf| LoadFile {
        family: family.to_vec(),
        path,
    };
    call.family_path
        .iter()
        .map(|offered| Ok(file(&offered.family, staging.readable(&offered.path)?)))
        .collect()
}
