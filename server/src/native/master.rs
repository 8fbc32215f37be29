//! MasterService: schema changes, snapshots, and the state of the cluster.
//!
//! Every change is complete when its call returns, so the procedure id in its response is that of a
//! finished operation. Queries about features that Basalt lacks are answered as by an idle, healthy
//! cluster; changes to such features are refused with the name of the method.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use basalt_engine::schema::{TableName, TableState};
use basalt_idl::native::messages as pb;
use basalt_idl::native::messages::MasterServiceMethod as Method;
use bytes::Bytes;

use super::reply::Reply;
use super::request::decode;
use super::{coprocessor, places, quota, region, schema, status};
use crate::server::{MasterState, Server};
use crate::service::Failure;
use crate::service::quotas;

/// Time limit that clients apply when they wait for an operation, ms. HBase's own value.
const EXPECTED_TIMEOUT_MS: i64 = 300_000;

/// Signature of the procedure by which clients before 2.6 flush a table.
const FLUSH_SIGNATURE: &str = "flush-table-proc";

/// Runs `change` unless a call with this nonce has run it; returns the procedure id.
fn change(
    master: &MasterState,
    nonce: (Option<u64>, Option<u64>),
    change: impl FnOnce() -> Result<(), Failure>,
) -> Result<Option<u64>, Failure> {
    master.change(nonce, change)
}

/// Answers a call of MasterService.
pub(super) async fn call(
    server: &Arc<Server>,
    method: Method,
    parameter: Bytes,
    reply: &mut Reply,
) -> Result<(), Failure> {
    match method {
        // Java's clients send it before each other call.
        Method::IsMasterRunning => {
            reply.message(&pb::IsMasterRunningResponse {
                is_master_running: true,
            });
            return Ok(());
        }
        Method::GetProcedureResult => return procedure_result(server, parameter, reply),
        _ => {}
    }
    reply
        .fill_on_pool(server, move |server, reply| {
            tables(server, method, parameter, reply)
        })
        .await
}

/// The state of a procedure, which clients poll: a change may keep the pool's threads busy meanwhile.
fn procedure_result(server: &Server, parameter: Bytes, reply: &mut Reply) -> Result<(), Failure> {
    let call: pb::GetProcedureResultRequest = decode(parameter)?;
    let state = if server.master().procedures.is_finished(call.proc_id) {
        pb::get_procedure_result_response::State::Finished
    } else {
        pb::get_procedure_result_response::State::NotFound
    };
    reply.message(&pb::GetProcedureResultResponse {
        state: state.into(),
        ..pb::GetProcedureResultResponse::default()
    });
    Ok(())
}

/// Answers calls about tables and forwards all others to [`namespaces`].
fn tables(server: &Server, method: Method, parameter: Bytes, reply: &mut Reply) -> Result<(), Failure> {
    let (master, engine) = (server.master(), server.engine());
    match method {
        Method::GetTableNames => {
            let call: pb::GetTableNamesRequest = decode(parameter)?;
            let with_system = call.include_sys_tables == Some(true);
            let found = schema::matching(
                server,
                call.regex.as_deref(),
                with_system,
                call.namespace.as_deref(),
            )?;
            reply.message(&pb::GetTableNamesResponse {
                table_names: found
                    .iter()
                    .map(|table| schema::to_table_name(&table.name))
                    .collect(),
            });
        }
        Method::GetTableDescriptors => descriptors(server, &decode(parameter)?, reply)?,
        Method::ListTableDescriptorsByState => {
            let call: pb::ListTableDescriptorsByStateRequest = decode(parameter)?;
            reply.message(&pb::ListTableDescriptorsByStateResponse {
                table_schema: in_state(server, call.is_enabled)
                    .iter()
                    .map(|table| schema::to_table(table))
                    .collect(),
            });
        }
        Method::ListTableNamesByState => {
            let call: pb::ListTableNamesByStateRequest = decode(parameter)?;
            let names = in_state(server, call.is_enabled);
            reply.message(&pb::ListTableNamesByStateResponse {
                table_names: names
                    .iter()
                    .map(|table| schema::to_table_name(&table.name))
                    .collect(),
            });
        }
        Method::GetTableState => {
            let call: pb::GetTableStateRequest = decode(parameter)?;
            let (_, state) = engine.describe_table(&schema::table_name(&call.table_name)?)?;
            reply.message(&pb::GetTableStateResponse {
                table_state: schema::to_state(state),
            });
        }
        Method::CreateTable => {
            let call: pb::CreateTableRequest = decode(parameter)?;
            let splits = call.split_keys.iter().map(|key| key.to_vec()).collect();
            let table = crate::service::schema::for_creation(schema::table(&call.table_schema)?);
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                Ok(engine.create_table(table, splits)?)
            })?;
            reply.message(&pb::CreateTableResponse { proc_id });
        }
        Method::DeleteTable => {
            let call: pb::DeleteTableRequest = decode(parameter)?;
            let table = schema::table_name(&call.table_name)?;
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                engine.drop_table(&table)?;
                quotas::remove_for_table(server, table)
            })?;
            reply.message(&pb::DeleteTableResponse { proc_id });
        }
        Method::EnableTable => {
            let call: pb::EnableTableRequest = decode(parameter)?;
            let table = schema::table_name(&call.table_name)?;
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                Ok(engine.enable_table(&table)?)
            })?;
            reply.message(&pb::EnableTableResponse { proc_id });
        }
        Method::DisableTable => {
            let call: pb::DisableTableRequest = decode(parameter)?;
            let table = schema::table_name(&call.table_name)?;
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                Ok(engine.disable_table(&table)?)
            })?;
            reply.message(&pb::DisableTableResponse { proc_id });
        }
        Method::TruncateTable => {
            let call: pb::TruncateTableRequest = decode(parameter)?;
            let (table, keep) = (
                schema::table_name(&call.table_name)?,
                call.preserve_splits == Some(true),
            );
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                Ok(engine.truncate_table(&table, keep)?)
            })?;
            reply.message(&pb::TruncateTableResponse { proc_id });
        }
        Method::ModifyTable => {
            let call: pb::ModifyTableRequest = decode(parameter)?;
            let mut table = schema::table(&call.table_schema)?;
            table.name = schema::table_name(&call.table_name)?;
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                Ok(engine.alter_table(table)?)
            })?;
            reply.message(&pb::ModifyTableResponse { proc_id });
        }
        Method::AddColumn => {
            let call: pb::AddColumnRequest = decode(parameter)?;
            let (table, family) = (
                schema::table_name(&call.table_name)?,
                schema::family(&call.column_families)?,
            );
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                Ok(engine.add_family(&table, family)?)
            })?;
            reply.message(&pb::AddColumnResponse { proc_id });
        }
        Method::ModifyColumn => {
            let call: pb::ModifyColumnRequest = decode(parameter)?;
            let (table, family) = (
                schema::table_name(&call.table_name)?,
                schema::family(&call.column_families)?,
            );
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                Ok(engine.alter_family(&table, family)?)
            })?;
            reply.message(&pb::ModifyColumnResponse { proc_id });
        }
        Method::DeleteColumn => {
            let call: pb::DeleteColumnRequest = decode(parameter)?;
            let table = schema::table_name(&call.table_name)?;
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                Ok(engine.drop_family(&table, &call.column_name)?)
            })?;
            reply.message(&pb::DeleteColumnResponse { proc_id });
        }
        Method::GetSchemaAlterStatus => {
            let call: pb::GetSchemaAlterStatusRequest = decode(parameter)?;
            let regions = engine.regions(&schema::table_name(&call.table_name)?)?.len();
            reply.message(&pb::GetSchemaAlterStatusResponse {
                yet_to_update_regions: Some(0),
                total_regions: Some(regions as u32),
            });
        }
        Method::FlushTable => {
            let call: pb::FlushTableRequest = decode(parameter)?;
            let table = schema::table_name(&call.table_name)?;
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                Ok(engine.flush(&table)?)
            })?;
            reply.message(&pb::FlushTableResponse { proc_id });
        }
        _ => return namespaces(server, method, parameter, reply),
    }
    Ok(())
}

fn descriptors(
    server: &Server,
    call: &pb::GetTableDescriptorsRequest,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let mut table_schema = Vec::new();
    if call.table_names.is_empty() {
        let with_system = call.include_sys_tables == Some(true);
        let found = schema::matching(
            server,
            call.regex.as_deref(),
            with_system,
            call.namespace.as_deref(),
        )?;
        table_schema.extend(found.iter().map(|table| schema::to_table(table)));
    }
    // Missing tables are left out: clients raise TableNotFoundException on an empty list.
    for name in &call.table_names {
        if let Ok((table, _)) = server.engine().describe_table(&schema::table_name(name)?) {
            table_schema.push(schema::to_table(&table));
        }
    }
    reply.message(&pb::GetTableDescriptorsResponse { table_schema });
    Ok(())
}

fn in_state(server: &Server, is_enabled: bool) -> Vec<Arc<basalt_engine::schema::TableDescriptor>> {
    let wanted = if is_enabled {
        TableState::Enabled
    } else {
        TableState::Disabled
    };
    let tables = server.engine().tables().into_iter();
    let of_users = tables.filter(|(table, state)| *state == wanted && !table.name.is_system());
    of_users.map(|(table, _)| table).collect()
}

/// Answers calls about namespaces and procedures and forwards all others to [`snapshots`].
fn namespaces(server: &Server, method: Method, parameter: Bytes, reply: &mut Reply) -> Result<(), Failure> {
    let (master, engine) = (server.master(), server.engine());
    match method {
        Method::CreateNamespace => {
            let call: pb::CreateNamespaceRequest = decode(parameter)?;
            let namespace = schema::namespace(&call.namespace_descriptor)?;
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                Ok(engine.create_namespace(namespace)?)
            })?;
            reply.message(&pb::CreateNamespaceResponse { proc_id });
        }
        Method::ModifyNamespace => {
            let call: pb::ModifyNamespaceRequest = decode(parameter)?;
            let namespace = schema::namespace(&call.namespace_descriptor)?;
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                Ok(engine.alter_namespace(namespace)?)
            })?;
            reply.message(&pb::ModifyNamespaceResponse { proc_id });
        }
        Method::DeleteNamespace => {
            let call: pb::DeleteNamespaceRequest = decode(parameter)?;
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                engine.drop_namespace(&call.namespace_name)?;
                quotas::remove_for_namespace(server, &call.namespace_name)
            })?;
            reply.message(&pb::DeleteNamespaceResponse { proc_id });
        }
        Method::GetNamespaceDescriptor => {
            let call: pb::GetNamespaceDescriptorRequest = decode(parameter)?;
            let found = namespace(server, &call.namespace_name)?;
            reply.message(&pb::GetNamespaceDescriptorResponse {
                namespace_descriptor: schema::to_namespace(&found),
            });
        }
        Method::ListNamespaceDescriptors => reply.message(&pb::ListNamespaceDescriptorsResponse {
            namespace_descriptor: engine.namespaces().iter().map(schema::to_namespace).collect(),
        }),
        Method::ListNamespaces => reply.message(&pb::ListNamespacesResponse {
            namespace_name: engine
                .namespaces()
                .into_iter()
                .map(|namespace| namespace.name)
                .collect(),
        }),
        Method::ListTableDescriptorsByNamespace => {
            let call: pb::ListTableDescriptorsByNamespaceRequest = decode(parameter)?;
            namespace(server, &call.namespace_name)?;
            let found = schema::matching(server, None, true, Some(&call.namespace_name))?;
            reply.message(&pb::ListTableDescriptorsByNamespaceResponse {
                table_schema: found.iter().map(|table| schema::to_table(table)).collect(),
            });
        }
        Method::ListTableNamesByNamespace => {
            let call: pb::ListTableNamesByNamespaceRequest = decode(parameter)?;
            namespace(server, &call.namespace_name)?;
            let found = schema::matching(server, None, true, Some(&call.namespace_name))?;
            reply.message(&pb::ListTableNamesByNamespaceResponse {
                table_name: found
                    .iter()
                    .map(|table| schema::to_table_name(&table.name))
                    .collect(),
            });
        }
        Method::ExecProcedure | Method::ExecProcedureWithRet => {
            let call: pb::ExecProcedureRequest = decode(parameter)?;
            check_signature(&call.procedure.signature)?;
            let table = TableName::parse(call.procedure.instance.unwrap_or_default().as_bytes())?;
            engine.flush(&table)?;
            reply.message(&pb::ExecProcedureResponse {
                expected_timeout: Some(EXPECTED_TIMEOUT_MS),
                return_data: None,
            });
        }
        Method::IsProcedureDone => {
            let call: pb::IsProcedureDoneRequest = decode(parameter)?;
            let procedure = call.procedure.unwrap_or_default();
            check_signature(&procedure.signature)?;
            reply.message(&pb::IsProcedureDoneResponse {
                done: Some(true),
                snapshot: Some(procedure),
            });
        }
        _ => return snapshots(server, method, parameter, reply),
    }
    Ok(())
}

fn check_signature(signature: &str) -> Result<(), Failure> {
    if signature == FLUSH_SIGNATURE {
        return Ok(());
    }
    Err(Failure::do_not_retry(format!(
        "the procedure {signature} is not there; {FLUSH_SIGNATURE} is"
    )))
}

fn namespace(server: &Server, name: &str) -> Result<basalt_engine::schema::NamespaceDescriptor, Failure> {
    let found = server
        .engine()
        .namespaces()
        .into_iter()
        .find(|namespace| namespace.name == name);
    found.ok_or_else(|| basalt_engine::Error::NoSuchNamespace(name.to_owned()).into())
}

/// Answers calls about snapshots and forwards all others to [`regions`].
fn snapshots(server: &Server, method: Method, parameter: Bytes, reply: &mut Reply) -> Result<(), Failure> {
    let (master, engine) = (server.master(), server.engine());
    match method {
        Method::Snapshot => {
            let call: pb::SnapshotRequest = decode(parameter)?;
            let has_nonce = call.nonce.is_some();
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                let table = TableName::parse(call.snapshot.table.clone().unwrap_or_default().as_bytes())?;
                let flush = call.snapshot.r#type() != pb::snapshot_description::Type::Skipflush;
                let ttl = u64::try_from(call.snapshot.ttl.unwrap_or_default()).unwrap_or_default();
                Ok(engine.snapshot(&table, &call.snapshot.name, flush, ttl)?)
            })?;
            reply.message(&pb::SnapshotResponse {
                expected_timeout: EXPECTED_TIMEOUT_MS,
                // Clients before 2.6 send no nonce and poll IsSnapshotDone instead of the
                // procedure.
                proc_id: proc_id.filter(|_| has_nonce).map(|id| id as i64),
            });
        }
        Method::IsSnapshotDone => {
            let call: pb::IsSnapshotDoneRequest = decode(parameter)?;
            let name = call.snapshot.unwrap_or_default().name;
            let snapshots = engine.snapshots();
            let found = snapshots
                .iter()
                .find(|snapshot| snapshot.name == name)
                .ok_or_else(|| Failure::unknown_snapshot(&name))?;
            reply.message(&pb::IsSnapshotDoneResponse {
                done: Some(true),
                snapshot: Some(to_snapshot(found)),
            });
        }
        Method::GetCompletedSnapshots => reply.message(&pb::GetCompletedSnapshotsResponse {
            snapshots: engine
                .snapshots()
                .iter()
                .map(|snapshot| to_snapshot(snapshot))
                .collect(),
        }),
        Method::DeleteSnapshot => {
            let call: pb::DeleteSnapshotRequest = decode(parameter)?;
            engine.delete_snapshot(&call.snapshot.name)?;
            reply.message(&pb::DeleteSnapshotResponse {});
        }
        Method::RestoreSnapshot => {
            let call: pb::RestoreSnapshotRequest = decode(parameter)?;
            let name = call.snapshot.name;
            let table = TableName::parse(call.snapshot.table.unwrap_or_default().as_bytes())?;
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                let is_own = engine
                    .snapshots()
                    .iter()
                    .any(|snapshot| snapshot.name == name && snapshot.descriptor.name == table);
                if is_own && engine.describe_table(&table).is_ok() {
                    Ok(engine.restore_snapshot(&name)?)
                } else {
                    Ok(engine.clone_snapshot(&name, &table)?)
                }
            })?;
            reply.message(&pb::RestoreSnapshotResponse {
                proc_id: proc_id.unwrap_or_default(),
            });
        }
        Method::SwitchSnapshotCleanup => {
            let call: pb::SetSnapshotCleanupRequest = decode(parameter)?;
            let before = master.snapshot_cleanup.swap(call.enabled, Ordering::Relaxed);
            reply.message(&pb::SetSnapshotCleanupResponse {
                prev_snapshot_cleanup: before,
            });
        }
        Method::IsSnapshotCleanupEnabled => reply.message(&pb::IsSnapshotCleanupEnabledResponse {
            enabled: master.snapshot_cleanup.load(Ordering::Relaxed),
        }),
        _ => return regions(server, method, parameter, reply),
    }
    Ok(())
}

fn to_snapshot(snapshot: &basalt_engine::SnapshotMeta) -> pb::SnapshotDescription {
    pb::SnapshotDescription {
        name: snapshot.name.clone(),
        table: Some(snapshot.descriptor.name.to_string()),
        creation_time: Some(snapshot.created_ms as i64),
        r#type: Some(pb::snapshot_description::Type::Flush.into()),
        version: Some(2),
        ttl: Some(i64::try_from(snapshot.ttl_seconds).unwrap_or(i64::MAX)),
        ..pb::SnapshotDescription::default()
    }
}

/// Answers calls about regions and background chores and forwards all others to [`cluster`].
fn regions(server: &Server, method: Method, parameter: Bytes, reply: &mut Reply) -> Result<(), Failure> {
    let (master, engine) = (server.master(), server.engine());
    match method {
        Method::SplitRegion => {
            let call: pb::SplitTableRegionRequest = decode(parameter)?;
            let table = schema::table_name(&call.region_info.table_name)?;
            let start = call.region_info.start_key.clone().unwrap_or_default();
            let found = engine.region_of(&table, &start)?;
            if found.created_ms != call.region_info.region_id {
                return Err(basalt_engine::Error::NotServingRegion(format!(
                    "the region of {table} with id {} is gone",
                    call.region_info.region_id
                ))
                .into());
            }
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                engine.split_region(found.id, call.split_row.as_deref().filter(|row| !row.is_empty()))?;
                Ok(())
            })?;
            reply.message(&pb::SplitTableRegionResponse { proc_id });
        }
        Method::MergeTableRegions => {
            let call: pb::MergeTableRegionsRequest = decode(parameter)?;
            let proc_id = change(master, (call.nonce_group, call.nonce), || {
                let regions = call.region.iter().map(|name| region::by_name(server, name));
                let ids = regions
                    .map(|region| Ok(region?.id))
                    .collect::<Result<Vec<_>, Failure>>()?;
                engine.merge_regions(&ids)?;
                Ok(())
            })?;
            reply.message(&pb::MergeTableRegionsResponse { proc_id });
        }
        Method::MoveRegion => {
            places::move_region(server, &decode(parameter)?)?;
            reply.message(&pb::MoveRegionResponse {});
        }
        Method::AssignRegion => {
            let call: pb::AssignRegionRequest = decode(parameter)?;
            places::assign(server, &call.region)?;
            reply.message(&pb::AssignRegionResponse {});
        }
        Method::UnassignRegion => {
            let call: pb::UnassignRegionRequest = decode(parameter)?;
            places::unassign(server, &call.region)?;
            reply.message(&pb::UnassignRegionResponse {});
        }
        Method::OfflineRegion => {
            let call: pb::OfflineRegionRequest = decode(parameter)?;
            places::offline(server, &call.region)?;
            reply.message(&pb::OfflineRegionResponse {});
        }
        Method::Balance => {
            let answer = places::balance(server, decode(parameter)?, master.is_balancer_on())?;
            reply.message(&answer);
        }
        Method::SetBalancerRunning => {
            let call: pb::SetBalancerRunningRequest = decode(parameter)?;
            let before = master.balancer.swap(call.on, Ordering::Relaxed);
            reply.message(&pb::SetBalancerRunningResponse {
                prev_balance_value: Some(before),
            });
        }
        Method::IsBalancerEnabled => reply.message(&pb::IsBalancerEnabledResponse {
            enabled: master.balancer.load(Ordering::Relaxed),
        }),
        Method::Normalize => reply.message(&pb::NormalizeResponse {
            normalizer_ran: master.normalizer.load(Ordering::Relaxed),
        }),
        Method::SetNormalizerRunning => {
            let call: pb::SetNormalizerRunningRequest = decode(parameter)?;
            let before = master.normalizer.swap(call.on, Ordering::Relaxed);
            reply.message(&pb::SetNormalizerRunningResponse {
                prev_normalizer_value: Some(before),
            });
        }
        Method::IsNormalizerEnabled => reply.message(&pb::IsNormalizerEnabledResponse {
            enabled: master.normalizer.load(Ordering::Relaxed),
        }),
        Method::RunCatalogScan => reply.message(&pb::RunCatalogScanResponse { scan_result: Some(0) }),
        Method::EnableCatalogJanitor => {
            let call: pb::EnableCatalogJanitorRequest = decode(parameter)?;
            let before = master.janitor.swap(call.enable, Ordering::Relaxed);
            reply.message(&pb::EnableCatalogJanitorResponse {
                prev_value: Some(before),
            });
        }
        Method::IsCatalogJanitorEnabled => reply.message(&pb::IsCatalogJanitorEnabledResponse {
            value: master.janitor.load(Ordering::Relaxed),
        }),
        Method::RunCleanerChore => reply.message(&pb::RunCleanerChoreResponse {
            cleaner_chore_ran: true,
        }),
        Method::SetCleanerChoreRunning => {
            let call: pb::SetCleanerChoreRunningRequest = decode(parameter)?;
            let before = master.cleaner.swap(call.on, Ordering::Relaxed);
            reply.message(&pb::SetCleanerChoreRunningResponse {
                prev_value: Some(before),
            });
        }
        Method::IsCleanerChoreEnabled => reply.message(&pb::IsCleanerChoreEnabledResponse {
            value: master.cleaner.load(Ordering::Relaxed),
        }),
        Method::SetSplitOrMergeEnabled => {
            let call: pb::SetSplitOrMergeEnabledRequest = decode(parameter)?;
            let switches = call.switch_types().map(|kind| switch(master, kind));
            let before = switches.map(|switch| switch.swap(call.enabled, Ordering::Relaxed));
            reply.message(&pb::SetSplitOrMergeEnabledResponse {
                prev_value: before.collect(),
            });
        }
        Method::IsSplitOrMergeEnabled => {
            let call: pb::IsSplitOrMergeEnabledRequest = decode(parameter)?;
            let enabled = switch(master, call.switch_type()).load(Ordering::Relaxed);
            reply.message(&pb::IsSplitOrMergeEnabledResponse { enabled });
        }
        _ => return cluster(server, method, parameter, reply),
    }
    Ok(())
}

fn switch(master: &MasterState, kind: pb::MasterSwitchType) -> &AtomicBool {
    match kind {
        pb::MasterSwitchType::Split => &master.splits,
        pb::MasterSwitchType::Merge => &master.merges,
    }
}

/// Package and outer class of the messages in log entries.
const MASTER_PROTOS: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos$";

/// Answers calls about the cluster; unknown methods are refused.
fn cluster(server: &Server, method: Method, parameter: Bytes, reply: &mut Reply) -> Result<(), Failure> {
    match method {
        Method::GetClusterStatus => reply.message(&pb::GetClusterStatusResponse {
            cluster_status: status::cluster(server),
        }),
        Method::IsMasterInMaintenanceMode => {
            reply.message(&pb::IsInMaintenanceModeResponse {
                in_maintenance_mode: false,
            });
        }
        Method::GetSecurityCapabilities => reply.message(&pb::SecurityCapabilitiesResponse {
            capabilities: vec![pb::security_capabilities_response::Capability::SimpleAuthentication.into()],
        }),
        Method::GetLastMajorCompactionTimestamp | Method::GetLastMajorCompactionTimestampForRegion => {
            reply.message(&pb::MajorCompactionTimestampResponse {
                compaction_timestamp: 0,
            });
        }
        Method::AbortProcedure => reply.message(&pb::AbortProcedureResponse {
            is_procedure_aborted: false,
        }),
        Method::GetProcedures => reply.message(&pb::GetProceduresResponse::default()),
        Method::GetLocks => reply.message(&pb::GetLocksResponse::default()),
        Method::ListReplicationPeers => reply.message(&pb::ListReplicationPeersResponse::default()),
        Method::ListDecommissionedRegionServers => {
            reply.message(&pb::ListDecommissionedRegionServersResponse::default());
        }
        Method::ClearDeadServers => reply.message(&pb::ClearDeadServersResponse::default()),
        Method::IsRpcThrottleEnabled => {
            // Quotas hold whenever there are some.
            reply.message(&pb::IsRpcThrottleEnabledResponse {
                rpc_throttle_enabled: true,
            });
        }
        Method::SetQuota => {
            quota::set(server, &decode(parameter)?)?;
            reply.message(&pb::SetQuotaResponse {});
        }
        Method::GetQuotaStates => reply.message(&pb::GetQuotaStatesResponse::default()),
        Method::GetSpaceQuotaRegionSizes => reply.message(&pb::GetSpaceQuotaRegionSizesResponse::default()),
        Method::GetLogEntries => {
            let call: pb::LogRequest = decode(parameter)?;
            let answer = if call.log_class_name.ends_with("BalancerRejectionsRequest") {
                "BalancerRejectionsResponse"
            } else {
                "BalancerDecisionsResponse"
            };
            reply.message(&pb::LogEntry {
                log_class_name: format!("{MASTER_PROTOS}{answer}"),
                log_message: Bytes::new(),
            });
        }
        Method::ExecMasterService => {
            return Err(coprocessor::on_master(&decode(parameter)?));
        }
        other => return Err(Failure::unsupported(other.name())),
    }
    Ok(())
}
