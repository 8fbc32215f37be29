//! Trackers of store files: options of a table that have calls of their own in HBase.

use basalt_idl::native::messages as pb;
use basalt_test_support::Server;
use bytes::Bytes;

use super::client::{Client, create, failure_of, table_name};

const TRACKER: &str = "hbase.store.file-tracker.impl";

fn started() -> (tempfile::TempDir, Server) {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    (dir, server)
}

fn descriptor(master: &mut Client, table: &str) -> pb::TableSchema {
    let call = pb::GetTableDescriptorsRequest {
        table_names: vec![table_name(table)],
        ..pb::GetTableDescriptorsRequest::default()
    };
    let answer: pb::GetTableDescriptorsResponse = master.ask("GetTableDescriptors", &call);
    answer.table_schema[0].clone()
}

/// The table's options that concern trackers, sorted.
fn trackers(schema: &pb::TableSchema) -> Vec<String> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let options = schema.attributes.iter();
    let mut found: Vec<_> = options
        .map(|pair| format!("{}={}", text(&pair.first), text(&pair.second)))
        .filter(|option| option.starts_with("hbase.store.file-tracker."))
        .collect();
    found.sort();
    found
}

#[test]
fn store_file_trackers_are_stored() {
    let (_dir, server) = started();
    create(&server, "t");
    let mut master = Client::connect(&server, "MasterService");
    let of_table = |table: &str, dst_sft: &str| pb::ModifyTableStoreFileTrackerRequest {
        table_name: table_name(table),
        dst_sft: dst_sft.to_owned(),
        ..pb::ModifyTableStoreFileTrackerRequest::default()
    };
    let of_family = |family: &'static str, dst_sft: &str| pb::ModifyColumnStoreFileTrackerRequest {
        table_name: table_name("t"),
        family: Bytes::from_static(family.as_bytes()),
        dst_sft: dst_sft.to_owned(),
        ..pb::ModifyColumnStoreFileTrackerRequest::default()
    };
    let (table, family) = ("ModifyTableStoreFileTracker", "ModifyColumnStoreFileTracker");
    master.ask::<pb::ModifyTableStoreFileTrackerResponse>(table, &of_table("t", "FILE"));
    master.ask::<pb::ModifyColumnStoreFileTrackerResponse>(family, &of_family("f", "default"));
    let call = pb::GetTableDescriptorsRequest {
        table_names: vec![table_name("t")],
        ..pb::GetTableDescriptorsRequest::default()
    };
    let answer: pb::GetTableDescriptorsResponse = master.ask("GetTableDescriptors", &call);
    let schema = &answer.table_schema[0];
    let name = "hbase.store.file-tracker.impl";
    let stored = schema.attributes.iter().find(|pair| pair.first == name);
    assert_eq!(stored.expect("the table's").second, "FILE");
    let stored = schema.column_families[0].configuration.iter();
    let stored: Vec<_> = stored.filter(|pair| pair.name == name).collect();
    assert_eq!(
        stored.iter().map(|pair| &*pair.value).collect::<Vec<_>>(),
        ["default"]
    );
    for (refusal, class, expected) in [
        (
            master.refusal(table, &of_table("missing", "FILE"), b""),
            "TableNotFoundException",
            "missing",
        ),
        (
            master.refusal(table, &of_table("t", "MIGRATION"), b""),
            "DoNotRetryIOException",
            "Do not need to transfer to MIGRATION",
        ),
        (
            master.refusal(table, &of_table("t", "org.acme.Tracker"), b""),
            "DoNotRetryIOException",
            "org.acme.Tracker is no store file tracker; DEFAULT and FILE are",
        ),
        (
            master.refusal(family, &of_family("g", "FILE"), b""),
            "NoSuchColumnFamilyException",
            "g",
        ),
    ] {
        assert_eq!(refusal.0, class, "{}", refusal.1);
        assert!(refusal.1.contains(expected), "{}", refusal.1);
    }
    server.stop();
}

/// HBase ends a migration that is under way, and refuses a disabled table.
#[test]
fn a_new_tracker_ends_a_migration() {
    let (_dir, server) = started();
    create(&server, "t");
    let mut master = Client::connect(&server, "MasterService");
    let mut schema = descriptor(&mut master, "t");
    for (name, value) in [
        (TRACKER, "MIGRATION"),
        ("hbase.store.file-tracker.migration.src.impl", "FILE"),
        ("hbase.store.file-tracker.migration.dst.impl", "DEFAULT"),
    ] {
        schema.attributes.retain(|pair| pair.first != name);
        schema.attributes.push(pb::BytesBytesPair {
            first: name.into(),
            second: value.into(),
        });
    }
    let alter = pb::ModifyTableRequest {
        table_name: table_name("t"),
        table_schema: schema,
        ..pb::ModifyTableRequest::default()
    };
    master.ask::<pb::ModifyTableResponse>("ModifyTable", &alter);
    assert_eq!(trackers(&descriptor(&mut master, "t")).len(), 3);
    let modify = |tracker: &str| pb::ModifyTableStoreFileTrackerRequest {
        table_name: table_name("t"),
        dst_sft: tracker.to_owned(),
        ..pb::ModifyTableStoreFileTrackerRequest::default()
    };
    let method = "ModifyTableStoreFileTracker";
    master.ask::<pb::ModifyTableStoreFileTrackerResponse>(method, &modify("FILE"));
    let file = format!("{TRACKER}=FILE");
    assert_eq!(trackers(&descriptor(&mut master, "t")), [file.as_str()]);
    master.ask::<pb::ModifyTableStoreFileTrackerResponse>(method, &modify("file"));
    assert_eq!(trackers(&descriptor(&mut master, "t")), [file.as_str()]);
    let disable = pb::DisableTableRequest {
        table_name: table_name("t"),
        ..pb::DisableTableRequest::default()
    };
    master.ask::<pb::DisableTableResponse>("DisableTable", &disable);
    let (class, text) = master.refusal(method, &modify("DEFAULT"), b"");
    assert_eq!(class, "TableNotEnabledException", "{text}");
    server.stop();
}

/// The tracker of the call replaces the snapshot's. HBase checks its name after the answer, so an unknown
/// tracker fails the procedure.
#[test]
fn a_clone_gets_the_tracker_of_its_call() {
    let (_dir, server) = started();
    create(&server, "t");
    let mut master = Client::connect(&server, "MasterService");
    let of_family = pb::ModifyColumnStoreFileTrackerRequest {
        table_name: table_name("t"),
        family: Bytes::from_static(b"f"),
        dst_sft: "FILE".to_owned(),
        ..pb::ModifyColumnStoreFileTrackerRequest::default()
    };
    let method = "ModifyColumnStoreFileTracker";
    master.ask::<pb::ModifyColumnStoreFileTrackerResponse>(method, &of_family);
    let snapshot = |name: &str, table: &str| pb::SnapshotDescription {
        name: name.to_owned(),
        table: Some(table.to_owned()),
        ..pb::SnapshotDescription::default()
    };
    let take = pb::SnapshotRequest {
        snapshot: snapshot("s", "t"),
        ..pb::SnapshotRequest::default()
    };
    master.ask::<pb::SnapshotResponse>("Snapshot", &take);
    let mut clone = |table: &str, tracker: Option<&str>| {
        let call = pb::RestoreSnapshotRequest {
            snapshot: snapshot("s", table),
            custom_sft: tracker.map(str::to_owned),
            ..pb::RestoreSnapshotRequest::default()
        };
        let answer: pb::RestoreSnapshotResponse = master.ask("RestoreSnapshot", &call);
        let failed = failure_of(&mut master, answer.proc_id);
        if let Some(failed) = failed {
            return Err(failed.message.unwrap_or_default());
        }
        let schema = descriptor(&mut master, table);
        let of_family = schema.column_families[0].configuration.iter();
        let of_family = of_family.filter(|pair| pair.name == TRACKER).count();
        Ok((trackers(&schema), of_family))
    };
    let set = |tracker: &str| vec![format!("{TRACKER}={tracker}")];
    assert_eq!(clone("same", None), Ok((set("DEFAULT"), 1)));
    assert_eq!(clone("other", Some("FILE")), Ok((set("FILE"), 0)));
    let unknown = "java.lang.RuntimeException: java.lang.RuntimeException: \
                   java.lang.ClassNotFoundException: Class org.acme.T not found";
    assert_eq!(clone("none", Some("org.acme.T")), Err(unknown.to_owned()));
    let tables: pb::GetTableNamesResponse = master.ask("GetTableNames", &pb::GetTableNamesRequest::default());
    let names: Vec<_> = tables
        .table_names
        .iter()
        .map(|name| &name.qualifier[..])
        .collect();
    assert_eq!(names, [&b"other"[..], b"same", b"t"]);
    server.stop();
}
