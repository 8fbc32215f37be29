//! MasterService: schema changes, snapshots, and the state of the cluster.
//!
//! Every change is complete when its call returns, so the procedure id in its response is that of a
//! finished operation. Queries about features that Basalt lacks are answered as by an idle, healthy
//! cluster; changes to such features are refused with the name of the method.
//!
//! The handlers convert; `service::admin` has the calls. `basalt_idl` generates the dispatch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use basalt_engine::Error;
use basalt_engine::schema::{Switch, TableDescriptor, TableName, TableState};
use basalt_idl::native::messages as pb;
use basalt_idl::native::messages::MasterServiceMethod as Method;
use bytes::Bytes;

use super::reply::Reply;
use super::{
    coprocessor, normalizer, peers, places, procedures, quota, region, rights, schema, status, trackers,
    upkeep,
};
use crate::server::MasterState;
use crate::service::admin::{cluster, namespaces, peers as admin_peers, regions, snapshots, tables};
use crate::service::{AdminCall, Failure};

/// Package and outer class of the messages in log entries.
const MASTER_PROTOS: &str = "org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos$";

type Result<T> = std::result::Result<T, Failure>;

/// Answers a call of MasterService.
pub(super) async fn call(
    admin: &AdminCall,
    method: Method,
    parameter: Bytes,
    reply: &mut Reply,
) -> Result<()> {
    // Java's clients send the first before each other call, and poll the second: a change may keep the
    // pool's threads busy meanwhile.
    if matches!(method, Method::IsMasterRunning | Method::GetProcedureResult) {
        return method.answer(admin, parameter, reply);
    }
    let call = admin.clone();
    reply
        .fill_on_pool(admin.server(), move |reply| {
            method.answer(&call, parameter, reply)
        })
        .await
}

/// The tables that match, of one namespace if it is given.
fn matching(
    call: &AdminCall,
    regex: Option<&str>,
    with_system: Option<bool>,
    namespace: Option<&str>,
) -> Result<Vec<Arc<TableDescriptor>>> {
    let mut found = tables::list_matching(call, regex, with_system == Some(true))?;
    found.retain(|table| namespace.is_none_or(|namespace| table.name.namespace() == namespace));
    Ok(found)
}

fn in_state(call: &AdminCall, is_enabled: bool) -> Result<Vec<Arc<TableDescriptor>>> {
    let wanted = if is_enabled {
        TableState::Enabled
    } else {
        TableState::Disabled
    };
    let tables = tables::list(call)?.into_iter();
    let of_users = tables.filter(|(table, state)| *state == wanted && !table.name.is_system());
    Ok(of_users.map(|(table, _)| table).collect())
}

fn to_tables(found: &[Arc<TableDescriptor>]) -> Vec<pb::TableSchema> {
    found.iter().map(|table| schema::to_table(table)).collect()
}

fn to_names(found: &[Arc<TableDescriptor>]) -> Vec<pb::TableName> {
    found
        .iter()
        .map(|table| schema::to_table_name(&table.name))
        .collect()
}

/// A table's name in a snapshot's description or a procedure.
fn full_name(name: Option<String>) -> Result<TableName> {
    Ok(TableName::parse(name.unwrap_or_default().as_bytes())?)
}

fn to_snapshot(call: &AdminCall, snapshot: &basalt_engine::SnapshotMeta) -> pb::SnapshotDescription {
    pb::SnapshotDescription {
        name: snapshot.name.clone(),
        table: Some(snapshot.descriptor.name.to_string()),
        creation_time: Some(snapshot.created_ms as i64),
        r#type: Some(pb::snapshot_description::Type::Flush.into()),
        version: Some(2),
        owner: snapshots::owner(call, snapshot),
        ttl: Some(i64::try_from(snapshot.ttl_seconds).unwrap_or(i64::MAX)),
        ..pb::SnapshotDescription::default()
    }
}

/// Sets a switch of work that the master of a cluster does; returns its value before.
fn set_switch(call: &AdminCall, of: fn(&MasterState) -> &AtomicBool, on: bool) -> Result<bool> {
    cluster::operate(call, |server| Ok(of(server.master()).swap(on, Ordering::Relaxed)))
}

fn is_on(call: &AdminCall, of: fn(&MasterState) -> &AtomicBool) -> Result<bool> {
    cluster::ask(call, |server| of(server.master()).load(Ordering::Relaxed))
}

fn split_or_merge(kind: pb::MasterSwitchType) -> Switch {
    match kind {
        pb::MasterSwitchType::Split => Switch::Splits,
        pb::MasterSwitchType::Merge => Switch::Merges,
    }
}

impl pb::MasterServiceHandlers for AdminCall {
    type Failure = Failure;

    fn unsupported(&self, method: &'static str) -> Failure {
        super::unsupported(self, method)
    }

    fn undecodable(error: prost::DecodeError) -> Failure {
        super::request::undecodable(error).into()
    }

    fn is_master_running(&self, _: pb::IsMasterRunningRequest) -> Result<pb::IsMasterRunningResponse> {
        cluster::ask(self, |_| pb::IsMasterRunningResponse {
            is_master_running: true,
        })
    }

    fn get_procedure_result(
        &self,
        request: pb::GetProcedureResultRequest,
    ) -> Result<pb::GetProcedureResultResponse> {
        use pb::get_procedure_result_response::State;
        let finished =
            |server: &crate::server::Server| server.master().procedures.is_finished(request.proc_id);
        let state = if cluster::ask(self, finished)? {
            State::Finished
        } else {
            State::NotFound
        };
        let failed = cluster::ask(self, |server| server.master().procedures.failure(request.proc_id))?;
        Ok(pb::GetProcedureResultResponse {
            state: state.into(),
            exception: failed.map(procedures::exception),
            ..pb::GetProcedureResultResponse::default()
        })
    }

    // Tables.

    fn get_table_names(&self, request: pb::GetTableNamesRequest) -> Result<pb::GetTableNamesResponse> {
        let (regex, namespace) = (request.regex.as_deref(), request.namespace.as_deref());
        let found = matching(self, regex, request.include_sys_tables, namespace)?;
        Ok(pb::GetTableNamesResponse {
            table_names: to_names(&found),
        })
    }

    /// Missing tables are left out: clients raise TableNotFoundException on an empty list.
    fn get_table_descriptors(
        &self,
        request: pb::GetTableDescriptorsRequest,
    ) -> Result<pb::GetTableDescriptorsResponse> {
        let mut table_schema = Vec::new();
        if request.table_names.is_empty() {
            let (regex, namespace) = (request.regex.as_deref(), request.namespace.as_deref());
            let found = matching(self, regex, request.include_sys_tables, namespace)?;
            table_schema = to_tables(&tables::shown(self, found));
        }
        for name in &request.table_names {
            if let Some(table) = tables::find_descriptor(self, &schema::table_name(name)?)? {
                table_schema.push(schema::to_table(&table));
            }
        }
        Ok(pb::GetTableDescriptorsResponse { table_schema })
    }

    fn list_table_descriptors_by_state(
        &self,
        request: pb::ListTableDescriptorsByStateRequest,
    ) -> Result<pb::ListTableDescriptorsByStateResponse> {
        Ok(pb::ListTableDescriptorsByStateResponse {
            table_schema: to_tables(&tables::shown(self, in_state(self, request.is_enabled)?)),
        })
    }

    fn list_table_names_by_state(
        &self,
        request: pb::ListTableNamesByStateRequest,
    ) -> Result<pb::ListTableNamesByStateResponse> {
        Ok(pb::ListTableNamesByStateResponse {
            table_names: to_names(&in_state(self, request.is_enabled)?),
        })
    }

    fn get_table_state(&self, request: pb::GetTableStateRequest) -> Result<pb::GetTableStateResponse> {
        let (_, state) = tables::describe(self, &schema::table_name(&request.table_name)?)?;
        Ok(pb::GetTableStateResponse {
            table_state: schema::to_state(state),
        })
    }

    fn create_table(&self, request: pb::CreateTableRequest) -> Result<pb::CreateTableResponse> {
        let splits = request.split_keys.iter().map(|key| key.to_vec()).collect();
        let table = schema::table(&request.table_schema)?;
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            tables::create(self, table, splits)
        })?;
        Ok(pb::CreateTableResponse { proc_id })
    }

    fn delete_table(&self, request: pb::DeleteTableRequest) -> Result<pb::DeleteTableResponse> {
        let table = schema::table_name(&request.table_name)?;
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            tables::drop(self, &table)
        })?;
        Ok(pb::DeleteTableResponse { proc_id })
    }

    fn enable_table(&self, request: pb::EnableTableRequest) -> Result<pb::EnableTableResponse> {
        let table = schema::table_name(&request.table_name)?;
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            tables::enable(self, &table)
        })?;
        Ok(pb::EnableTableResponse { proc_id })
    }

    fn disable_table(&self, request: pb::DisableTableRequest) -> Result<pb::DisableTableResponse> {
        let table = schema::table_name(&request.table_name)?;
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            tables::disable(self, &table)
        })?;
        Ok(pb::DisableTableResponse { proc_id })
    }

    fn truncate_table(&self, request: pb::TruncateTableRequest) -> Result<pb::TruncateTableResponse> {
        let table = schema::table_name(&request.table_name)?;
        let keep = request.preserve_splits == Some(true);
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            tables::truncate(self, &table, keep)
        })?;
        Ok(pb::TruncateTableResponse { proc_id })
    }

    fn modify_table(&self, request: pb::ModifyTableRequest) -> Result<pb::ModifyTableResponse> {
        let mut table = schema::table(&request.table_schema)?;
        table.name = schema::table_name(&request.table_name)?;
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            tables::alter(self, table)
        })?;
        Ok(pb::ModifyTableResponse { proc_id })
    }

    fn add_column(&self, request: pb::AddColumnRequest) -> Result<pb::AddColumnResponse> {
        let table = schema::table_name(&request.table_name)?;
        let family = schema::family(&request.column_families)?;
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            tables::add_family(self, &table, family)
        })?;
        Ok(pb::AddColumnResponse { proc_id })
    }

    fn modify_column(&self, request: pb::ModifyColumnRequest) -> Result<pb::ModifyColumnResponse> {
        let table = schema::table_name(&request.table_name)?;
        let family = schema::family(&request.column_families)?;
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            tables::alter_family(self, &table, family)
        })?;
        Ok(pb::ModifyColumnResponse { proc_id })
    }

    fn delete_column(&self, request: pb::DeleteColumnRequest) -> Result<pb::DeleteColumnResponse> {
        let table = schema::table_name(&request.table_name)?;
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            tables::drop_family(self, &table, &request.column_name)
        })?;
        Ok(pb::DeleteColumnResponse { proc_id })
    }

    fn get_schema_alter_status(
        &self,
        request: pb::GetSchemaAlterStatusRequest,
    ) -> Result<pb::GetSchemaAlterStatusResponse> {
        let regions = tables::regions(self, &schema::table_name(&request.table_name)?)?.len();
        Ok(pb::GetSchemaAlterStatusResponse {
            yet_to_update_regions: Some(0),
            total_regions: Some(regions as u32),
        })
    }

    fn flush_table(&self, request: pb::FlushTableRequest) -> Result<pb::FlushTableResponse> {
        let table = schema::table_name(&request.table_name)?;
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            tables::flush(self, &table, &request.column_family)
        })?;
        Ok(pb::FlushTableResponse { proc_id })
    }

    // Namespaces.

    fn create_namespace(&self, request: pb::CreateNamespaceRequest) -> Result<pb::CreateNamespaceResponse> {
        let namespace = schema::namespace(&request.namespace_descriptor)?;
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            namespaces::create(self, namespace)
        })?;
        Ok(pb::CreateNamespaceResponse { proc_id })
    }

    fn modify_namespace(&self, request: pb::ModifyNamespaceRequest) -> Result<pb::ModifyNamespaceResponse> {
        let namespace = schema::namespace(&request.namespace_descriptor)?;
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            namespaces::alter(self, namespace)
        })?;
        Ok(pb::ModifyNamespaceResponse { proc_id })
    }

    fn delete_namespace(&self, request: pb::DeleteNamespaceRequest) -> Result<pb::DeleteNamespaceResponse> {
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            namespaces::drop(self, &request.namespace_name)
        })?;
        Ok(pb::DeleteNamespaceResponse { proc_id })
    }

    fn get_namespace_descriptor(
        &self,
        request: pb::GetNamespaceDescriptorRequest,
    ) -> Result<pb::GetNamespaceDescriptorResponse> {
        let found = namespaces::find(self, &request.namespace_name)?
            .ok_or_else(|| Error::NoSuchNamespace(request.namespace_name.clone()))?;
        Ok(pb::GetNamespaceDescriptorResponse {
            namespace_descriptor: schema::to_namespace(&found),
        })
    }

    fn list_namespace_descriptors(
        &self,
        _: pb::ListNamespaceDescriptorsRequest,
    ) -> Result<pb::ListNamespaceDescriptorsResponse> {
        let shown = namespaces::shown(self, namespaces::list(self)?);
        Ok(pb::ListNamespaceDescriptorsResponse {
            namespace_descriptor: shown.iter().map(schema::to_namespace).collect(),
        })
    }

    fn list_namespaces(&self, _: pb::ListNamespacesRequest) -> Result<pb::ListNamespacesResponse> {
        let found = namespaces::list(self)?.into_iter();
        Ok(pb::ListNamespacesResponse {
            namespace_name: found.map(|namespace| namespace.name).collect(),
        })
    }

    fn list_table_descriptors_by_namespace(
        &self,
        request: pb::ListTableDescriptorsByNamespaceRequest,
    ) -> Result<pb::ListTableDescriptorsByNamespaceResponse> {
        check_namespace(self, &request.namespace_name)?;
        let found = matching(self, None, Some(true), Some(&request.namespace_name))?;
        Ok(pb::ListTableDescriptorsByNamespaceResponse {
            table_schema: to_tables(&tables::shown(self, found)),
        })
    }

    fn list_table_names_by_namespace(
        &self,
        request: pb::ListTableNamesByNamespaceRequest,
    ) -> Result<pb::ListTableNamesByNamespaceResponse> {
        check_namespace(self, &request.namespace_name)?;
        let found = matching(self, None, Some(true), Some(&request.namespace_name))?;
        Ok(pb::ListTableNamesByNamespaceResponse {
            table_name: to_names(&found),
        })
    }

    // Procedures.

    fn exec_procedure(&self, request: pb::ExecProcedureRequest) -> Result<pb::ExecProcedureResponse> {
        procedures::exec(self, &request)
    }

    fn exec_procedure_with_ret(
        &self,
        request: pb::ExecProcedureRequest,
    ) -> Result<pb::ExecProcedureResponse> {
        self.exec_procedure(request)
    }

    fn is_procedure_done(&self, request: pb::IsProcedureDoneRequest) -> Result<pb::IsProcedureDoneResponse> {
        procedures::is_done(self, request)
    }

    fn abort_procedure(&self, _: pb::AbortProcedureRequest) -> Result<pb::AbortProcedureResponse> {
        cluster::operate(self, |_| {
            Ok(pb::AbortProcedureResponse {
                is_procedure_aborted: false,
            })
        })
    }

    fn get_procedures(&self, _: pb::GetProceduresRequest) -> Result<pb::GetProceduresResponse> {
        cluster::operate(self, |_| Ok(pb::GetProceduresResponse::default()))
    }

    fn get_locks(&self, _: pb::GetLocksRequest) -> Result<pb::GetLocksResponse> {
        cluster::operate(self, |_| Ok(pb::GetLocksResponse::default()))
    }

    // Snapshots.

    fn snapshot(&self, request: pb::SnapshotRequest) -> Result<pb::SnapshotResponse> {
        let (wanted, has_nonce) = (request.snapshot, request.nonce.is_some());
        let flush = wanted.r#type() != pb::snapshot_description::Type::Skipflush;
        let ttl = u64::try_from(wanted.ttl.unwrap_or_default()).unwrap_or_default();
        let table = full_name(wanted.table)?;
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            snapshots::take(self, &table, &wanted.name, flush, ttl)
        })?;
        Ok(pb::SnapshotResponse {
            expected_timeout: procedures::EXPECTED_TIMEOUT_MS,
            // Clients before 2.6 send no nonce and poll IsSnapshotDone instead of the procedure.
            proc_id: proc_id.filter(|_| has_nonce).map(|id| id as i64),
        })
    }

    fn is_snapshot_done(&self, request: pb::IsSnapshotDoneRequest) -> Result<pb::IsSnapshotDoneResponse> {
        let name = request.snapshot.unwrap_or_default().name;
        let snapshots = snapshots::list(self)?;
        let found = snapshots
            .iter()
            .find(|snapshot| snapshot.name == name)
            .ok_or_else(|| Failure::unknown_snapshot(&name))?;
        Ok(pb::IsSnapshotDoneResponse {
            done: Some(true),
            snapshot: Some(to_snapshot(self, found)),
        })
    }

    fn get_completed_snapshots(
        &self,
        _: pb::GetCompletedSnapshotsRequest,
    ) -> Result<pb::GetCompletedSnapshotsResponse> {
        let snapshots = snapshots::list(self)?;
        Ok(pb::GetCompletedSnapshotsResponse {
            snapshots: snapshots
                .iter()
                .map(|snapshot| to_snapshot(self, snapshot))
                .collect(),
        })
    }

    fn delete_snapshot(&self, request: pb::DeleteSnapshotRequest) -> Result<pb::DeleteSnapshotResponse> {
        snapshots::delete(self, &request.snapshot.name)?;
        Ok(pb::DeleteSnapshotResponse {})
    }

    fn restore_snapshot(&self, request: pb::RestoreSnapshotRequest) -> Result<pb::RestoreSnapshotResponse> {
        let name = request.snapshot.name;
        let table = full_name(request.snapshot.table)?;
        let tracker = request.custom_sft.filter(|tracker| !tracker.is_empty());
        let proc_id = self.once_or_failed((request.nonce_group, request.nonce), || {
            trackers::restore_or_clone(self, &name, &table, tracker.as_deref())
        })?;
        Ok(pb::RestoreSnapshotResponse {
            proc_id: proc_id.unwrap_or_default(),
        })
    }

    fn switch_snapshot_cleanup(
        &self,
        request: pb::SetSnapshotCleanupRequest,
    ) -> Result<pb::SetSnapshotCleanupResponse> {
        let prev_snapshot_cleanup = cluster::turn(self, Switch::SnapshotCleanup, request.enabled)?;
        Ok(pb::SetSnapshotCleanupResponse {
            prev_snapshot_cleanup,
        })
    }

    fn is_snapshot_cleanup_enabled(
        &self,
        _: pb::IsSnapshotCleanupEnabledRequest,
    ) -> Result<pb::IsSnapshotCleanupEnabledResponse> {
        let enabled = cluster::is_on(self, Switch::SnapshotCleanup)?;
        Ok(pb::IsSnapshotCleanupEnabledResponse { enabled })
    }

    // Regions.

    fn split_region(&self, request: pb::SplitTableRegionRequest) -> Result<pb::SplitTableRegionResponse> {
        let of = &request.region_info;
        let table = schema::table_name(&of.table_name)?;
        let start = of.start_key.clone().unwrap_or_default();
        let key = request.split_row.as_deref().filter(|row| !row.is_empty());
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            regions::split_exact(self, &table, (&start, of.region_id), key)
        })?;
        Ok(pb::SplitTableRegionResponse { proc_id })
    }

    fn merge_table_regions(
        &self,
        request: pb::MergeTableRegionsRequest,
    ) -> Result<pb::MergeTableRegionsResponse> {
        let proc_id = self.once((request.nonce_group, request.nonce), || {
            let named = request
                .region
                .iter()
                .map(|name| regions::named(self, region::name(name)));
            regions::merge(self, &named.collect::<Result<Vec<_>>>()?)?;
            Ok(())
        })?;
        Ok(pb::MergeTableRegionsResponse { proc_id })
    }

    fn truncate_region(&self, request: pb::TruncateRegionRequest) -> Result<pb::TruncateRegionResponse> {
        upkeep::truncate_region(self, &request)
    }

    fn modify_table_store_file_tracker(
        &self,
        request: pb::ModifyTableStoreFileTrackerRequest,
    ) -> Result<pb::ModifyTableStoreFileTrackerResponse> {
        trackers::modify_table(self, &request)
    }

    fn modify_column_store_file_tracker(
        &self,
        request: pb::ModifyColumnStoreFileTrackerRequest,
    ) -> Result<pb::ModifyColumnStoreFileTrackerResponse> {
        trackers::modify_family(self, &request)
    }

    fn move_region(&self, request: pb::MoveRegionRequest) -> Result<pb::MoveRegionResponse> {
        places::move_region(self, &request)?;
        Ok(pb::MoveRegionResponse {})
    }

    fn assign_region(&self, request: pb::AssignRegionRequest) -> Result<pb::AssignRegionResponse> {
        places::assign(self, &request.region)?;
        Ok(pb::AssignRegionResponse {})
    }

    fn unassign_region(&self, request: pb::UnassignRegionRequest) -> Result<pb::UnassignRegionResponse> {
        places::unassign(self, &request.region)?;
        Ok(pb::UnassignRegionResponse {})
    }

    fn offline_region(&self, request: pb::OfflineRegionRequest) -> Result<pb::OfflineRegionResponse> {
        places::offline(self, &request.region)?;
        Ok(pb::OfflineRegionResponse {})
    }

    fn balance(&self, request: pb::BalanceRequest) -> Result<pb::BalanceResponse> {
        let is_on = cluster::is_on(self, Switch::Balancer)?;
        places::balance(self, request, is_on)
    }

    // Switches and chores.

    fn set_balancer_running(
        &self,
        request: pb::SetBalancerRunningRequest,
    ) -> Result<pb::SetBalancerRunningResponse> {
        let before = cluster::turn(self, Switch::Balancer, request.on)?;
        Ok(pb::SetBalancerRunningResponse {
            prev_balance_value: Some(before),
        })
    }

    fn is_balancer_enabled(&self, _: pb::IsBalancerEnabledRequest) -> Result<pb::IsBalancerEnabledResponse> {
        let enabled = cluster::is_on(self, Switch::Balancer)?;
        Ok(pb::IsBalancerEnabledResponse { enabled })
    }

    fn normalize(&self, request: pb::NormalizeRequest) -> Result<pb::NormalizeResponse> {
        Ok(pb::NormalizeResponse {
            normalizer_ran: normalizer::run(self, &request)?,
        })
    }

    fn set_normalizer_running(
        &self,
        request: pb::SetNormalizerRunningRequest,
    ) -> Result<pb::SetNormalizerRunningResponse> {
        let before = cluster::turn(self, Switch::Normalizer, request.on)?;
        Ok(pb::SetNormalizerRunningResponse {
            prev_normalizer_value: Some(before),
        })
    }

    fn is_normalizer_enabled(
        &self,
        _: pb::IsNormalizerEnabledRequest,
    ) -> Result<pb::IsNormalizerEnabledResponse> {
        let enabled = cluster::is_on(self, Switch::Normalizer)?;
        Ok(pb::IsNormalizerEnabledResponse { enabled })
    }

    fn run_catalog_scan(&self, _: pb::RunCatalogScanRequest) -> Result<pb::RunCatalogScanResponse> {
        cluster::operate(self, |_| Ok(pb::RunCatalogScanResponse { scan_result: Some(0) }))
    }

    fn enable_catalog_janitor(
        &self,
        request: pb::EnableCatalogJanitorRequest,
    ) -> Result<pb::EnableCatalogJanitorResponse> {
        let before = set_switch(self, |master| &master.janitor, request.enable)?;
        Ok(pb::EnableCatalogJanitorResponse {
            prev_value: Some(before),
        })
    }

    fn is_catalog_janitor_enabled(
        &self,
        _: pb::IsCatalogJanitorEnabledRequest,
    ) -> Result<pb::IsCatalogJanitorEnabledResponse> {
        let value = is_on(self, |master| &master.janitor)?;
        Ok(pb::IsCatalogJanitorEnabledResponse { value })
    }

    fn run_cleaner_chore(&self, _: pb::RunCleanerChoreRequest) -> Result<pb::RunCleanerChoreResponse> {
        cluster::operate(self, |_| {
            Ok(pb::RunCleanerChoreResponse {
                cleaner_chore_ran: true,
            })
        })
    }

    fn set_cleaner_chore_running(
        &self,
        request: pb::SetCleanerChoreRunningRequest,
    ) -> Result<pb::SetCleanerChoreRunningResponse> {
        let before = set_switch(self, |master| &master.cleaner, request.on)?;
        Ok(pb::SetCleanerChoreRunningResponse {
            prev_value: Some(before),
        })
    }

    fn is_cleaner_chore_enabled(
        &self,
        _: pb::IsCleanerChoreEnabledRequest,
    ) -> Result<pb::IsCleanerChoreEnabledResponse> {
        let value = is_on(self, |master| &master.cleaner)?;
        Ok(pb::IsCleanerChoreEnabledResponse { value })
    }

    fn set_split_or_merge_enabled(
        &self,
        request: pb::SetSplitOrMergeEnabledRequest,
    ) -> Result<pb::SetSplitOrMergeEnabledResponse> {
        cluster::operate(self, |_| Ok(()))?;
        let switches = request.switch_types().map(split_or_merge);
        let before = switches.map(|switch| cluster::turn(self, switch, request.enabled));
        Ok(pb::SetSplitOrMergeEnabledResponse {
            prev_value: before.collect::<Result<_>>()?,
        })
    }

    fn is_split_or_merge_enabled(
        &self,
        request: pb::IsSplitOrMergeEnabledRequest,
    ) -> Result<pb::IsSplitOrMergeEnabledResponse> {
        let enabled = cluster::is_on(self, split_or_merge(request.switch_type()))?;
        Ok(pb::IsSplitOrMergeEnabledResponse { enabled })
    }

    // The cluster.

    fn get_cluster_status(&self, _: pb::GetClusterStatusRequest) -> Result<pb::GetClusterStatusResponse> {
        Ok(pb::GetClusterStatusResponse {
            cluster_status: status::cluster(self)?,
        })
    }

    fn is_master_in_maintenance_mode(
        &self,
        _: pb::IsInMaintenanceModeRequest,
    ) -> Result<pb::IsInMaintenanceModeResponse> {
        cluster::ask(self, |_| pb::IsInMaintenanceModeResponse {
            in_maintenance_mode: false,
        })
    }

    fn get_security_capabilities(
        &self,
        _: pb::SecurityCapabilitiesRequest,
    ) -> Result<pb::SecurityCapabilitiesResponse> {
        use pb::security_capabilities_response::Capability;
        cluster::ask(self, |server| {
            let capabilities: &[Capability] = if server.security().authenticates() {
                &[Capability::SecureAuthentication, Capability::Authorization]
            } else {
                &[Capability::SimpleAuthentication]
            };
            pb::SecurityCapabilitiesResponse {
                capabilities: capabilities.iter().map(|of| (*of).into()).collect(),
            }
        })
    }

    fn grant(&self, request: pb::GrantRequest) -> Result<pb::GrantResponse> {
        rights::grant(self, &request)
    }

    fn revoke(&self, request: pb::RevokeRequest) -> Result<pb::RevokeResponse> {
        rights::revoke(self, &request)
    }

    fn get_user_permissions(
        &self,
        request: pb::GetUserPermissionsRequest,
    ) -> Result<pb::GetUserPermissionsResponse> {
        rights::list(self, &request)
    }

    fn has_user_permissions(
        &self,
        request: pb::HasUserPermissionsRequest,
    ) -> Result<pb::HasUserPermissionsResponse> {
        rights::has(self, &request)
    }

    fn get_last_major_compaction_timestamp(
        &self,
        request: pb::MajorCompactionTimestampRequest,
    ) -> Result<pb::MajorCompactionTimestampResponse> {
        upkeep::last_major_of_table(self, &request)
    }

    fn get_last_major_compaction_timestamp_for_region(
        &self,
        request: pb::MajorCompactionTimestampForRegionRequest,
    ) -> Result<pb::MajorCompactionTimestampResponse> {
        upkeep::last_major_of_region(self, &request)
    }

    fn add_replication_peer(
        &self,
        request: pb::AddReplicationPeerRequest,
    ) -> Result<pb::AddReplicationPeerResponse> {
        peers::add(self, &request)
    }

    fn remove_replication_peer(
        &self,
        request: pb::RemoveReplicationPeerRequest,
    ) -> Result<pb::RemoveReplicationPeerResponse> {
        peers::remove(self, &request.peer_id)
    }

    fn enable_replication_peer(
        &self,
        request: pb::EnableReplicationPeerRequest,
    ) -> Result<pb::EnableReplicationPeerResponse> {
        peers::enable(self, &request.peer_id)
    }

    fn disable_replication_peer(
        &self,
        request: pb::DisableReplicationPeerRequest,
    ) -> Result<pb::DisableReplicationPeerResponse> {
        peers::disable(self, &request.peer_id)
    }

    fn get_replication_peer_config(
        &self,
        request: pb::GetReplicationPeerConfigRequest,
    ) -> Result<pb::GetReplicationPeerConfigResponse> {
        peers::get(self, &request.peer_id)
    }

    fn update_replication_peer_config(
        &self,
        request: pb::UpdateReplicationPeerConfigRequest,
    ) -> Result<pb::UpdateReplicationPeerConfigResponse> {
        peers::update(self, &request)
    }

    fn list_replication_peers(
        &self,
        request: pb::ListReplicationPeersRequest,
    ) -> Result<pb::ListReplicationPeersResponse> {
        peers::list(self, request.regex.as_deref())
    }

    fn is_replication_peer_enabled(
        &self,
        request: pb::GetReplicationPeerStateRequest,
    ) -> Result<pb::GetReplicationPeerStateResponse> {
        let is_enabled = admin_peers::get(self, &request.peer_id)?.enabled;
        Ok(pb::GetReplicationPeerStateResponse { is_enabled })
    }

    fn replication_peer_modification_switch(
        &self,
        request: pb::ReplicationPeerModificationSwitchRequest,
    ) -> Result<pb::ReplicationPeerModificationSwitchResponse> {
        let previous_value = admin_peers::set_modifications(self, request.on)?;
        Ok(pb::ReplicationPeerModificationSwitchResponse { previous_value })
    }

    fn is_replication_peer_modification_enabled(
        &self,
        _: pb::IsReplicationPeerModificationEnabledRequest,
    ) -> Result<pb::IsReplicationPeerModificationEnabledResponse> {
        let enabled = admin_peers::modifications(self)?;
        Ok(pb::IsReplicationPeerModificationEnabledResponse { enabled })
    }

    /// Changes are done when their calls return.
    fn get_replication_peer_modification_procedures(
        &self,
        _: pb::GetReplicationPeerModificationProceduresRequest,
    ) -> Result<pb::GetReplicationPeerModificationProceduresResponse> {
        admin_peers::modifications(self)?;
        Ok(pb::GetReplicationPeerModificationProceduresResponse::default())
    }

    fn list_decommissioned_region_servers(
        &self,
        _: pb::ListDecommissionedRegionServersRequest,
    ) -> Result<pb::ListDecommissionedRegionServersResponse> {
        cluster::operate(self, |_| {
            Ok(pb::ListDecommissionedRegionServersResponse::default())
        })
    }

    fn clear_dead_servers(&self, _: pb::ClearDeadServersRequest) -> Result<pb::ClearDeadServersResponse> {
        cluster::operate(self, |_| Ok(pb::ClearDeadServersResponse::default()))
    }

    /// Quotas hold whenever there are some.
    fn is_rpc_throttle_enabled(
        &self,
        _: pb::IsRpcThrottleEnabledRequest,
    ) -> Result<pb::IsRpcThrottleEnabledResponse> {
        cluster::operate(self, |_| {
            Ok(pb::IsRpcThrottleEnabledResponse {
                rpc_throttle_enabled: true,
            })
        })
    }

    fn set_quota(&self, request: pb::SetQuotaRequest) -> Result<pb::SetQuotaResponse> {
        quota::set(self, &request)?;
        Ok(pb::SetQuotaResponse {})
    }

    fn get_quota_states(&self, _: pb::GetQuotaStatesRequest) -> Result<pb::GetQuotaStatesResponse> {
        cluster::operate(self, |_| Ok(pb::GetQuotaStatesResponse::default()))
    }

    fn get_space_quota_region_sizes(
        &self,
        _: pb::GetSpaceQuotaRegionSizesRequest,
    ) -> Result<pb::GetSpaceQuotaRegionSizesResponse> {
        cluster::operate(self, |_| Ok(pb::GetSpaceQuotaRegionSizesResponse::default()))
    }

    fn get_log_entries(&self, request: pb::LogRequest) -> Result<pb::LogEntry> {
        let answer = if request.log_class_name.ends_with("BalancerRejectionsRequest") {
            "BalancerRejectionsResponse"
        } else {
            "BalancerDecisionsResponse"
        };
        cluster::ask(self, |_| pb::LogEntry {
            log_class_name: format!("{MASTER_PROTOS}{answer}"),
            log_message: Bytes::new(),
        })
    }

    fn exec_master_service(
        &self,
        request: pb::CoprocessorServiceRequest,
    ) -> Result<pb::CoprocessorServiceResponse> {
        cluster::operate(self, |_| Err(coprocessor::on_master(&request)))
    }
}

/// Fails unless there is a namespace of that name. The failure is HBase's.
fn check_namespace(call: &AdminCall, name: &str) -> Result<()> {
    if namespaces::list(call)?
        .iter()
        .any(|namespace| namespace.name == name)
    {
        return Ok(());
    }
    Err(Error::NoSuchNamespace(name.to_owned()).into())
}
