//! Methods as `docs/compatibility.md` lists them, and those that no client's tour calls.

use basalt_idl::native::messages as pb;
use basalt_test_support::{Server, workspace};
use bytes::Bytes;

use super::client::{Client, create, create_split, exception, table_name};

/// The methods in the rows of "Native methods": service, method, and whether the method is served.
fn rows() -> Vec<(String, String, bool)> {
    let page = std::fs::read_to_string(workspace().join("docs/compatibility.md")).unwrap();
    let (_, below) = page.split_once("\n### Native methods").expect("the heading");
    let table = below.split("\n#").next().unwrap_or_default();
    let methods = |line: &str| -> Option<Vec<(String, String, bool)>> {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let names = cells
            .next()?
            .split('`')
            .step_by(2)
            .filter(|name| !name.is_empty());
        let is_served = cells.next()? != "absent";
        names
            .map(|name| {
                let (service, method) = name.split_once('.')?;
                Some((service.to_owned(), method.to_owned(), is_served))
            })
            .collect()
    };
    let lines = table.lines().filter(|line| line.starts_with("| `"));
    lines
        .flat_map(|line| methods(line).unwrap_or_else(|| panic!("not a row: {line}")))
        .collect()
}

/// Every method that the page calls absent is refused as HBase refuses a method that it does not have, and
/// no other is.
#[test]
fn the_page_says_which_methods_are_served() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let rows = rows();
    assert!(rows.len() > 100, "{} rows", rows.len());
    for (service, method, is_served) in rows {
        let mut client = Client::connect(&server, &service);
        // An empty message: most methods refuse it for its missing fields.
        client.call(1, &method, &pb::IsMasterRunningRequest {}, b"");
        let response = client.response().expect("a response");
        let is_unsupported = response.header.exception.is_some() && {
            let (class, text) = exception(&response);
            let is_unsupported = text.contains("java.lang.UnsupportedOperationException: ");
            assert!(!is_unsupported || class == "DoNotRetryIOException", "{class}");
            is_unsupported
        };
        assert_eq!(is_unsupported, !is_served, "{service}.{method}");
    }
    server.stop();
}

/// A server with the tables `t` and `off`, of which the second is disabled, and the master.
fn with_tables() -> (tempfile::TempDir, Server, Client) {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create_split(&server, "t", &["m"]);
    create(&server, "off");
    let mut master = Client::connect(&server, "MasterService");
    let disable = pb::DisableTableRequest {
        table_name: table_name("off"),
        ..pb::DisableTableRequest::default()
    };
    master.ask::<pb::DisableTableResponse>("DisableTable", &disable);
    (dir, server, master)
}

#[test]
fn tables_are_listed_by_state() {
    let (_dir, server, mut master) = with_tables();
    for (table, is_enabled) in [("t", true), ("off", false)] {
        let call = pb::ListTableNamesByStateRequest { is_enabled };
        let answer: pb::ListTableNamesByStateResponse = master.ask("ListTableNamesByState", &call);
        assert_eq!(answer.table_names, [table_name(table)]);
        let call = pb::ListTableDescriptorsByStateRequest { is_enabled };
        let answer: pb::ListTableDescriptorsByStateResponse =
            master.ask("ListTableDescriptorsByState", &call);
        assert_eq!(answer.table_schema.len(), 1);
        assert_eq!(answer.table_schema[0].table_name, Some(table_name(table)));
        let call = pb::GetTableStateRequest {
            table_name: table_name(table),
        };
        let answer: pb::GetTableStateResponse = master.ask("GetTableState", &call);
        let expected = if is_enabled {
            pb::table_state::State::Enabled
        } else {
            pb::table_state::State::Disabled
        };
        assert_eq!(answer.table_state.state(), expected, "{table}");
    }
    let call = pb::ListTableDescriptorsByNamespaceRequest {
        namespace_name: "default".to_owned(),
    };
    let answer: pb::ListTableDescriptorsByNamespaceResponse =
        master.ask("ListTableDescriptorsByNamespace", &call);
    assert_eq!(answer.table_schema.len(), 2);
    let call = pb::ListNamespaceDescriptorsRequest {};
    let answer: pb::ListNamespaceDescriptorsResponse = master.ask("ListNamespaceDescriptors", &call);
    let names: Vec<_> = answer
        .namespace_descriptor
        .iter()
        .map(|found| &found.name[..])
        .collect();
    assert_eq!(names, [&b"default"[..], b"hbase"]);
    server.stop();
}

/// Switches answer with their state before, and queries with the present one.
#[test]
fn switches_are_remembered() {
    let (_dir, server, mut master) = with_tables();
    for on in [false, true] {
        let call = pb::SetNormalizerRunningRequest { on };
        let answer: pb::SetNormalizerRunningResponse = master.ask("SetNormalizerRunning", &call);
        assert_eq!(answer.prev_normalizer_value, Some(!on));
        let answer: pb::IsNormalizerEnabledResponse =
            master.ask("IsNormalizerEnabled", &pb::IsNormalizerEnabledRequest {});
        assert_eq!(answer.enabled, on);
        let call = pb::EnableCatalogJanitorRequest { enable: on };
        let answer: pb::EnableCatalogJanitorResponse = master.ask("EnableCatalogJanitor", &call);
        assert_eq!(answer.prev_value, Some(!on));
        let answer: pb::IsCatalogJanitorEnabledResponse =
            master.ask("IsCatalogJanitorEnabled", &pb::IsCatalogJanitorEnabledRequest {});
        assert_eq!(answer.value, on);
        let call = pb::SetCleanerChoreRunningRequest { on };
        let answer: pb::SetCleanerChoreRunningResponse = master.ask("SetCleanerChoreRunning", &call);
        assert_eq!(answer.prev_value, Some(!on));
        let answer: pb::IsCleanerChoreEnabledResponse =
            master.ask("IsCleanerChoreEnabled", &pb::IsCleanerChoreEnabledRequest {});
        assert_eq!(answer.value, on);
        let call = pb::SetSnapshotCleanupRequest {
            enabled: on,
            ..pb::SetSnapshotCleanupRequest::default()
        };
        let answer: pb::SetSnapshotCleanupResponse = master.ask("SwitchSnapshotCleanup", &call);
        assert_eq!(answer.prev_snapshot_cleanup, !on);
        let answer: pb::IsSnapshotCleanupEnabledResponse = master.ask(
            "IsSnapshotCleanupEnabled",
            &pb::IsSnapshotCleanupEnabledRequest {},
        );
        assert_eq!(answer.enabled, on);
        let kind = pb::MasterSwitchType::Merge;
        let call = pb::SetSplitOrMergeEnabledRequest {
            enabled: on,
            switch_types: vec![kind.into()],
            ..pb::SetSplitOrMergeEnabledRequest::default()
        };
        let answer: pb::SetSplitOrMergeEnabledResponse = master.ask("SetSplitOrMergeEnabled", &call);
        assert_eq!(answer.prev_value, [!on]);
        let call = pb::IsSplitOrMergeEnabledRequest {
            switch_type: kind.into(),
        };
        let answer: pb::IsSplitOrMergeEnabledResponse = master.ask("IsSplitOrMergeEnabled", &call);
        assert_eq!(answer.enabled, on);
    }
    let ran: pb::RunCleanerChoreResponse = master.ask("RunCleanerChore", &pb::RunCleanerChoreRequest {});
    assert!(ran.cleaner_chore_ran);
    server.stop();
}

fn turn(master: &mut Client, kind: pb::MasterSwitchType, enabled: bool) -> Vec<bool> {
    let call = pb::SetSplitOrMergeEnabledRequest {
        enabled,
        switch_types: vec![kind.into()],
        ..pb::SetSplitOrMergeEnabledRequest::default()
    };
    let answer: pb::SetSplitOrMergeEnabledResponse = master.ask("SetSplitOrMergeEnabled", &call);
    answer.prev_value
}

/// The full names of a table's regions, which are the rows of `hbase:meta`.
fn region_names(server: &Server, table: &str) -> Vec<Bytes> {
    let mut client = Client::connect(server, "ClientService");
    let scan = pb::ScanRequest {
        region: Some(super::client::specifier(b"hbase:meta,,1")),
        scan: Some(pb::Scan {
            start_row: Some(Bytes::from(format!("{table},"))),
            stop_row: Some(Bytes::from(format!("{table}-"))),
            ..pb::Scan::default()
        }),
        number_of_rows: Some(100),
        close_scanner: Some(true),
        ..pb::ScanRequest::default()
    };
    client.call(1, "Scan", &scan, b"");
    let response = client.response().expect("a response");
    let mut cells = basalt_idl::native::cells::Cells::new(&response.cells);
    let mut rows: Vec<Bytes> = Vec::new();
    while let Ok(cell) = cells.require() {
        if rows.last().is_none_or(|last| last != cell.row) {
            rows.push(Bytes::copy_from_slice(cell.row));
        }
    }
    rows
}

/// Goal: while splits or merges are switched off, a request for one is refused in HBase's words.
#[test]
fn split_and_merge_switches_hold() {
    let (_dir, server, mut master) = with_tables();
    let mut admin = Client::connect(&server, "AdminService");
    let regions = |admin: &mut Client| -> Vec<pb::RegionInfo> {
        let answer: pb::GetOnlineRegionResponse =
            admin.ask("GetOnlineRegion", &pb::GetOnlineRegionRequest {});
        let regions = answer.region_info.into_iter();
        regions
            .filter(|region| region.table_name == table_name("t"))
            .collect()
    };
    let split = |region: &pb::RegionInfo| pb::SplitTableRegionRequest {
        region_info: region.clone(),
        split_row: Some(Bytes::from_static(b"b")),
        ..pb::SplitTableRegionRequest::default()
    };
    let before = regions(&mut admin);
    assert_eq!(turn(&mut master, pb::MasterSwitchType::Split, false), [true]);
    let (class, text) = master.refusal("SplitRegion", &split(&before[0]), b"");
    assert_eq!(class, "DoNotRetryIOException");
    assert!(text.contains("failed due to split switch off"), "{text}");
    assert_eq!(turn(&mut master, pb::MasterSwitchType::Split, true), [false]);
    master.ask::<pb::SplitTableRegionResponse>("SplitRegion", &split(&before[0]));
    let after = regions(&mut admin);
    assert_eq!((before.len(), after.len()), (2, 3));

    let mut names = region_names(&server, "t").into_iter();
    let merge = pb::MergeTableRegionsRequest {
        region: names
            .by_ref()
            .take(2)
            .map(|name| super::client::specifier(&name))
            .collect(),
        ..pb::MergeTableRegionsRequest::default()
    };
    assert_eq!(turn(&mut master, pb::MasterSwitchType::Merge, false), [true]);
    let (class, text) = master.refusal("MergeTableRegions", &merge, b"");
    assert_eq!(class, "DoNotRetryIOException");
    assert!(text.contains("failed because merge switch is off"), "{text}");
    server.stop();
}

/// Goal: switches of background work are as they were left after a restart.
#[test]
fn switches_survive_a_restart() {
    let (dir, server, mut master) = with_tables();
    master.ask::<pb::SetNormalizerRunningResponse>(
        "SetNormalizerRunning",
        &pb::SetNormalizerRunningRequest { on: false },
    );
    turn(&mut master, pb::MasterSwitchType::Split, false);
    server.stop();
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut master = Client::connect(&server, "MasterService");
    let normalizer: pb::IsNormalizerEnabledResponse =
        master.ask("IsNormalizerEnabled", &pb::IsNormalizerEnabledRequest {});
    assert!(!normalizer.enabled);
    let ran: pb::NormalizeResponse = master.ask("Normalize", &pb::NormalizeRequest::default());
    assert!(!ran.normalizer_ran);
    assert_eq!(turn(&mut master, pb::MasterSwitchType::Split, true), [false]);
    assert_eq!(turn(&mut master, pb::MasterSwitchType::Merge, true), [true]);
    server.stop();
}

/// Goal: a flush of a family with a typing error is refused, however the client asks for it.
#[test]
fn families_of_a_flush_must_exist() {
    let (_dir, server, mut master) = with_tables();
    let class = "NoSuchColumnFamilyException";
    let missing = Bytes::from_static(b"nofamily");
    let flush = |families: &[&'static str]| pb::FlushTableRequest {
        table_name: table_name("t"),
        column_family: families
            .iter()
            .map(|family| Bytes::from_static(family.as_bytes()))
            .collect(),
        ..pb::FlushTableRequest::default()
    };
    let refused = master.refusal("FlushTable", &flush(&["f", "nofamily"]), b"");
    assert_eq!(refused.0, class);
    assert!(
        refused
            .1
            .contains("Column families [nofamily] don't exist in table t"),
        "{}",
        refused.1
    );
    master.ask::<pb::FlushTableResponse>("FlushTable", &flush(&["f"]));
    let old = |families: &str| pb::ExecProcedureRequest {
        procedure: pb::ProcedureDescription {
            signature: "flush-table-proc".to_owned(),
            instance: Some("t".to_owned()),
            configuration: vec![pb::NameStringPair {
                name: "family".to_owned(),
                value: families.to_owned(),
            }],
            ..pb::ProcedureDescription::default()
        },
    };
    assert_eq!(master.refusal("ExecProcedure", &old("f,nofamily"), b"").0, class);
    master.ask::<pb::ExecProcedureResponse>("ExecProcedure", &old("f"));
    let mut admin = Client::connect(&server, "AdminService");
    let mut of_region = pb::FlushRegionRequest {
        region: super::client::region(&server, "t"),
        family: Some(missing),
        ..pb::FlushRegionRequest::default()
    };
    assert_eq!(admin.refusal("FlushRegion", &of_region, b"").0, class);
    of_region.family = Some(Bytes::from_static(b"f"));
    admin.ask::<pb::FlushRegionResponse>("FlushRegion", &of_region);
    server.stop();
}

/// One node has no dead servers, running procedures, or space quotas; questions about them are answered
/// as by an idle cluster.
#[test]
fn questions_about_what_one_node_lacks_have_empty_answers() {
    let (_dir, server, mut master) = with_tables();
    let empty = pb::IsMasterRunningRequest {};
    let answer: pb::GetProceduresResponse = master.ask("GetProcedures", &empty);
    assert!(answer.procedure.is_empty());
    let call = pb::AbortProcedureRequest {
        proc_id: 1,
        ..pb::AbortProcedureRequest::default()
    };
    let answer: pb::AbortProcedureResponse = master.ask("AbortProcedure", &call);
    assert!(!answer.is_procedure_aborted);
    let answer: pb::ClearDeadServersResponse = master.ask("ClearDeadServers", &empty);
    assert!(answer.server_name.is_empty());
    let answer: pb::GetQuotaStatesResponse = master.ask("GetQuotaStates", &empty);
    assert!(answer.table_snapshots.is_empty() && answer.ns_snapshots.is_empty());
    let answer: pb::GetSpaceQuotaRegionSizesResponse = master.ask("GetSpaceQuotaRegionSizes", &empty);
    assert!(answer.sizes.is_empty());
    let answer: pb::IsRpcThrottleEnabledResponse = master.ask("IsRpcThrottleEnabled", &empty);
    assert!(answer.rpc_throttle_enabled, "quotas hold");
    for method in [
        "getLastMajorCompactionTimestamp",
        "getLastMajorCompactionTimestampForRegion",
    ] {
        let answer: pb::MajorCompactionTimestampResponse = master.ask(method, &empty);
        assert_eq!(answer.compaction_timestamp, 0, "{method}");
    }
    let flush = |signature: &str| pb::ExecProcedureRequest {
        procedure: pb::ProcedureDescription {
            signature: signature.to_owned(),
            instance: Some("t".to_owned()),
            ..pb::ProcedureDescription::default()
        },
    };
    let answer: pb::ExecProcedureResponse = master.ask("ExecProcedureWithRet", &flush("flush-table-proc"));
    assert_eq!(answer.return_data, None);
    let (class, text) = master.refusal("ExecProcedureWithRet", &flush("rolllog-proc"), b"");
    assert_eq!(class, "DoNotRetryIOException");
    assert!(text.contains("rolllog-proc"), "{text}");
    server.stop();
}

#[test]
fn the_region_server_names_itself_and_its_regions() {
    let (_dir, server, _master) = with_tables();
    let empty = pb::IsMasterRunningRequest {};
    let mut registry = Client::connect(&server, "ClientMetaService");
    let master: pb::GetActiveMasterResponse = registry.ask("GetActiveMaster", &empty);
    let own = master.server_name.expect("a master");
    assert_eq!(own.port, Some(u32::from(server.thrift.port())));
    let masters: pb::GetMastersResponse = registry.ask("GetMasters", &empty);
    let masters = masters.master_servers.iter();
    assert!(
        masters
            .map(|entry| (&entry.server_name, entry.is_active))
            .eq([(&own, true)])
    );
    let nodes: pb::GetBootstrapNodesResponse = registry.ask("GetBootstrapNodes", &empty);
    assert_eq!(nodes.server_name, std::slice::from_ref(&own));
    let mut bootstrap = Client::connect(&server, "BootstrapNodeService");
    let nodes: pb::GetAllBootstrapNodesResponse = bootstrap.ask("GetAllBootstrapNodes", &empty);
    assert_eq!(nodes.node, std::slice::from_ref(&own));

    let mut admin = Client::connect(&server, "AdminService");
    let info: pb::GetServerInfoResponse = admin.ask("GetServerInfo", &empty);
    assert_eq!(info.server_info.server_name, own);
    let online: pb::GetOnlineRegionResponse = admin.ask("GetOnlineRegion", &empty);
    let of_t = online
        .region_info
        .iter()
        .filter(|region| region.table_name == table_name("t"));
    let starts: Vec<_> = of_t
        .map(|region| region.start_key.clone().unwrap_or_default())
        .collect();
    assert_eq!(starts, [Bytes::new(), Bytes::from_static(b"m")]);
    // The loads are those of the same regions, system tables included, as in HBase.
    let loads = |admin: &mut Client, table: Option<pb::TableName>| -> Vec<Bytes> {
        let call = pb::GetRegionLoadRequest { table_name: table };
        let answer: pb::GetRegionLoadResponse = admin.ask("GetRegionLoad", &call);
        let loads = answer.region_loads.into_iter();
        loads.map(|load| load.region_specifier.value).collect()
    };
    let all = loads(&mut admin, None);
    assert_eq!(all.len(), online.region_info.len());
    for system in ["hbase:meta,,1", "hbase:namespace,,"] {
        let is_there = |name: &Bytes| name.starts_with(system.as_bytes());
        assert_eq!(all.iter().filter(|name| is_there(name)).count(), 1, "{system}");
    }
    let meta = pb::TableName {
        namespace: Bytes::from_static(b"hbase"),
        qualifier: Bytes::from_static(b"meta"),
    };
    let of_meta = loads(&mut admin, Some(meta));
    assert_eq!((of_meta.len(), &of_meta[0][..13]), (1, &b"hbase:meta,,1"[..]));
    let of_t = loads(&mut admin, Some(table_name("t")));
    assert!(of_t.len() == 2 && of_t.iter().all(|name| name.starts_with(b"t,")));
    admin.ask::<pb::RollWalWriterResponse>("RollWALWriter", &empty);
    admin.ask::<pb::UpdateConfigurationResponse>("UpdateConfiguration", &empty);
    admin.ask::<pb::ClearCompactionQueuesResponse>("ClearCompactionQueues", &empty);
    server.stop();
}
