//! The sink of replication: ReplicateWALEntry, as a source of HBase sends it, and the attribute `_cs.id`.

use basalt_idl::native::cells::{CellType, Cells, WireCell};
use basalt_idl::native::messages::{
    Action, MultiRequest, MultiResponse, MutateRequest, MutateResponse, MutationProto, NameBytesPair,
    RegionAction, RegionSpecifier, ReplicateWalEntryRequest, ReplicateWalEntryResponse, Scan, ScanRequest,
    Uuid, WalEntry, WalKey, mutation_proto::MutationType,
};
use basalt_test_support::{Server, until};
use bytes::Bytes;

use super::client::{Client, exception, header, start_with_table};

/// One edit: the table, and its cells by row, type, timestamp and tags.
type Edit<'a> = (&'a str, &'a [(&'a str, CellType, i64, &'a [u8])]);

/// A time to live of many years as a tag.
const TAG: &[u8] = &[0, 9, 8, 0, 0, 0xff, 0, 0, 0, 0, 5];
const SOURCE: (u64, u64) = (0x0011_2233_4455_6677, 0x8899_aabb_ccdd_eeff);
const SOURCE_TEXT: &str = "00112233-4455-6677-8899-aabbccddeeff";

fn encode(cell: &(&str, CellType, i64, &[u8]), out: &mut Vec<u8>) {
    let (row, cell_type, timestamp, tags) = *cell;
    let meta = row.strip_prefix("meta ");
    WireCell {
        row: row.as_bytes(),
        family: if meta.is_some() { b"METAFAMILY" } else { b"f" },
        qualifier: meta.unwrap_or("q").as_bytes(),
        timestamp,
        cell_type,
        value: if cell_type == CellType::Put { b"value" } else { b"" },
        tags,
    }
    .encode(out);
}

fn batch(edits: &[Edit<'_>]) -> (ReplicateWalEntryRequest, Vec<u8>) {
    let mut block = Vec::new();
    let entry = |(table, cells): &Edit<'_>| {
        for cell in *cells {
            encode(cell, &mut block);
        }
        WalEntry {
            key: WalKey {
                encoded_region_name: Bytes::from_static(b"0123456789abcdef0123456789abcdef"),
                table_name: Bytes::copy_from_slice(table.as_bytes()),
                log_sequence_number: 7,
                write_time: 1_700_000_000_000,
                cluster_ids: vec![Uuid {
                    most_sig_bits: SOURCE.0,
                    least_sig_bits: SOURCE.1,
                }],
                ..WalKey::default()
            },
            associated_cell_count: Some(cells.len() as i32),
            ..WalEntry::default()
        }
    };
    let request = ReplicateWalEntryRequest {
        entry: edits.iter().map(entry).collect(),
        ..ReplicateWalEntryRequest::default()
    };
    (request, block)
}

/// A connection like that of a source.
fn source(server: &Server) -> Client {
    let mut header = header("AdminService");
    header.cell_block_codec_class = Some("org.apache.hadoop.hbase.codec.KeyValueCodecWithTags".to_owned());
    Client::connect_with(server, &header)
}

fn replicate(server: &Server, edits: &[Edit<'_>]) -> Result<(), (String, String)> {
    let (request, block) = batch(edits);
    let mut source = source(server);
    source.call(1, "ReplicateWALEntry", &request, &block);
    let response = source.response().expect("a response");
    if response.header.exception.is_some() {
        return Err(exception(&response));
    }
    let _: ReplicateWalEntryResponse = prost::Message::decode(response.result).expect("the method's message");
    Ok(())
}

/// All cells of `t`, tombstones too, as row, type, timestamp and tags.
fn cells(server: &Server, region: &RegionSpecifier) -> Vec<(String, CellType, i64, Vec<u8>)> {
    let mut header = header("ClientService");
    header.cell_block_codec_class = Some("org.apache.hadoop.hbase.codec.KeyValueCodecWithTags".to_owned());
    let mut client = Client::connect_with(server, &header);
    let scan = ScanRequest {
        region: Some(region.clone()),
        scan: Some(Scan {
            attribute: vec![NameBytesPair {
                name: "_raw_".to_owned(),
                value: Some(Bytes::from_static(&[255])),
            }],
            max_versions: Some(10),
            ..Scan::default()
        }),
        number_of_rows: Some(1000),
        close_scanner: Some(true),
        ..ScanRequest::default()
    };
    client.call(1, "Scan", &scan, b"");
    let response = client.response().expect("a response");
    assert_eq!(response.header.exception, None);
    Cells::new(&response.cells)
        .map(|cell| {
            let cell = cell.expect("well-formed");
            let row = String::from_utf8_lossy(cell.row).into_owned();
            (row, cell.cell_type, cell.timestamp, cell.tags.to_vec())
        })
        .collect()
}

/// Goal: edits are applied with their timestamps, types and tags, in their order, and again without harm;
/// notes of the source's log and rows of system tables are dropped and counted.
#[test]
fn cells_of_a_replication_source_are_applied() {
    let (_dir, server, region, _) = start_with_table(&[]);
    let edits: &[Edit<'_>] = &[
        (
            "t",
            &[
                ("a", CellType::Put, 5, b""),
                ("a", CellType::Put, 6, TAG),
                ("b", CellType::Put, 5, b""),
            ],
        ),
        (
            "t",
            &[
                ("b", CellType::DeleteColumn, 5, b""),
                ("meta HBASE::REGION_EVENT", CellType::Put, 1, b""),
            ],
        ),
        ("hbase:acl", &[("t", CellType::Put, 5, b"")]),
        (
            "default:t",
            &[
                ("c", CellType::DeleteFamilyVersion, 9, b""),
                ("c", CellType::Put, i64::MAX - 1, b""),
            ],
        ),
        ("t", &[]),
    ];
    let expected = |cell: &(&str, CellType, i64, &[u8])| (cell.0.to_owned(), cell.1, cell.2, cell.3.to_vec());
    let expected: Vec<_> = [
        ("a", CellType::Put, 6, TAG),
        ("a", CellType::Put, 5, b""),
        ("b", CellType::DeleteColumn, 5, b""),
        ("b", CellType::Put, 5, b""),
        ("c", CellType::Put, i64::MAX - 1, b""),
        ("c", CellType::DeleteFamilyVersion, 9, b""),
    ]
    .iter()
    .map(expected)
    .collect();
    for _ in 0..2 {
        replicate(&server, edits).expect("applied");
        assert_eq!(cells(&server, &region), expected);
    }
    for (series, value) in [
        ("batches_total", 2),
        ("edits_total", 10),
        ("failed_batches_total", 0),
        ("dropped_total{kind=\"marker\"}", 2),
        ("dropped_total{kind=\"system_table\"}", 2),
        ("written_timestamp_seconds", 1_700_000_000),
    ] {
        assert_eq!(
            server.metric(&format!("basalt_replication_sink_{series}")),
            value,
            "{series}"
        );
    }
}

/// Goal: what cannot be applied is refused by name, and the source can go on with the next batch.
#[test]
fn batches_that_cannot_be_applied_are_refused_by_name() {
    let (_dir, server, region, _) = start_with_table(&["row.cell_max_bytes=1000"]);
    let put = ("a", CellType::Put, 5, &b""[..]);
    let refused = |edits: &[Edit<'_>]| replicate(&server, edits).expect_err("refused");
    let (class, text) = refused(&[("t", &[put]), ("missing", &[put])]);
    assert_eq!(class, "TableNotFoundException", "{text}");
    assert!(text.contains("missing"), "{text}");
    // A call is not atomic: the edit before it is applied.
    until("the edit is visible", || cells(&server, &region).len() == 1);
    let (class, _) = refused(&[("t", &[("a", CellType::Put, -5, b"")])]);
    assert_eq!(class, "DoNotRetryIOException");
    let (_, text) = refused(&[("t", &[("a", CellType::Put, i64::MAX, b"")])]);
    assert!(text.contains("no timestamp"), "{text}");
    let long = "r".repeat(2000);
    let (_, text) = refused(&[("t", &[(&long, CellType::Put, 5, b"")])]);
    assert!(text.contains("1000"), "{text}");
    let (_, text) = refused(&[("t:t:t", &[put])]);
    assert!(text.contains("Namespaces may only contain"), "{text}");

    // Fewer cells than the entries say, more clusters than the log takes, cells in the message.
    let (mut request, block) = batch(&[("t", &[put])]);
    request.entry[0].associated_cell_count = Some(2);
    let mut client = source(&server);
    let (_, text) = client.refusal("ReplicateWALEntry", &request, &block);
    assert!(text.contains("ended after 1 cells"), "{text}");
    let (mut request, block) = batch(&[("t", &[put])]);
    let cluster = request.entry[0].key.cluster_ids[0];
    request.entry[0].key.cluster_ids = vec![cluster; 101];
    let (_, text) = client.refusal("ReplicateWALEntry", &request, &block);
    assert!(text.contains("101 clusters"), "{text}");
    let (mut request, block) = batch(&[("t", &[put])]);
    request.entry[0].key_value_bytes = vec![Bytes::from_static(b"cell")];
    let (_, text) = client.refusal("ReplicateWALEntry", &request, &block);
    assert!(text.contains("belong into the cell block"), "{text}");
    request.entry[0].key_value_bytes.clear();
    client.call(1, "ReplicateWALEntry", &request, &block);
    let response = client.response().expect("a response");
    assert_eq!(response.header.exception, None);
    assert!(server.metric("basalt_replication_sink_failed_batches_total") >= 8);
}

/// Goal: only this method's frames may be longer than `server.max_message_bytes`, and only on connections for
/// its service.
#[test]
fn only_batches_of_a_source_may_be_long() {
    let (_dir, server, region, mut client) = start_with_table(&["server.max_message_bytes=100000"]);
    let rows: Vec<String> = (0..5_000).map(|number| format!("row-{number:08}")).collect();
    let all: Vec<_> = rows
        .iter()
        .map(|row| (&row[..], CellType::Put, 5, &b""[..]))
        .collect();
    let edits: Vec<Edit<'_>> = all.chunks(100).map(|cells| ("t", cells)).collect();
    replicate(&server, &edits).expect("applied");
    assert_eq!(cells(&server, &region).len(), 1000, "the scan's limit");
    let (request, block) = batch(&edits);
    assert!(block.len() > 100_000);
    let (class, text) = client.refusal("ReplicateWALEntry", &request, &block);
    assert_eq!(class, "RequestTooBigException", "{text}");
    let (class, _) = source(&server).refusal("CompactRegion", &request, &block);
    assert_eq!(class, "RequestTooBigException");
}

/// A put that has passed these clusters.
fn put(row: &str, clusters: Option<&[u8]>) -> MutationProto {
    use basalt_idl::native::messages::mutation_proto::{ColumnValue, column_value::QualifierValue};
    MutationProto {
        row: Some(Bytes::copy_from_slice(row.as_bytes())),
        mutate_type: Some(MutationType::Put.into()),
        column_value: vec![ColumnValue {
            family: Bytes::from_static(b"f"),
            qualifier_value: vec![QualifierValue {
                qualifier: Some(Bytes::from_static(b"q")),
                value: Some(Bytes::from_static(b"value")),
                ..QualifierValue::default()
            }],
        }],
        attribute: clusters
            .iter()
            .map(|ids| NameBytesPair {
                name: "_cs.id".to_owned(),
                value: Some(Bytes::copy_from_slice(ids)),
            })
            .collect(),
        ..MutationProto::default()
    }
}

/// Goal: the log has the clusters that puts and deletes of clients have passed, also where those of a Multi
/// differ, and none for the others.
#[test]
fn clusters_of_mutations_are_logged() {
    let (dir, server, region, mut client) = start_with_table(&[]);
    let mut ids = 1_u32.to_be_bytes().to_vec();
    ids.extend_from_slice(&SOURCE.0.to_be_bytes());
    ids.extend_from_slice(&SOURCE.1.to_be_bytes());
    let mutate = |mutation: MutationProto| MutateRequest {
        region: region.clone(),
        mutation,
        ..MutateRequest::default()
    };
    let _: MutateResponse = client.ask("Mutate", &mutate(put("passed-1", Some(&ids))));
    let _: MutateResponse = client.ask("Mutate", &mutate(put("own-1", None)));
    let delete = MutationProto {
        mutate_type: Some(MutationType::Delete.into()),
        ..put("passed-2", Some(&ids))
    };
    let increment = MutationProto {
        mutate_type: Some(MutationType::Append.into()),
        ..put("passed-5", Some(&ids))
    };
    let _: MutateResponse = client.ask("Mutate", &mutate(increment));
    let mutations = [
        delete,
        put("own-2", None),
        put("passed-3", Some(&ids)),
        put("passed-4", Some(&ids)),
    ];
    let action = |(index, mutation)| Action {
        index: Some(index as u32),
        mutation: Some(Box::new(mutation)),
        ..Action::default()
    };
    let multi = MultiRequest {
        region_action: vec![RegionAction {
            region: region.clone(),
            action: mutations.into_iter().enumerate().map(action).collect(),
            ..RegionAction::default()
        }],
        ..MultiRequest::default()
    };
    let answer: MultiResponse = client.ask("Multi", &multi);
    for result in &answer.region_action_result[0].result_or_exception {
        assert_eq!(result.exception, None);
    }
    for malformed in [&b""[..], &[0, 0, 0, 2], &ids[..19], &[&ids[..], b"x"].concat()] {
        let (_, text) = client.refusal("Mutate", &mutate(put("a", Some(malformed))), b"");
        assert!(text.contains("_cs.id"), "{text}");
    }
    server.kill();
    let log = dir.path().join("data/wal/0000000000000001.wal");
    let printed = std::process::Command::new(basalt_test_support::binary("basalt"))
        .args(["dump", "--cells"])
        .arg(log)
        .output()
        .expect("the binary was built");
    let printed = String::from_utf8(printed.stdout).expect("text");
    let (mut has_passed, mut seen) = (false, 0);
    for line in printed.lines() {
        if line.starts_with("  region ") {
            has_passed = false;
        } else if line.trim() == format!("has passed cluster {SOURCE_TEXT}") {
            has_passed = true;
        } else if line.contains(" passed-") {
            assert!(has_passed, "{line} in\n{printed}");
            seen += 1;
        } else if line.contains(" own-") {
            assert!(!has_passed, "{line} in\n{printed}");
            seen += 1;
        }
    }
    assert_eq!(seen, 7, "{printed}");
}
