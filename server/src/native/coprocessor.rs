//! Calls of coprocessor endpoints: ExecService, and actions of Multi.
//!
//! | service | methods | module |
//! | --- | --- | --- |
//! | `AggregateService` | GetMax, GetMin, GetSum, GetRowNum, GetAvg, GetStd, GetMedian | `aggregate` |
//! | `MultiRowMutationService` | MutateRows | `multi_row` |
//! | `SecureBulkLoadService` | PrepareBulkLoad, SecureBulkLoadHFiles, CleanupBulkLoad | `load` |
//! | `AccessControlService` | Grant, Revoke, GetUserPermissions, CheckPermissions, HasPermission | `rights` |
//! | `AuthenticationService` | WhoAmI, GetAuthenticationToken | `tokens` |
//!
//! The last two exist where users must log in.
//!
//! A service is known by its simple name, as HBase registers those of its own package. Endpoints of
//! the region server and of the master do not exist here: each such call is refused.

use std::sync::Arc;

use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::Escaped;
use basalt_idl::native::Reply as _;
use basalt_idl::native::messages::{
    AccessControlServiceMethod, AggregateServiceMethod, AuthenticationServiceMethod, CoprocessorServiceCall,
    CoprocessorServiceRequest, CoprocessorServiceResponse, MultiRowMutationServiceMethod, NameBytesPair,
    RegionSpecifier, SecureBulkLoadServiceMethod, region_specifier::RegionSpecifierType,
};
use bytes::Bytes;

use super::reply::{Reply, endpoint_answer};
use super::state::Connection;
use super::{aggregate, arguments, load, multi_row, region, request, rights, tokens};
use crate::security::Security;
use crate::service::admin::cluster;
use crate::service::{Call, Failure};

/// The endpoints of all regions in HBase's list of loaded ones: the names of their classes, sorted.
pub(super) fn loaded(security: &Security) -> impl Iterator<Item = &'static str> {
    let with_users = security.authenticates();
    let all = [
        ("AccessController", with_users),
        ("AggregateImplementation", true),
        ("MultiRowMutationEndpoint", true),
        ("TokenProvider", with_users),
    ];
    all.into_iter()
        .filter(|(_, is_loaded)| *is_loaded)
        .map(|(name, _)| name)
}

/// Answers a call of an endpoint of a region.
pub(super) async fn on_region(
    connection: &Arc<Connection>,
    running: &mut Call<'_>,
    call: CoprocessorServiceRequest,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let region = region::serving(connection, &call.region, None)?;
    let name = region.name();
    let value = answer(connection, running, region, call.call).await?;
    reply.message(&CoprocessorServiceResponse {
        region: RegionSpecifier {
            r#type: RegionSpecifierType::RegionName.into(),
            value: Bytes::from(name),
        },
        value,
    });
    Ok(())
}

/// Answers a call of an endpoint that is an action of a Multi.
pub(super) async fn in_batch(
    connection: &Arc<Connection>,
    running: &mut Call<'_>,
    region: &Arc<RegionInfo>,
    call: CoprocessorServiceCall,
) -> Result<NameBytesPair, Failure> {
    running.arguments_bytes = arguments::endpoint_bytes(&call.request);
    // Boxed: few batches have such actions.
    Box::pin(answer(connection, running, region.clone(), call)).await
}

async fn answer(
    connection: &Arc<Connection>,
    running: &mut Call<'_>,
    region: Arc<RegionInfo>,
    call: CoprocessorServiceCall,
) -> Result<NameBytesPair, Failure> {
    cluster::exec(&connection.admin(), &region.table)?;
    let with_users = connection.server.security().authenticates();
    match call.service_name.as_str() {
        AggregateServiceMethod::SERVICE => {
            let method =
                AggregateServiceMethod::from_name(&call.method_name).ok_or_else(|| unknown_method(&call))?;
            let wanted = request::decode(call.request)?;
            let totals = aggregate::run(connection, running, &region, method, wanted).await?;
            Ok(endpoint_answer("AggregateProtos$AggregateResponse", &totals))
        }
        MultiRowMutationServiceMethod::SERVICE => {
            MultiRowMutationServiceMethod::from_name(&call.method_name)
                .ok_or_else(|| unknown_method(&call))?;
            let done =
                multi_row::mutate(connection, running, &region, request::decode(call.request)?).await?;
            Ok(endpoint_answer(
                "MultiRowMutationProtos$MutateRowsResponse",
                &done,
            ))
        }
        SecureBulkLoadServiceMethod::SERVICE => {
            let method = SecureBulkLoadServiceMethod::from_name(&call.method_name)
                .ok_or_else(|| unknown_method(&call))?;
            load::secure(connection, region, method, call.request).await
        }
        AccessControlServiceMethod::SERVICE if with_users => {
            let method = AccessControlServiceMethod::from_name(&call.method_name)
                .ok_or_else(|| unknown_method(&call))?;
            rights::endpoint(connection, &region.table, method, call.request).await
        }
        AuthenticationServiceMethod::SERVICE if with_users => {
            let method = AuthenticationServiceMethod::from_name(&call.method_name)
                .ok_or_else(|| unknown_method(&call))?;
            tokens::endpoint(connection, method, call.request).await
        }
        unknown => Err(Failure::unknown_protocol(format!(
            "No registered coprocessor service found for {unknown} in region {}",
            Escaped(&region.name())
        ))),
    }
}

fn unknown_method(call: &CoprocessorServiceCall) -> Failure {
    Failure::unknown_protocol(format!(
        "Unknown method {} called on service hbase.pb.{}",
        call.method_name, call.service_name
    ))
}

/// Refuses a call of an endpoint of the region server.
pub(super) fn on_region_server(
    connection: &Connection,
    call: &CoprocessorServiceRequest,
) -> Result<(), Failure> {
    cluster::operate(&connection.admin(), |_| {
        Err(Failure::unknown_protocol(format!(
            "No registered coprocessor executorService found for {}",
            call.call.service_name
        )))
    })
}

/// Refuses a call of an endpoint of the master.
pub(super) fn on_master(call: &CoprocessorServiceRequest) -> Failure {
    Failure::unknown_protocol(format!(
        "No registered Master Coprocessor Endpoint found for {}. Has it been enabled?",
        call.call.service_name
    ))
}
