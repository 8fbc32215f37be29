//! Native connections: frames, protobuf messages, cell blocks, and ZooKeeper's packets.

use basalt_idl::native::cells::{CellType, WireCell};
use basalt_idl::native::compress::Compressor;
use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::frame::{Request, begin_response, put_connection_header, put_exception};
use basalt_idl::native::messages as pb;
use bytes::Bytes;
use prost::Message;

use super::{numbered, seed};
use crate::corpus::Input;
use crate::target::rpc_messages::MESSAGES;

fn cell(row: &str, value: &str, cell_type: CellType, tags: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let cell = WireCell {
        row: row.as_bytes(),
        family: b"f",
        qualifier: b"q",
        timestamp: 5,
        cell_type,
        value: value.as_bytes(),
        tags,
    };
    cell.encode(&mut out);
    out
}

fn block() -> Vec<u8> {
    [
        cell("row", "value", CellType::Put, b""),
        cell("row", "", CellType::DeleteColumn, b""),
        cell("", &"v".repeat(300), CellType::Put, &[0, 3, 8, 1, 2]),
    ]
    .concat()
}

/// Blocks of each form, and some that claim more than they have.
pub(super) fn cell_blocks() -> Vec<Input> {
    let of = |how: usize, bytes: &[u8]| [&[how as u8], bytes].concat();
    let packed = Compressor::ALL
        .iter()
        .enumerate()
        .flat_map(|(number, compressor)| {
            let pack = |plain: &[u8]| of(number + 1, &compressor.pack(plain).expect("a Vec can be packed"));
            [pack(&block()), pack(b""), pack(&vec![b'x'; 200 << 10])]
        });
    let mut seeds = numbered("packed", packed);
    seeds.push(seed("plain", of(0, &block())));
    seeds.push(seed("cut", of(0, &block()[..50])));
    seeds.push(seed(
        "a-cell-of-two-gigabytes",
        of(0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1]),
    ));
    for number in 3..6 {
        let claim = [&[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 5][..], b"\x03\x08abc"].concat();
        seeds.push(seed(
            format!("a-segment-of-two-gigabytes-{number}"),
            of(number, &claim),
        ));
    }
    seeds
}

pub(super) fn get() -> pb::GetRequest {
    pb::GetRequest {
        region: region(),
        get: pb::Get {
            row: Bytes::from_static(b"row"),
            column: vec![pb::Column {
                family: Bytes::from_static(b"f"),
                qualifier: vec![Bytes::from_static(b"q"); 2],
            }],
            ..pb::Get::default()
        },
    }
}

pub(super) fn region() -> pb::RegionSpecifier {
    pb::RegionSpecifier {
        r#type: 1,
        value: Bytes::from_static(b"t,,1700000000000.0123456789abcdef0123456789abcdef."),
    }
}

pub(super) fn scan() -> pb::ScanRequest {
    pb::ScanRequest {
        region: Some(region()),
        scan: Some(pb::Scan {
            filter: Some(pb::Filter {
                name: "org.apache.hadoop.hbase.filter.PageFilter".to_owned(),
                serialized_filter: Some(Bytes::from_static(&[8, 2])),
            }),
            max_versions: Some(3),
            ..pb::Scan::default()
        }),
        number_of_rows: Some(10),
        client_handles_partials: Some(true),
        ..pb::ScanRequest::default()
    }
}

pub(super) fn multi() -> pb::MultiRequest {
    let action = |index| pb::Action {
        index: Some(index),
        get: Some(Box::new(get().get)),
        ..pb::Action::default()
    };
    pb::MultiRequest {
        region_action: vec![pb::RegionAction {
            region: region(),
            action: (0..3).map(action).collect(),
            ..pb::RegionAction::default()
        }],
        ..pb::MultiRequest::default()
    }
}

pub(super) fn table() -> pb::CreateTableRequest {
    let pair = |first: &'static str, second: &'static str| pb::BytesBytesPair {
        first: Bytes::from_static(first.as_bytes()),
        second: Bytes::from_static(second.as_bytes()),
    };
    pb::CreateTableRequest {
        table_schema: pb::TableSchema {
            column_families: vec![pb::ColumnFamilySchema {
                name: Bytes::from_static(b"f"),
                attributes: vec![pair("VERSIONS", "3"), pair("COMPRESSION", "NONE")],
                ..pb::ColumnFamilySchema::default()
            }],
            ..pb::TableSchema::default()
        },
        split_keys: vec![Bytes::from_static(b"m"); 3],
        ..pb::CreateTableRequest::default()
    }
}

/// Requests and responses of clients, and messages of many empty elements.
pub(super) fn rpc_messages() -> Vec<Input> {
    let of = |name: &str, message: &[u8]| {
        let which = MESSAGES.iter().position(|(known, _)| *known == name);
        [&[which.expect("a message that is tried") as u8], message].concat()
    };
    let mut seeds: Vec<Input> = [
        ("GetRequest", get().encode_to_vec()),
        ("ScanRequest", scan().encode_to_vec()),
        ("MultiRequest", multi().encode_to_vec()),
        ("CreateTableRequest", table().encode_to_vec()),
    ]
    .into_iter()
    .map(|(name, message)| seed(name.to_lowercase(), of(name, &message)))
    .collect();
    seeds.push(seed("empty-groups", of("MultiRequest", &[0x0a, 0].repeat(500))));
    let actions = [&[0x0a, 0xd0, 0x0f][..], &[0x1a, 0].repeat(1_000)].concat();
    seeds.push(seed("empty-actions", of("MultiRequest", &actions)));
    let results = pb::ScanResponse {
        cells_per_result: vec![1, 2],
        partial_flag_per_result: vec![false, true],
        more_results: Some(true),
        ..pb::ScanResponse::default()
    };
    seeds.push(seed("scanresponse", of("ScanResponse", &results.encode_to_vec())));
    seeds
}

/// Connections with calls, and connections with responses.
pub(super) fn rpc_frames() -> Vec<Input> {
    let header = |compressor: &str| {
        let mut out = vec![0];
        let header = pb::ConnectionHeader {
            service_name: Some("ClientService".to_owned()),
            cell_block_codec_class: Some("org.apache.hadoop.hbase.codec.KeyValueCodec".to_owned()),
            cell_block_compressor_class: Some(compressor.to_owned()),
            ..pb::ConnectionHeader::default()
        };
        put_connection_header(&header, &mut out);
        out
    };
    let call = |method: &str, parameter: &dyn Fn(&pb::RequestHeader, &mut Vec<u8>)| {
        let mut out = header("org.apache.hadoop.io.compress.SnappyCodec");
        let header = pb::RequestHeader {
            call_id: Some(7),
            method_name: Some(method.to_owned()),
            timeout: Some(60_000),
            ..pb::RequestHeader::default()
        };
        parameter(&header, &mut out);
        out
    };
    let calls = [
        header(""),
        call("Get", &|header, out| Request::encode(header, &get(), b"", out)),
        call("Scan", &|header, out| Request::encode(header, &scan(), b"", out)),
        call("Multi", &|header, out| {
            Request::encode(header, &multi(), &block(), out);
        }),
        [&header("")[..], &[0xff; 8]].concat(),
        [&header("")[..], &[0, 0, 0, 2, 8, 9]].concat(),
    ];
    let mut answered = vec![1];
    begin_response(7, &pb::ScanResponse::default(), block().len(), &mut answered);
    answered.extend_from_slice(&block());
    let mut refused = vec![1];
    put_exception(
        9,
        ExceptionClass::UnknownScanner.response("no scanner"),
        &mut refused,
    );
    let mut seeds = numbered("calls", calls);
    seeds.extend(numbered("responses", [answered, refused]));
    seeds
}

/// Sessions of clients.
pub(super) fn zookeeper() -> Vec<Input> {
    let packet = |body: &[u8]| [&(body.len() as u32).to_be_bytes()[..], body].concat();
    let connect = |flag: &[u8]| {
        let password = [&16_u32.to_be_bytes()[..], &[0; 16]].concat();
        packet(&[&[0; 12][..], &90_000_u32.to_be_bytes(), &[0; 8], &password, flag].concat())
    };
    let request =
        |op: u32, body: &[u8]| packet(&[&1_u32.to_be_bytes()[..], &op.to_be_bytes(), body].concat());
    let path = |path: &str| [&(path.len() as u32).to_be_bytes()[..], path.as_bytes(), &[0]].concat();
    let session = |op, body: &[u8]| [connect(&[0]), request(op, body)].concat();
    let header = |kind: u32| [&kind.to_be_bytes()[..], &[0], &[0xff; 4]].concat();
    let end = [&[0xff; 4][..], &[1], &[0xff; 4]].concat();
    let text = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let check = [text("/hbase"), vec![0xff; 4]].concat();
    let acl = [&[0, 0, 0, 1, 0, 0, 0, 31][..], &text("world"), &text("anyone")].concat();
    let create = [text("/hbase/new"), text("data"), acl, vec![0; 4]].concat();
    let sessions = [
        connect(b""),
        session(3, &path("/hbase/hbaseid")),
        session(4, &path("/hbase/meta-region-server")),
        session(8, &path("/hbase")),
        session(12, &path("/hbase")),
        session(11, b""),
        session(1, &path("/hbase/new")),
        session(101, &[0; 20]),
        session(6, &path("/hbase/master")),
        session(9, &path("/hbase")),
        session(14, &[header(13), check, header(1), create, end.clone()].concat()),
        session(
            22,
            &[header(4), path("/hbase/rs"), header(8), path("/hbase"), end].concat(),
        ),
        session(107, b""),
        session(4, &[0x7f, 0xff, 0xff, 0xff, b'/']),
        session(4, &[0xff; 4]),
        session(0xffff_fff5, b""),
    ];
    numbered("session", sessions)
}
