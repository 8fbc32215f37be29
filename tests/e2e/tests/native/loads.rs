//! Bulk load: PrepareBulkLoad, BulkLoadHFile, CleanupBulkLoad, and their refusals.

use std::path::{Path, PathBuf};

use basalt_engine::cell::{Cell, CellType, KeyBuf};
use basalt_engine::fs::{Open, RealFs, Vfs};
use basalt_engine::id::{SeqId, Uuid};
use basalt_engine::internals::hfile::{Writer, WriterOptions};
use basalt_engine::schema::FamilyDescriptor;
use basalt_idl::native::messages::{
    BulkLoadHFileRequest, BulkLoadHFileResponse, CleanupBulkLoadRequest, CleanupBulkLoadResponse,
    CoprocessorServiceCall, CoprocessorServiceRequest, CoprocessorServiceResponse, PrepareBulkLoadRequest,
    PrepareBulkLoadResponse, RegionInfo, RegionSpecifier, SecureBulkLoadHFilesRequest,
    SecureBulkLoadHFilesResponse, SplitTableRegionRequest, SplitTableRegionResponse,
    bulk_load_h_file_request::FamilyPath,
};
use basalt_test_support::Server;
use bytes::Bytes;
use prost::Message as _;

use super::client::{Client, create, exception, region, table_name};
use super::requests::{value_of, write};

/// A server on a data directory in `dir`, and the directory beside it whose files it loads.
fn start(dir: &Path) -> (PathBuf, Server) {
    let source = dir.join("output");
    std::fs::create_dir(&source).unwrap();
    let setting = format!("bulkload.directories=[\"{}\"]", source.display());
    let server = Server::start(&dir.join("data"), &[&setting]);
    (source, server)
}

/// Writes an HFile of family `f` with one cell in each of these rows.
fn hfile(path: &Path, rows: &[&str], value: &str) {
    let file = RealFs.open(path, Open::CreateNew).unwrap();
    let family = FamilyDescriptor::new(b"f");
    let options = WriterOptions::of_family(&family, Uuid([3; 16]), 1, SeqId::ZERO);
    let mut writer = Writer::create(file, path, options).unwrap();
    for row in rows {
        let key = KeyBuf::new(row.as_bytes(), b"f", b"q", i64::MAX - 1, CellType::Put);
        let cell = Cell {
            key: key.as_key(),
            value: value.as_bytes(),
            tags: b"",
            seq: SeqId::ZERO,
        };
        writer.append(cell).unwrap();
    }
    writer.finish().unwrap();
}

fn call(region: &RegionSpecifier, files: &[(&str, String)]) -> BulkLoadHFileRequest {
    BulkLoadHFileRequest {
        region: region.clone(),
        family_path: files
            .iter()
            .map(|(family, path)| FamilyPath {
                family: Bytes::copy_from_slice(family.as_bytes()),
                path: path.clone(),
            })
            .collect(),
        assign_seq_num: Some(true),
        ..BulkLoadHFileRequest::default()
    }
}

fn uri(path: &Path) -> String {
    format!("file:{}", path.display())
}

/// The flow of HBase's BulkLoadHFilesTool: prepare, load, clean up. Loaded cells survive a kill,
/// and the file is left where it was.
#[test]
fn files_are_loaded_as_the_tool_does_it() {
    let dir = basalt_test_support::tempdir().unwrap();
    let data = dir.path().join("data");
    let source = dir.path().join("output");
    std::fs::create_dir(&source).unwrap();
    let setting = format!("bulkload.directories=[\"{}\"]", source.display());
    let server = Server::start(&data, &[&setting]);
    create(&server, "t");
    let region = region(&server, "t");
    let mut client = Client::connect(&server, "ClientService");
    write(&mut client, &region, "a", &[("q", "written")]);

    let prepare = PrepareBulkLoadRequest {
        table_name: table_name("t"),
        region: Some(region.clone()),
    };
    let prepared: PrepareBulkLoadResponse = client.ask("PrepareBulkLoad", &prepare);
    let staging = PathBuf::from(prepared.bulk_token.strip_prefix("file:").unwrap());
    assert!(staging.is_dir());
    let (one, two) = (source.join("one"), staging.join("two"));
    hfile(&one, &["a", "b"], "loaded");
    hfile(&two, &["c"], "staged");
    let files = [("f", uri(&one)), ("f", uri(&two))];
    let loaded: BulkLoadHFileResponse = client.ask("BulkLoadHFile", &call(&region, &files));
    assert!(loaded.loaded);
    assert!(one.is_file());
    let clean_up = CleanupBulkLoadRequest {
        bulk_token: prepared.bulk_token,
        region: Some(region.clone()),
    };
    client.ask::<CleanupBulkLoadResponse>("CleanupBulkLoad", &clean_up);
    assert!(!staging.exists());

    // A job that runs again overwrites its output in place.
    std::fs::write(&one, b"overwritten").unwrap();
    drop(server);
    let server = Server::start(&data, &[]);
    let mut client = Client::connect(&server, "ClientService");
    for (row, value) in [("a", "loaded"), ("b", "loaded"), ("c", "staged")] {
        assert_eq!(
            value_of(&mut client, &region, row).as_deref(),
            Some(value.as_bytes()),
            "{row}"
        );
    }
    server.stop();
}

/// Clients before HBase 2 with `SecureBulkLoadEndpoint` in their configuration call the same three steps
/// as an endpoint of a region.
#[test]
fn files_are_loaded_through_the_endpoint_of_older_clients() {
    let dir = basalt_test_support::tempdir().unwrap();
    let (source, server) = start(dir.path());
    create(&server, "t");
    let region = region(&server, "t");
    let mut client = Client::connect(&server, "ClientService");
    let ask = |method: &str, request: Vec<u8>| CoprocessorServiceRequest {
        region: region.clone(),
        call: CoprocessorServiceCall {
            service_name: "SecureBulkLoadService".to_owned(),
            method_name: method.to_owned(),
            request: request.into(),
            ..CoprocessorServiceCall::default()
        },
    };
    let prepare = PrepareBulkLoadRequest {
        table_name: table_name("t"),
        region: None,
    };
    let answer: CoprocessorServiceResponse =
        client.ask("ExecService", &ask("PrepareBulkLoad", prepare.encode_to_vec()));
    let prepared = PrepareBulkLoadResponse::decode(answer.value.value.unwrap()).unwrap();
    let staging = PathBuf::from(prepared.bulk_token.strip_prefix("file:").unwrap());
    assert!(staging.is_dir());
    let file = source.join("one");
    hfile(&file, &["a"], "loaded");
    let load = |path: &Path| SecureBulkLoadHFilesRequest {
        family_path: vec![FamilyPath {
            family: Bytes::from_static(b"f"),
            path: uri(path),
        }],
        bulk_token: prepared.bulk_token.clone(),
        ..SecureBulkLoadHFilesRequest::default()
    };
    let call = ask("SecureBulkLoadHFiles", load(&file).encode_to_vec());
    let answer: CoprocessorServiceResponse = client.ask("ExecService", &call);
    let loaded = SecureBulkLoadHFilesResponse::decode(answer.value.value.unwrap()).unwrap();
    assert!(loaded.loaded);
    assert_eq!(value_of(&mut client, &region, "a"), Some(b"loaded".to_vec()));
    let secret = ask(
        "SecureBulkLoadHFiles",
        load(&dir.path().join("secret")).encode_to_vec(),
    );
    let (class, text) = client.refusal("ExecService", &secret, b"");
    assert_eq!(class, "AccessDeniedException", "{text}");
    let clean_up = CleanupBulkLoadRequest {
        bulk_token: prepared.bulk_token,
        region: None,
    };
    let call = ask("CleanupBulkLoad", clean_up.encode_to_vec());
    client.ask::<CoprocessorServiceResponse>("ExecService", &call);
    assert!(!staging.exists());
    let (class, text) = client.refusal("ExecService", &ask("Steal", Vec::new()), b"");
    assert_eq!(class, "UnknownProtocolException");
    assert!(text.contains("Unknown method Steal"), "{text}");
    server.stop();
}

/// Each refusal has HBase's class and names the file; the connection goes on, and nothing is loaded.
#[test]
fn files_that_cannot_be_loaded_are_refused_by_name() {
    let dir = basalt_test_support::tempdir().unwrap();
    let (source, server) = start(dir.path());
    create(&server, "t");
    let region = region(&server, "t");
    let mut client = Client::connect(&server, "ClientService");
    let (good, secret) = (source.join("good"), dir.path().join("secret"));
    hfile(&good, &["a"], "loaded");
    hfile(&secret, &["a"], "secret");
    std::fs::write(source.join("text"), "no HFile\n").unwrap();
    let mut damaged = std::fs::read(&good).unwrap();
    damaged[40] ^= 1;
    std::fs::write(source.join("damaged"), damaged).unwrap();
    // Clients do not have the class CorruptHFileException, so it begins the text.
    let final_error = "DoNotRetryIOException";
    let corrupt = "io.hfile.CorruptHFileException: ";
    let denied = "AccessDeniedException";
    for (family, path, class, text) in [
        ("f", uri(&source.join("text")), final_error, corrupt),
        (
            "f",
            uri(&source.join("text")),
            final_error,
            "shorter than an HFile",
        ),
        ("f", uri(&source.join("damaged")), final_error, corrupt),
        (
            "f",
            uri(&source.join("damaged")),
            final_error,
            "corrupt file damaged",
        ),
        (
            "f",
            uri(&source.join("none")),
            final_error,
            "FileNotFoundException",
        ),
        ("f", uri(&source), final_error, "does not reference a file"),
        ("f", uri(&secret), denied, "bulkload.directories"),
        (
            "f",
            "hdfs://host/output/good".to_owned(),
            final_error,
            "not the path of a local file",
        ),
        (
            "f",
            uri(&source.join("../secret")),
            final_error,
            "not the path of a local file",
        ),
        ("nof", uri(&good), "NoSuchColumnFamilyException", "nof"),
    ] {
        let files = [("f", uri(&good)), (family, path.clone())];
        let refusal = client.refusal("BulkLoadHFile", &call(&region, &files), b"");
        assert_eq!(refusal.0, class, "{path}: {}", refusal.1);
        assert!(refusal.1.contains(text), "{path}: {}", refusal.1);
        assert_eq!(value_of(&mut client, &region, "a"), None, "{path}");
    }
    let clean_up = CleanupBulkLoadRequest {
        bulk_token: uri(&source),
        region: None,
    };
    assert_eq!(client.refusal("CleanupBulkLoad", &clean_up, b"").0, denied);
    assert!(good.is_file());
    let prepare = PrepareBulkLoadRequest {
        table_name: table_name("none"),
        region: None,
    };
    let refusal = client.refusal("PrepareBulkLoad", &prepare, b"");
    assert_eq!(refusal.0, "TableNotFoundException");
    server.stop();
}

/// A file that reaches beyond the region is answered as HBase does, so that the tool divides it.
#[test]
fn a_file_beyond_the_region_is_not_loaded() {
    let dir = basalt_test_support::tempdir().unwrap();
    let (source, server) = start(dir.path());
    super::client::create_split(&server, "t", &["m"]);
    let last = region(&server, "t");
    let mut client = Client::connect(&server, "ClientService");
    let (inside, across) = (source.join("inside"), source.join("across"));
    hfile(&inside, &["n"], "inside");
    hfile(&across, &["a", "n"], "across");
    let files = [("f", uri(&inside)), ("f", uri(&across))];
    let answer: BulkLoadHFileResponse = client.ask("BulkLoadHFile", &call(&last, &files));
    assert!(!answer.loaded);
    assert_eq!(value_of(&mut client, &last, "n"), None);
    let answer: BulkLoadHFileResponse = client.ask("BulkLoadHFile", &call(&last, &files[..1]));
    assert!(answer.loaded);
    assert_eq!(value_of(&mut client, &last, "n").as_deref(), Some(&b"inside"[..]));
    server.stop();
}

/// The number in a region's name, `table,start,id.encoded.`
fn region_id(region: &RegionSpecifier) -> u64 {
    let name = String::from_utf8(region.value.to_vec()).unwrap();
    let id = name.rsplit(',').next().and_then(|end| end.split('.').next());
    id.unwrap().parse().unwrap()
}

/// Goal: a load whose region is split while it waits for others is answered so that the client looks
/// its regions up again. Method: as many large loads as run at once, one more behind them, and a split.
/// If that one comes first after all, it is loaded.
#[test]
fn a_region_that_is_split_before_a_load_is_not_served() {
    let dir = basalt_test_support::tempdir().unwrap();
    let (source, server) = start(dir.path());
    create(&server, "busy");
    create(&server, "t");
    let (busy, t) = (region(&server, "busy"), region(&server, "t"));
    let (large, small) = (source.join("large"), source.join("small"));
    let rows: Vec<String> = (0..40).map(|number| format!("row-{number:02}")).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    hfile(&large, &rows, &"v".repeat(1 << 20));
    hfile(&small, &["a"], "loaded");
    let send = |region, path| {
        let mut client = Client::connect(&server, "ClientService");
        client.call(1, "BulkLoadHFile", &call(region, &[("f", uri(path))]), b"");
        client
    };
    let others = [send(&busy, &large), send(&busy, &large)];
    let mut waiting = send(&t, &small);
    let split = SplitTableRegionRequest {
        region_info: RegionInfo {
            region_id: region_id(&t),
            table_name: table_name("t"),
            ..RegionInfo::default()
        },
        split_row: Some(Bytes::from_static(b"m")),
        ..SplitTableRegionRequest::default()
    };
    Client::connect(&server, "MasterService").ask::<SplitTableRegionResponse>("SplitRegion", &split);
    let response = waiting.response().unwrap();
    if let Some(refusal) = &response.header.exception {
        assert_eq!(exception(&response).0, "NotServingRegionException");
        assert_eq!(refusal.do_not_retry, Some(false));
    }
    for mut other in others {
        assert_eq!(other.response().unwrap().header.exception, None);
    }
    server.stop();
}
