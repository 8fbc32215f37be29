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
    let dir = tempfile::tempdir().unwrap();
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
    let dir = tempfile::tempdir().unwrap();
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
    admin.ask::<pb::RollWalWriterResponse>("RollWALWriter", &empty);
    admin.ask::<pb::UpdateConfigurationResponse>("UpdateConfiguration", &empty);
    admin.ask::<pb::ClearCompactionQueuesResponse>("ClearCompactionQueues", &empty);
    server.stop();
}
