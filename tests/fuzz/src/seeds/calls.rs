//! Native connections with calls of every kind: from a connection header to the cell block.

use basalt_engine::filter::FilterSpec;
use basalt_idl::native::cells::{CellType, WireCell};
use basalt_idl::native::compress::Compressor;
use basalt_idl::native::frame::{Request, put_connection_header};
use basalt_idl::native::messages::mutation_proto::column_value::QualifierValue;
use basalt_idl::native::messages::mutation_proto::{ColumnValue, DeleteType, MutationType};
use basalt_idl::native::messages::{self as pb, MutationProto};
use bytes::Bytes;
use prost::Message;

use super::native::{get, multi, region, scan, table};
use super::{numbered, seed};
use crate::corpus::Input;

/// A Get that Java's client 2.6 sends to meta first, behind its connection header.
const RECORDED_GET: &[u8] = b"\x09\x08\x01\x1a\x03Get\x20\x01\x2a\x0a\x11\x08\x01\x12\x0dhbase:meta,,1\x12\x15\x0a\x03pet\x12\x0e\x0a\x05table\x12\x05state";

/// A connection to a service, whose cells are packed by this Java class.
fn connection(service: &str, compressor: &str) -> Vec<u8> {
    let header = pb::ConnectionHeader {
        service_name: Some(service.to_owned()),
        cell_block_codec_class: Some("org.apache.hadoop.hbase.codec.KeyValueCodec".to_owned()),
        cell_block_compressor_class: Some(compressor.to_owned()),
        version_info: Some(pb::VersionInfo {
            version_major: Some(2),
            version_minor: Some(6),
            ..pb::VersionInfo::default()
        }),
        ..pb::ConnectionHeader::default()
    };
    let mut out = Vec::new();
    put_connection_header(&header, &mut out);
    out
}

/// Appends a call with its cell block.
fn put_call(method: &str, parameter: &impl Message, cells: &[u8], out: &mut Vec<u8>) {
    let header = pb::RequestHeader {
        call_id: Some(7),
        method_name: Some(method.to_owned()),
        priority: Some(0),
        timeout: Some(60_000),
        ..pb::RequestHeader::default()
    };
    Request::encode(&header, parameter, cells, out);
}

fn call(service: &str, method: &str, parameter: &impl Message) -> Input {
    let mut out = connection(service, "");
    put_call(method, parameter, b"", &mut out);
    seed(method.to_lowercase(), out)
}

fn mutation(mutate_type: MutationType, value: &'static [u8]) -> MutationProto {
    let value = QualifierValue {
        qualifier: Some(Bytes::from_static(b"q")),
        value: Some(Bytes::from_static(value)),
        timestamp: Some(5),
        delete_type: (mutate_type == MutationType::Delete)
            .then_some(DeleteType::DeleteMultipleVersions.into()),
        ..QualifierValue::default()
    };
    MutationProto {
        row: Some(Bytes::from_static(b"row")),
        mutate_type: Some(mutate_type.into()),
        column_value: vec![ColumnValue {
            family: Bytes::from_static(b"f"),
            qualifier_value: vec![value],
        }],
        attribute: vec![pb::NameBytesPair {
            name: "_ttl".to_owned(),
            value: Some(Bytes::from_static(&[0, 0, 0, 0, 0, 1, 0, 0])),
        }],
        nonce: Some(77),
        ..MutationProto::default()
    }
}

/// A mutation whose cells are in the cell block.
fn outside(mutate_type: MutationType, row: &'static str, cells: i32) -> MutationProto {
    MutationProto {
        row: Some(Bytes::from_static(row.as_bytes())),
        mutate_type: Some(mutate_type.into()),
        associated_cell_count: Some(cells),
        ..MutationProto::default()
    }
}

fn cells(rows: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for row in rows {
        let cell = WireCell {
            row: row.as_bytes(),
            family: b"f",
            qualifier: b"q",
            timestamp: i64::MAX,
            cell_type: CellType::Put,
            value: &[0, 0, 0, 0, 0, 0, 0, 9],
            tags: b"",
        };
        cell.encode(&mut out);
    }
    out
}

fn filter(text: &str) -> pb::Filter {
    let filter = FilterSpec::parse(text.as_bytes()).expect("a filter");
    pb::Filter::decode(&filter.encode()[..]).expect("an encoded filter is the message")
}

fn condition() -> pb::Condition {
    pb::Condition {
        row: Bytes::from_static(b"row"),
        family: Some(Bytes::from_static(b"f")),
        qualifier: Some(Bytes::from_static(b"q")),
        compare_type: Some(pb::CompareType::Equal.into()),
        comparator: Some(pb::Comparator {
            name: "org.apache.hadoop.hbase.filter.BinaryComparator".to_owned(),
            serialized_comparator: Some(Bytes::from_static(b"\x0a\x03\x0a\x01v")),
        }),
        ..pb::Condition::default()
    }
}

/// Groups of all kinds: puts and deletes with their cells outside, updates, an atomic group.
fn groups() -> (pb::MultiRequest, Vec<u8>) {
    let action = |index, mutation| pb::Action {
        index: Some(index),
        mutation: Some(Box::new(mutation)),
        ..pb::Action::default()
    };
    let group = |atomic, action| pb::RegionAction {
        region: region(),
        atomic: Some(atomic),
        action,
        ..pb::RegionAction::default()
    };
    let call = pb::MultiRequest {
        region_action: vec![
            group(
                false,
                vec![
                    action(0, outside(MutationType::Put, "a", 1)),
                    action(1, outside(MutationType::Put, "a", 1)),
                    action(2, mutation(MutationType::Increment, &[0, 0, 0, 0, 0, 0, 0, 1])),
                    action(3, outside(MutationType::Append, "b", 1)),
                ],
            ),
            pb::RegionAction {
                condition: Some(condition()),
                ..group(true, vec![action(0, outside(MutationType::Delete, "row", 1))])
            },
        ],
        nonce_group: Some(3),
        ..pb::MultiRequest::default()
    };
    (call, cells(&["a", "a", "b", "row"]))
}

fn endpoint(service: &str, method: &str, request: &impl Message) -> pb::CoprocessorServiceRequest {
    pb::CoprocessorServiceRequest {
        region: region(),
        call: pb::CoprocessorServiceCall {
            row: Bytes::from_static(b"row"),
            service_name: service.to_owned(),
            method_name: method.to_owned(),
            request: request.encode_to_vec().into(),
        },
    }
}

fn mutate(mutation: MutationProto, condition: Option<pb::Condition>) -> pb::MutateRequest {
    pb::MutateRequest {
        region: region(),
        mutation,
        condition,
        nonce_group: Some(3),
    }
}

fn load() -> pb::BulkLoadHFileRequest {
    pb::BulkLoadHFileRequest {
        region: region(),
        family_path: vec![
            pb::bulk_load_h_file_request::FamilyPath {
                family: Bytes::from_static(b"f"),
                path: "file:/data/staging/t__1/f/one".to_owned(),
            };
            2
        ],
        assign_seq_num: Some(true),
        ..pb::BulkLoadHFileRequest::default()
    }
}

fn seeds_of_client() -> Vec<Input> {
    const CLIENT: &str = "ClientService";
    let mut filtered = get();
    filtered.get.filter = Some(filter("RowFilter(=,'regexstring:a.*b') AND PageFilter(3)"));
    let kinds = [
        mutate(mutation(MutationType::Put, b"value"), None),
        mutate(mutation(MutationType::Delete, b""), None),
        mutate(mutation(MutationType::Increment, &[0, 0, 0, 0, 0, 0, 0, 1]), None),
        mutate(mutation(MutationType::Append, b"more"), None),
        mutate(mutation(MutationType::Put, b"value"), Some(condition())),
        mutate(
            mutation(MutationType::Put, b"value"),
            Some(pb::Condition {
                filter: Some(filter("ValueFilter(=,'substring:x')")),
                comparator: None,
                ..condition()
            }),
        ),
    ];
    let mutations = kinds.map(|kind| call(CLIENT, "Mutate", &kind).bytes);
    let aggregate = pb::AggregateRequest {
        interpreter_class_name: "org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter".to_owned(),
        scan: scan().scan.unwrap_or_default(),
        ..pb::AggregateRequest::default()
    };
    let rows = pb::MutateRowsRequest {
        mutation_request: vec![mutation(MutationType::Put, b"value"); 2],
        condition: vec![condition()],
        ..pb::MutateRowsRequest::default()
    };
    let endpoints = [
        endpoint("AggregateService", "GetSum", &aggregate),
        endpoint("MultiRowMutationService", "MutateRows", &rows),
    ]
    .map(|request| call(CLIENT, "ExecService", &request).bytes);
    let mut all = vec![
        call(CLIENT, "Get", &get()),
        seed("get-with-filter", call(CLIENT, "Get", &filtered).bytes),
        call(CLIENT, "Scan", &scan()),
        call(CLIENT, "Multi", &multi()),
        call(CLIENT, "BulkLoadHFile", &load()),
    ];
    all.extend(numbered("mutate", mutations));
    all.extend(numbered("execservice", endpoints));
    all
}

/// These groups with their cells plain and in each compression.
fn seeds_of_groups() -> Vec<Input> {
    let (call, block) = groups();
    let mut plain = connection("ClientService", "");
    put_call("Multi", &call, &block, &mut plain);
    let mut all = vec![seed("groups", plain)];
    for (class, compressor) in [
        ("org.apache.hadoop.io.compress.DefaultCodec", Compressor::Zlib),
        ("org.apache.hadoop.io.compress.GzipCodec", Compressor::Gzip),
        ("org.apache.hadoop.io.compress.SnappyCodec", Compressor::Snappy),
        ("org.apache.hadoop.io.compress.Lz4Codec", Compressor::Lz4),
        ("org.apache.hadoop.io.compress.ZStandardCodec", Compressor::Zstd),
    ] {
        let mut out = connection("ClientService", class);
        let packed = compressor.pack(&block).expect("a Vec can be packed");
        put_call("Multi", &call, &packed, &mut out);
        all.push(seed(format!("groups-{compressor:?}").to_lowercase(), out));
    }
    all
}

/// Messages of elements without content, which take the most memory for their bytes.
fn seeds_of_nothing() -> Vec<Input> {
    let empty_actions = pb::MultiRequest {
        region_action: vec![pb::RegionAction {
            region: region(),
            action: vec![pb::Action::default(); 1_000],
            ..pb::RegionAction::default()
        }],
        ..pb::MultiRequest::default()
    };
    let empty_mutations = pb::MultiRequest {
        region_action: vec![pb::RegionAction {
            region: region(),
            action: vec![
                pb::Action {
                    mutation: Some(Box::default()),
                    ..pb::Action::default()
                };
                500
            ],
            ..pb::RegionAction::default()
        }],
        ..pb::MultiRequest::default()
    };
    let mut columns = mutation(MutationType::Put, b"");
    columns.column_value = vec![
        ColumnValue {
            qualifier_value: vec![QualifierValue::default(); 100],
            ..ColumnValue::default()
        };
        10
    ];
    let mut many_columns = get();
    many_columns.get.column = vec![pb::Column::default(); 500];
    [
        ("empty-actions", call("ClientService", "Multi", &empty_actions)),
        (
            "empty-mutations",
            call("ClientService", "Multi", &empty_mutations),
        ),
        (
            "empty-values",
            call("ClientService", "Mutate", &mutate(columns, None)),
        ),
        ("empty-columns", call("ClientService", "Get", &many_columns)),
    ]
    .into_iter()
    .map(|(name, input)| seed(name, input.bytes))
    .collect()
}

fn seeds_of_admin() -> Vec<Input> {
    let family = pb::ColumnFamilySchema {
        name: Bytes::from_static(b"f"),
        ..pb::ColumnFamilySchema::default()
    };
    let many = pb::CreateTableRequest {
        table_schema: pb::TableSchema {
            column_families: vec![family; 500],
            ..pb::TableSchema::default()
        },
        ..table()
    };
    vec![
        call("MasterService", "CreateTable", &table()),
        seed("many-families", call("MasterService", "CreateTable", &many).bytes),
        call(
            "MasterService",
            "GetTableDescriptors",
            &pb::GetTableDescriptorsRequest {
                table_names: vec![pb::TableName::default(); 500],
                ..pb::GetTableDescriptorsRequest::default()
            },
        ),
        call(
            "AdminService",
            "GetRegionInfo",
            &pb::GetRegionInfoRequest {
                region: region(),
                ..pb::GetRegionInfoRequest::default()
            },
        ),
        call(
            "AdminService",
            "ClearRegionBlockCache",
            &pb::ClearRegionBlockCacheRequest {
                region: vec![region(); 20],
            },
        ),
    ]
}

pub(super) fn seeds() -> Vec<Input> {
    let recorded = [
        &connection("ClientService", "")[..],
        &(RECORDED_GET.len() as u32).to_be_bytes(),
        RECORDED_GET,
    ];
    let mut all = vec![seed("recorded-get", recorded.concat())];
    all.extend(seeds_of_client());
    all.extend(seeds_of_groups());
    all.extend(seeds_of_nothing());
    all.extend(seeds_of_admin());
    all
}
