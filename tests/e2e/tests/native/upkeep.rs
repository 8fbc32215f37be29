//! Truncation of regions, the last major compaction, store files, procedures by name, and the region
//! that stands for MOB files.

use basalt_idl::native::messages as pb;
use basalt_idl::native::messages::get_region_info_response::CompactionState;
use basalt_test_support::{Server, until};
use bytes::Bytes;

use super::client::{Client, create, create_split, failure_of, region, specifier, table_name};
use super::requests::{value_of, write};

fn started() -> (tempfile::TempDir, Server) {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    (dir, server)
}

/// The table's regions, in key order, with their names.
fn regions(server: &Server) -> Vec<(pb::RegionInfo, pb::RegionSpecifier)> {
    let mut admin = Client::connect(server, "AdminService");
    let call = pb::GetRegionLoadRequest {
        table_name: Some(table_name("t")),
    };
    let loads: pb::GetRegionLoadResponse = admin.ask("GetRegionLoad", &call);
    let info = |load: &pb::RegionLoad| {
        let region = load.region_specifier.clone();
        let call = pb::GetRegionInfoRequest {
            region: region.clone(),
            ..pb::GetRegionInfoRequest::default()
        };
        let answer: pb::GetRegionInfoResponse = admin.ask("GetRegionInfo", &call);
        (answer.region_info, region)
    };
    loads.region_loads.iter().map(info).collect()
}

fn flush(server: &Server) {
    let mut master = Client::connect(server, "MasterService");
    let call = pb::FlushTableRequest {
        table_name: table_name("t"),
        ..pb::FlushTableRequest::default()
    };
    master.ask::<pb::FlushTableResponse>("FlushTable", &call);
}

#[test]
fn one_region_is_truncated() {
    let (_dir, server) = started();
    create_split(&server, "t", &["m"]);
    let before = regions(&server);
    let mut client = Client::connect(&server, "ClientService");
    write(&mut client, &before[0].1, "a", &[("q", "1")]);
    write(&mut client, &before[1].1, "x", &[("q", "2")]);
    let mut master = Client::connect(&server, "MasterService");
    let truncate = |info: &pb::RegionInfo, nonce: u64| pb::TruncateRegionRequest {
        region_info: info.clone(),
        nonce_group: Some(4),
        nonce: Some(nonce),
    };
    let call = truncate(&before[0].0, 1);
    let first: pb::TruncateRegionResponse = master.ask("TruncateRegion", &call);
    // The name that clients have cached stays valid.
    assert_eq!(value_of(&mut client, &before[0].1, "a"), None);
    assert_eq!(value_of(&mut client, &before[1].1, "x"), Some(b"2".to_vec()));
    assert_eq!(regions(&server), before);
    write(&mut client, &before[0].1, "a", &[("q", "3")]);
    let again: pb::TruncateRegionResponse = master.ask("TruncateRegion", &call);
    assert_eq!(again.proc_id, first.proc_id, "a repeated nonce");
    assert_eq!(value_of(&mut client, &before[0].1, "a"), Some(b"3".to_vec()));

    let mut nonce = 1;
    let mut refused = |info: pb::RegionInfo, text: &str| {
        nonce += 1;
        let (class, found) = master.refusal("TruncateRegion", &truncate(&info, nonce), b"");
        assert!(found.contains(text), "{class}: {found}");
        class
    };
    let gone = pb::RegionInfo {
        region_id: 7,
        ..before[0].0.clone()
    };
    refused(gone, "the region of t with id 7 is gone");
    let missing = pb::RegionInfo {
        table_name: table_name("missing"),
        ..before[0].0.clone()
    };
    assert_eq!(refused(missing, "missing"), "TableNotFoundException");
    let meta = pb::RegionInfo {
        region_id: 1,
        table_name: pb::TableName {
            namespace: Bytes::from_static(b"hbase"),
            qualifier: Bytes::from_static(b"meta"),
        },
        ..pb::RegionInfo::default()
    };
    // HBase answers this call; the client gets the text, without a class, with the procedure's result.
    let answer: pb::TruncateRegionResponse = master.ask("TruncateRegion", &truncate(&meta, 9));
    let failed = failure_of(&mut master, answer.proc_id.expect("an id"));
    assert_eq!(
        failed.expect("an exception").message.as_deref(),
        Some("Can't truncate region in catalog tables")
    );
    assert_eq!(failure_of(&mut master, first.proc_id.expect("an id")), None);
    server.stop();
}

/// As in HBase: programs compact `hbase:meta` like other tables.
#[test]
fn the_region_of_hbase_meta_is_flushed_and_compacted() {
    let (_dir, server) = started();
    let mut admin = Client::connect(&server, "AdminService");
    let meta = || pb::RegionSpecifier {
        r#type: pb::region_specifier::RegionSpecifierType::RegionName.into(),
        value: "hbase:meta,,1".into(),
    };
    let flush = pb::FlushRegionRequest {
        region: meta(),
        ..pb::FlushRegionRequest::default()
    };
    admin.ask::<pb::FlushRegionResponse>("FlushRegion", &flush);
    let compact = pb::CompactRegionRequest {
        region: meta(),
        major: Some(true),
        family: None,
    };
    admin.ask::<pb::CompactRegionResponse>("CompactRegion", &compact);
    server.stop();
}

/// 0 until a major compaction; then the same in the region's load and for the table.
#[test]
fn the_last_major_compaction_is_told() {
    let (_dir, server) = started();
    create_split(&server, "t", &["m"]);
    let regions = regions(&server);
    let mut client = Client::connect(&server, "ClientService");
    write(&mut client, &regions[0].1, "a", &[("q", "1")]);
    write(&mut client, &regions[1].1, "x", &[("q", "1")]);
    flush(&server);
    let (mut master, mut admin) = (
        Client::connect(&server, "MasterService"),
        Client::connect(&server, "AdminService"),
    );
    let mut of_table = || -> i64 {
        let call = pb::MajorCompactionTimestampRequest {
            table_name: table_name("t"),
        };
        let answer: pb::MajorCompactionTimestampResponse =
            master.ask("getLastMajorCompactionTimestamp", &call);
        answer.compaction_timestamp
    };
    let of_region = |region: &pb::RegionSpecifier| -> i64 {
        let mut master = Client::connect(&server, "MasterService");
        let call = pb::MajorCompactionTimestampForRegionRequest {
            region: region.clone(),
        };
        let answer: pb::MajorCompactionTimestampResponse =
            master.ask("getLastMajorCompactionTimestampForRegion", &call);
        answer.compaction_timestamp
    };
    assert_eq!((of_table(), of_region(&regions[0].1)), (0, 0));
    let compact = |admin: &mut Client, region: &pb::RegionSpecifier| {
        let call = pb::CompactRegionRequest {
            region: region.clone(),
            major: Some(true),
            family: None,
        };
        admin.ask::<pb::CompactRegionResponse>("CompactRegion", &call);
    };
    compact(&mut admin, &regions[0].1);
    until("the first region's compaction", || of_region(&regions[0].1) > 0);
    assert_eq!(of_table(), 0, "the second region was not compacted");
    compact(&mut admin, &regions[1].1);
    until("the second region's compaction", || of_table() > 0);
    let both = regions.iter().map(|(_, region)| of_region(region));
    assert_eq!(both.min(), Some(of_table()));
    let load: pb::GetRegionLoadResponse = admin.ask("GetRegionLoad", &pb::GetRegionLoadRequest::default());
    let load = load
        .region_loads
        .iter()
        .find(|load| load.region_specifier == regions[0].1);
    let told = load.expect("the region").last_major_compaction_ts;
    assert_eq!(told, Some(of_region(&regions[0].1) as u64));
    assert_eq!(
        of_region(&specifier(b"t,,7.ab.")),
        0,
        "a region that is not there"
    );
    server.stop();
}

#[test]
fn store_files_are_named_below_the_data_directory() {
    let (dir, server) = started();
    create(&server, "t");
    let region = region(&server, "t");
    let mut client = Client::connect(&server, "ClientService");
    write(&mut client, &region, "a", &[("q", "1")]);
    let mut admin = Client::connect(&server, "AdminService");
    let call = |family: &'static [u8]| pb::GetStoreFileRequest {
        region: region.clone(),
        family: (!family.is_empty())
            .then(|| Bytes::from_static(family))
            .into_iter()
            .collect(),
    };
    let files = |admin: &mut Client, family| -> Vec<String> {
        let answer: pb::GetStoreFileResponse = admin.ask("GetStoreFile", &call(family));
        answer.store_file
    };
    assert_eq!(files(&mut admin, b"f"), [""; 0]);
    flush(&server);
    let found = files(&mut admin, b"f");
    assert_eq!(found.len(), 1);
    assert_eq!(files(&mut admin, b""), found);
    assert!(dir.path().join("data").join(&found[0]).is_file(), "{found:?}");
    let (_, text) = admin.refusal("GetStoreFile", &call(b"g"), b"");
    assert!(text.contains("No column family : g available"), "{text}");
    server.stop();
}

/// HBase's `online-snapshot`, which takes the table from its configuration.
#[test]
fn a_snapshot_is_a_procedure() {
    let (_dir, server) = started();
    create(&server, "t");
    let mut master = Client::connect(&server, "MasterService");
    let procedure = pb::ProcedureDescription {
        signature: "online-snapshot".to_owned(),
        instance: Some("s".to_owned()),
        configuration: vec![pb::NameStringPair {
            name: "table".to_owned(),
            value: "t".to_owned(),
        }],
        ..pb::ProcedureDescription::default()
    };
    let done = pb::IsProcedureDoneRequest {
        procedure: Some(procedure.clone()),
    };
    let (class, _) = master.refusal("IsProcedureDone", &done, b"");
    assert_eq!(class, "UnknownSnapshotException");
    let exec = pb::ExecProcedureRequest { procedure };
    let answer: pb::ExecProcedureResponse = master.ask("ExecProcedure", &exec);
    assert!(answer.expected_timeout > Some(0));
    let answer: pb::IsProcedureDoneResponse = master.ask("IsProcedureDone", &done);
    assert_eq!(answer.done, Some(true));
    let listed: pb::GetCompletedSnapshotsResponse =
        master.ask("GetCompletedSnapshots", &pb::GetCompletedSnapshotsRequest {});
    assert_eq!(listed.snapshots[0].name, "s");
    let (class, _) = master.refusal("ExecProcedure", &exec, b"");
    assert_eq!(class, "SnapshotExistsException");
    server.stop();
}

/// Java's Admin asks for MOB files by the name of a region that does not exist.
#[test]
fn mob_files_are_never_being_compacted() {
    let (_dir, server) = started();
    create(&server, "t");
    let mut admin = Client::connect(&server, "AdminService");
    let state = |table: &str| pb::GetRegionInfoRequest {
        region: specifier(format!("{table},.mob,0.5cb7.").as_bytes()),
        compaction_state: Some(true),
        ..pb::GetRegionInfoRequest::default()
    };
    let answer: pb::GetRegionInfoResponse = admin.ask("GetRegionInfo", &state("t"));
    assert_eq!(answer.compaction_state(), CompactionState::None);
    assert_eq!(answer.region_info.table_name, table_name("t"));
    let (class, _) = admin.refusal("GetRegionInfo", &state("missing"), b"");
    assert_eq!(class, "TableNotFoundException");
    let compact = |family: &'static [u8]| pb::CompactRegionRequest {
        region: specifier(b"t,.mob,0.5cb7."),
        major: Some(true),
        family: Some(Bytes::from_static(family)),
    };
    let (_, text) = admin.refusal("CompactRegion", &compact(b""), b"");
    assert!(text.contains("No mob column families are assigned"), "{text}");
    let (_, text) = admin.refusal("CompactRegion", &compact(b"f"), b"");
    assert!(
        text.contains("Column family f is not a mob column family"),
        "{text}"
    );
    server.stop();
}
