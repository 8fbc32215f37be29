//! Things that the answers of MasterService and AdminService list, by method: their memory is reserved before
//! the call begins ([`listing`]).
//!
//! A method that is missing here has an answer of a few fields. `Reply::message` checks that in debug
//! builds. A message that is malformed, or names no table, reserves nothing: its method says so.

use basalt_idl::native::messages as pb;
use basalt_idl::native::messages::{AdminServiceMethod, MasterServiceMethod};
use bytes::Bytes;

use super::peer::Method;
use super::reply::Reply;
use super::request::decode;
use super::schema;
use crate::server::Server;
use crate::service::Failure;
use crate::service::listing::{self, Listing};

/// Reserves the memory of the answer of a method of these two services.
pub(super) async fn reserve(
    server: &Server,
    method: Method,
    parameter: &Bytes,
    reply: &mut Reply,
) -> Result<(), Failure> {
    match method {
        Method::Master(method) => of_master(server, method, parameter, reply).await,
        Method::Admin(method) => of_admin(server, method, parameter, reply).await,
        Method::Client(_) | Method::ClientMeta(_) | Method::BootstrapNode(_) => Ok(()),
    }
}

async fn of_master(
    server: &Server,
    method: MasterServiceMethod,
    parameter: &Bytes,
    reply: &mut Reply,
) -> Result<(), Failure> {
    use MasterServiceMethod as Of;
    let listing = match method {
        Of::GetTableDescriptors => {
            let Ok(call) = decode::<pb::GetTableDescriptorsRequest>(parameter.clone()) else {
                return Ok(());
            };
            if !call.table_names.is_empty() {
                let mut bytes = 0;
                for name in &call.table_names {
                    let name = schema::table_name(name);
                    bytes += name.map_or(0, |name| listing::bytes(server, Listing::Table(&name)));
                }
                return listing::reserve_bytes(server, bytes, reply.permit(server.admission())).await;
            }
            Listing::Tables
        }
        Of::ListTableDescriptorsByState | Of::ListTableDescriptorsByNamespace => Listing::Tables,
        Of::GetTableNames | Of::ListTableNamesByState | Of::ListTableNamesByNamespace => Listing::Names,
        Of::GetSchemaAlterStatus => {
            let Ok(call) = decode::<pb::GetSchemaAlterStatusRequest>(parameter.clone()) else {
                return Ok(());
            };
            let Ok(table) = schema::table_name(&call.table_name) else {
                return Ok(());
            };
            return listing::reserve(
                server,
                Listing::RegionsOf(&table),
                reply.permit(server.admission()),
            )
            .await;
        }
        Of::GetClusterStatus | Of::Balance => Listing::Cluster,
        Of::GetNamespaceDescriptor | Of::ListNamespaceDescriptors | Of::ListNamespaces => Listing::Namespaces,
        Of::GetCompletedSnapshots | Of::IsSnapshotDone | Of::RestoreSnapshot => Listing::Snapshots,
        Of::IsProcedureDone => Listing::Copy(parameter.len()),
        _ => return Ok(()),
    };
    listing::reserve(server, listing, reply.permit(server.admission())).await
}

async fn of_admin(
    server: &Server,
    method: AdminServiceMethod,
    parameter: &Bytes,
    reply: &mut Reply,
) -> Result<(), Failure> {
    use AdminServiceMethod as Of;
    let table;
    let listing = match method {
        Of::GetOnlineRegion => Listing::Regions,
        Of::GetRegionLoad => {
            let Ok(call) = decode::<pb::GetRegionLoadRequest>(parameter.clone()) else {
                return Ok(());
            };
            table = call.table_name.and_then(|name| schema::table_name(&name).ok());
            table.as_ref().map_or(Listing::Regions, Listing::RegionsOf)
        }
        Of::GetLogEntries | Of::GetSlowLogResponses | Of::GetLargeLogResponses => Listing::SlowLog,
        _ => return Ok(()),
    };
    listing::reserve(server, listing, reply.permit(server.admission())).await
}
