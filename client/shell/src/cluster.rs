//! Commands on the master of a cluster: switches, servers, procedures and regions by their state.
//! Basalt is the master of a cluster of one, and answers them over native RPC.

use basalt_client::TableName;
use basalt_client::native::Cluster;
use basalt_idl::native::messages as pb;
use basalt_idl::native::messages::MasterServiceMethod as Method;
use prost::Message;

use super::arguments::{Arguments, list, text};
use super::escape::{printable, timestamp};
use super::servers::Servers;
use super::session::{Outcome, Session};
use super::value::Value;
use super::{ShellError, ShellResult};
use basalt_client::admin::RegionMetrics;

fn wrong<T>(text: impl Into<String>) -> ShellResult<T> {
    Err(ShellError::Arguments(text.into()))
}

/// Switches: the call that sets one, and what it was before.
macro_rules! switches {
    ($($name:ident: $method:ident($request:ident { $field:ident $(, $others:ident)? }) -> $before:expr, $of:literal;)*) => {
        impl Session {
            $(pub(super) async fn $name(&mut self, mut arguments: Arguments) -> Outcome {
                let on = arguments.boolean("true or false")?;
                arguments.end()?;
                let request = pb::$request { $field: on $(, $others: Some(true))? };
                let before = $before(self.ask(Method::$method, &request).await?);
                self.print_answer(&format!("Previous {} state : {before}", $of), Value::Bool(before))
            })*
        }
    };
}

switches! {
    balance_switch: SetBalancerRunning(SetBalancerRunningRequest { on, synchronous })
        -> |answer: pb::SetBalancerRunningResponse| answer.prev_balance_value(), "balancer";
    normalizer_switch: SetNormalizerRunning(SetNormalizerRunningRequest { on })
        -> |answer: pb::SetNormalizerRunningResponse| answer.prev_normalizer_value(), "normalizer";
    catalog_janitor_switch: EnableCatalogJanitor(EnableCatalogJanitorRequest { enable })
        -> |answer: pb::EnableCatalogJanitorResponse| answer.prev_value(), "catalog janitor";
    cleaner_chore_switch: SetCleanerChoreRunning(SetCleanerChoreRunningRequest { on })
        -> |answer: pb::SetCleanerChoreRunningResponse| answer.prev_value(), "cleaner chore";
    snapshot_cleanup_switch: SwitchSnapshotCleanup(SetSnapshotCleanupRequest { enabled, synchronous })
        -> |answer: pb::SetSnapshotCleanupResponse| answer.prev_snapshot_cleanup, "snapshot cleanup";
}

/// Questions without arguments: the call, and the value in its answer.
macro_rules! questions {
    ($($name:ident: $method:ident($request:ident) -> $value:expr;)*) => {
        impl Session {
            $(pub(super) async fn $name(&mut self, mut arguments: Arguments) -> Outcome {
                arguments.end()?;
                let value: Value = $value(self.ask(Method::$method, &pb::$request {}).await?);
                self.print_answer(&value.to_string(), value)
            })*
        }
    };
}

questions! {
    balancer_enabled: IsBalancerEnabled(IsBalancerEnabledRequest)
        -> |answer: pb::IsBalancerEnabledResponse| Value::Bool(answer.enabled);
    normalizer_enabled: IsNormalizerEnabled(IsNormalizerEnabledRequest)
        -> |answer: pb::IsNormalizerEnabledResponse| Value::Bool(answer.enabled);
    catalog_janitor_enabled: IsCatalogJanitorEnabled(IsCatalogJanitorEnabledRequest)
        -> |answer: pb::IsCatalogJanitorEnabledResponse| Value::Bool(answer.value);
    catalog_janitor_run: RunCatalogScan(RunCatalogScanRequest)
        -> |answer: pb::RunCatalogScanResponse| Value::Integer(answer.scan_result().into());
    cleaner_chore_enabled: IsCleanerChoreEnabled(IsCleanerChoreEnabledRequest)
        -> |answer: pb::IsCleanerChoreEnabledResponse| Value::Bool(answer.value);
    cleaner_chore_run: RunCleanerChore(RunCleanerChoreRequest)
        -> |answer: pb::RunCleanerChoreResponse| Value::Bool(answer.cleaner_chore_ran);
    snapshot_cleanup_enabled: IsSnapshotCleanupEnabled(IsSnapshotCleanupEnabledRequest)
        -> |answer: pb::IsSnapshotCleanupEnabledResponse| Value::Bool(answer.enabled);
    maintenance_mode: IsMasterInMaintenanceMode(IsInMaintenanceModeRequest)
        -> |answer: pb::IsInMaintenanceModeResponse| Value::Bool(answer.in_maintenance_mode);
}

impl Session {
    /// The client for calls of the master. HBase's Thrift server has no such calls.
    pub(super) async fn master(&mut self) -> ShellResult<&Cluster> {
        if self.client.api == super::backend::Api::Thrift && !self.is_basalt().await? {
            let text = "HBase's Thrift server does not have this call; --api native, with ZooKeeper's address, has it";
            return Err(ShellError::Refused(text.to_owned()));
        }
        Ok(&self.client.cluster)
    }

    /// Whether the server has Basalt's own calls. It is asked once.
    pub(super) async fn is_basalt(&mut self) -> ShellResult<bool> {
        if let Some(known) = self.is_basalt {
            return Ok(known);
        }
        let found = match self.admin.status().await {
            Ok(_) => true,
            Err(error) if error.is_unknown_method() => false,
            Err(error) => return Err(error.into()),
        };
        self.is_basalt = Some(found);
        Ok(found)
    }

    /// Calls the master.
    pub(super) async fn ask<M: Message + Default>(
        &mut self,
        method: Method,
        request: &impl Message,
    ) -> ShellResult<M> {
        Ok(self.master().await?.ask_by_message(method, request).await?)
    }

    pub(super) async fn cluster_status(&mut self) -> ShellResult<pb::ClusterStatus> {
        let everything = pb::GetClusterStatusRequest::default();
        let answer: pb::GetClusterStatusResponse = self.ask(Method::GetClusterStatus, &everything).await?;
        Ok(answer.cluster_status)
    }

    pub(super) async fn split_or_merge_switch(&mut self, mut arguments: Arguments) -> Outcome {
        let kind = switch_type(&arguments.text("'SPLIT' or 'MERGE'")?)?;
        let enabled = arguments.boolean("true or false")?;
        arguments.end()?;
        let request = pb::SetSplitOrMergeEnabledRequest {
            enabled,
            synchronous: Some(true),
            switch_types: vec![kind.into()],
        };
        let answer: pb::SetSplitOrMergeEnabledResponse =
            self.ask(Method::SetSplitOrMergeEnabled, &request).await?;
        let before = answer.prev_value.first().copied().unwrap_or_default();
        self.print_answer(&format!("Previous switch state : {before}"), Value::Bool(before))
    }

    pub(super) async fn split_or_merge_enabled(&mut self, mut arguments: Arguments) -> Outcome {
        let switch_type = switch_type(&arguments.text("'SPLIT' or 'MERGE'")?)?.into();
        arguments.end()?;
        let request = pb::IsSplitOrMergeEnabledRequest { switch_type };
        let answer: pb::IsSplitOrMergeEnabledResponse =
            self.ask(Method::IsSplitOrMergeEnabled, &request).await?;
        self.print_answer(&answer.enabled.to_string(), Value::Bool(answer.enabled))
    }

    pub(super) async fn normalize(&mut self, mut arguments: Arguments) -> Outcome {
        let mut options = arguments.options()?;
        arguments.end()?;
        let mut request = pb::NormalizeRequest {
            regex: options.text("REGEX")?,
            namespace: options.text("NAMESPACE")?,
            ..pb::NormalizeRequest::default()
        };
        for key in ["TABLE_NAME", "TABLE_NAMES"] {
            if let Some(names) = options.take(key) {
                for name in list(names, key)? {
                    request.table_names.push(table_name(&text(name, key)?)?);
                }
            }
        }
        options.end(&["TABLE_NAME", "TABLE_NAMES", "NAMESPACE", "REGEX"])?;
        let answer: pb::NormalizeResponse = self.ask(Method::Normalize, &request).await?;
        let ran = answer.normalizer_ran;
        self.print_answer(&ran.to_string(), Value::Bool(ran))
    }

    /// Prints how many regions the balancer would move.
    pub(super) async fn balance_dry_run(&mut self) -> Outcome {
        let request = pb::BalanceRequest {
            ignore_rit: None,
            dry_run: Some(true),
        };
        let answer: pb::BalanceResponse = self.ask(Method::Balance, &request).await?;
        let moves = i64::from(answer.moves_calculated());
        let text = format!("The balancer would move {moves} regions");
        self.print_answer(&text, Value::Integer(moves))
    }

    /// Prints the names of the servers in a state.
    pub(super) async fn list_servers(&mut self, mut arguments: Arguments, which: Servers) -> Outcome {
        arguments.end()?;
        let servers = match which {
            Servers::Decommissioned => {
                let request = pb::ListDecommissionedRegionServersRequest {};
                let answer: pb::ListDecommissionedRegionServersResponse = self
                    .ask(Method::ListDecommissionedRegionServers, &request)
                    .await?;
                answer.server_name
            }
            Servers::Live => {
                let live = self.cluster_status().await?.live_servers.into_iter();
                live.map(|server| server.server).collect()
            }
            Servers::Dead => self.cluster_status().await?.dead_servers,
            Servers::Unknown => self.cluster_status().await?.unknown_servers,
        };
        let names: Vec<String> = servers.iter().map(server_name).collect();
        self.print_names("SERVERNAME", &names)
    }

    pub(super) async fn security_capabilities(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        let request = pb::SecurityCapabilitiesRequest {};
        let answer: pb::SecurityCapabilitiesResponse =
            self.ask(Method::GetSecurityCapabilities, &request).await?;
        let names: Vec<&str> = answer
            .capabilities()
            .map(|capability| capability.as_str_name())
            .collect();
        self.print_names("CAPABILITY", &names)
    }

    pub(super) async fn list_procedures(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        let answer: pb::GetProceduresResponse = self
            .ask(Method::GetProcedures, &pb::GetProceduresRequest {})
            .await?;
        let columns = ["PID", "NAME", "STATE", "SUBMITTED", "LAST_UPDATE"];
        let rows = answer.procedure.iter().map(|procedure| {
            vec![
                procedure.proc_id.to_string(),
                procedure.class_name.clone(),
                procedure.state().as_str_name().to_owned(),
                timestamp(procedure.submitted_time as i64),
                timestamp(procedure.last_update as i64),
            ]
        });
        let rows: Vec<_> = rows.collect();
        self.output.grid(&columns, &rows)?;
        self.print_count(rows.len())?;
        Ok(None)
    }

    pub(super) async fn list_locks(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        let answer: pb::GetLocksResponse = self.ask(Method::GetLocks, &pb::GetLocksRequest {}).await?;
        let columns = ["RESOURCE", "NAME", "LOCK", "WAITING"];
        let rows = answer.lock.iter().map(|lock| {
            vec![
                lock.resource_type().as_str_name().to_owned(),
                lock.resource_name.clone().unwrap_or_default(),
                lock.lock_type().as_str_name().to_owned(),
                lock.waiting_procedures.len().to_string(),
            ]
        });
        let rows: Vec<_> = rows.collect();
        self.output.grid(&columns, &rows)?;
        self.print_count(rows.len())?;
        Ok(None)
    }

    /// Prints the regions that are neither open nor closed. On one node there is never one.
    pub(super) async fn regions_in_transition(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        let regions = self.cluster_status().await?.regions_in_transition;
        self.output.header(&["REGION", "STATE"])?;
        for region in &regions {
            let name = printable(&region.spec.value);
            let state = region.region_state.state().as_str_name();
            self.output.texts(&["region", "state"], &[&name, state])?;
        }
        self.print_count(regions.len())?;
        Ok(None)
    }

    pub(super) async fn region_info(&mut self, mut arguments: Arguments) -> Outcome {
        let region = self.one_region(&mut arguments).await?;
        let table = text(region.table_name.to_vec(), "a table")?;
        let location = self
            .client
            .table(&table)?
            .region_of(region.start_key.to_vec())
            .await?;
        let server = format!("{},{},{}", location.host, location.port, location.start_code);
        self.output.header(&["NAME", "VALUE"])?;
        for (name, value) in [
            ("NAME", printable(&region.region_name)),
            ("ENCODED", region.encoded_name.clone()),
            ("TABLE", table),
            ("STARTKEY", printable(&region.start_key)),
            ("ENDKEY", printable(&region.end_key)),
            ("SERVER", server),
            ("READS", region.read_requests.to_string()),
            ("WRITES", region.write_requests.to_string()),
            ("MEMSTORE BYTES", region.memstore_bytes.to_string()),
            ("STORE FILES", region.store_files.to_string()),
            ("STORE FILE BYTES", region.store_file_bytes.to_string()),
        ] {
            self.output.texts(&["name", "value"], &[name, &value])?;
        }
        Ok(None)
    }

    pub(super) async fn truncate_region(&mut self, mut arguments: Arguments) -> Outcome {
        let region = self.one_region(&mut arguments).await?;
        let table: TableName = text(region.table_name.to_vec(), "a table")?.parse()?;
        let id = region.region_name.split(|byte| *byte == b',').next_back();
        let id = id.and_then(|id| {
            std::str::from_utf8(id.split(|byte| *byte == b'.').next()?)
                .ok()?
                .parse()
                .ok()
        });
        let Some(region_id) = id else {
            let name = printable(&region.region_name);
            return Err(ShellError::Refused(format!(
                "the name {name} has no number of a region"
            )));
        };
        let request = pb::TruncateRegionRequest {
            region_info: pb::RegionInfo {
                region_id,
                table_name: message_of(&table),
                start_key: Some(region.start_key),
                end_key: Some(region.end_key),
                ..pb::RegionInfo::default()
            },
            ..pb::TruncateRegionRequest::default()
        };
        let master = self.master().await?;
        master
            .change_by_message(Some(&table), Method::TruncateRegion, &request)
            .await?;
        Ok(None)
    }

    /// The region that is named in full or by its 32 hex digits.
    async fn one_region(&mut self, arguments: &mut Arguments) -> ShellResult<RegionMetrics> {
        let name = arguments.bytes("a region")?;
        arguments.end()?;
        let regions = self.admin.regions(None).await?;
        let is_named =
            |region: &RegionMetrics| region.region_name == name || region.encoded_name.as_bytes() == name;
        let found = regions.into_iter().find(is_named);
        found.ok_or_else(|| {
            let name = printable(&name);
            ShellError::Refused(format!(
                "no region is called {name}; list_regions 't' names those of a table"
            ))
        })
    }

    /// Sets the store file tracker of a table, or of a family.
    pub(super) async fn change_tracker(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        let first = arguments.text("a tracker")?;
        let second = arguments.optional_text("a tracker")?;
        arguments.end()?;
        match second {
            None => self.set_tracker(&table, None, first).await?,
            Some(tracker) => self.set_tracker(&table, Some(first), tracker).await?,
        }
        Ok(None)
    }

    pub(super) async fn change_trackers(&mut self, mut arguments: Arguments) -> Outcome {
        let (pattern, tracker) = (arguments.text("a pattern")?, arguments.text("a tracker")?);
        arguments.end()?;
        for table in self.client.list_tables(Some(&pattern)).await? {
            self.set_tracker(&table.to_string(), None, tracker.clone())
                .await?;
            self.output.note(&format!("Changed {table}"))?;
        }
        Ok(None)
    }

    async fn set_tracker(&mut self, table: &str, family: Option<String>, dst_sft: String) -> ShellResult<()> {
        let name: TableName = table.parse()?;
        let table_name = message_of(&name);
        let master = self.master().await?;
        match family {
            None => {
                let request = pb::ModifyTableStoreFileTrackerRequest {
                    table_name,
                    dst_sft,
                    ..pb::ModifyTableStoreFileTrackerRequest::default()
                };
                let method = Method::ModifyTableStoreFileTracker;
                master.change_by_message(Some(&name), method, &request).await?;
            }
            Some(family) => {
                let request = pb::ModifyColumnStoreFileTrackerRequest {
                    table_name,
                    family: family.into(),
                    dst_sft,
                    ..pb::ModifyColumnStoreFileTrackerRequest::default()
                };
                let method = Method::ModifyColumnStoreFileTracker;
                master.change_by_message(Some(&name), method, &request).await?;
            }
        }
        Ok(())
    }
}

fn switch_type(name: &str) -> ShellResult<pb::MasterSwitchType> {
    match &name.to_ascii_uppercase()[..] {
        "SPLIT" => Ok(pb::MasterSwitchType::Split),
        "MERGE" => Ok(pb::MasterSwitchType::Merge),
        _ => wrong(format!("the switch is '{name}' and must be 'SPLIT' or 'MERGE'")),
    }
}

/// `host,port,startcode`.
pub(super) fn server_name(name: &pb::ServerName) -> String {
    let (host, port) = (&name.host_name, name.port.unwrap_or_default());
    format!("{host},{port},{}", name.start_code.unwrap_or_default())
}

pub(super) fn table_name(name: &str) -> ShellResult<pb::TableName> {
    Ok(message_of(&name.parse()?))
}

fn message_of(name: &TableName) -> pb::TableName {
    pb::TableName {
        namespace: name.namespace().to_owned().into(),
        qualifier: name.qualifier().to_owned().into(),
    }
}
