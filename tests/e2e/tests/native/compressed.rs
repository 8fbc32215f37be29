//! Cell blocks in the compressions and the forms that clients name in the connection header.

use basalt_idl::native::cells::Cells;
use basalt_idl::native::compress::{Compressor, Room};
use basalt_idl::native::forms::{CellForm, Packing};
use basalt_idl::native::messages::{ConnectionHeader, GetResponse, Scan, ScanRequest, ScanResponse};
use basalt_test_support::Server;
use prost::Message;

use super::client::{Client, create, exception, header, region};
use super::requests::{cell, get, mutate, put};

/// Memory without a limit.
struct Any;

impl Room for Any {
    fn reserve(&mut self, _bytes: usize) -> bool {
        true
    }

    fn release(&mut self, _bytes: usize) {}
}

fn with_compressor(class: &str) -> ConnectionHeader {
    ConnectionHeader {
        cell_block_compressor_class: Some(class.to_owned()),
        ..header("ClientService")
    }
}

/// Cells are compressed in both directions, few of them and many.
#[test]
fn cell_blocks_are_compressed_in_both_directions() {
    const LARGE: usize = 400_000;
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&server, "t");
    let region = region(&server, "t");
    for class in [
        "org.apache.hadoop.io.compress.DefaultCodec",
        "org.apache.hadoop.io.compress.GzipCodec",
        "org.apache.hadoop.io.compress.SnappyCodec",
        "org.apache.hadoop.io.compress.Lz4Codec",
        "org.apache.hadoop.io.compress.ZStandardCodec",
        "org.apache.hadoop.hbase.io.compress.zstd.ZstdCodec",
    ] {
        let compressor = Compressor::of_class(class).unwrap();
        let unpack = |cells: &[u8]| compressor.unpack(cells, 1 << 20, &mut Any).unwrap();
        let mut client = Client::connect_with(&server, &with_compressor(class));
        for (row, size) in [("small", 10), ("large", LARGE)] {
            let value = "value ".repeat(size / 6);
            let mut block = Vec::new();
            cell(row, "q", &value).encode(&mut block);
            let packed = compressor.pack(&block).unwrap();
            client.call(0, "Mutate", &mutate(&region, put(row, 1)), &packed);
            assert_eq!(client.response().unwrap().header.exception, None, "{class}");
            client.call(1, "Get", &get(&region, row), b"");
            let response = client.response().unwrap();
            assert!(size < LARGE || response.cells.len() < LARGE / 8, "{class}");
            let plain = unpack(&response.cells);
            let found = Cells::new(&plain).require().unwrap();
            assert_eq!(found.value, value.as_bytes(), "{class}");
        }
        let scan = ScanRequest {
            region: Some(region.clone()),
            scan: Some(Scan::default()),
            number_of_rows: Some(10),
            ..ScanRequest::default()
        };
        client.call(2, "Scan", &scan, b"");
        let response = client.response().unwrap();
        assert_eq!(
            Cells::new(&unpack(&response.cells)).flatten().count(),
            2,
            "{class}"
        );
        assert_eq!(
            ScanResponse::decode(response.result).unwrap().cells_per_result,
            [1, 1]
        );
        client.call(3, "Get", &get(&region, "nothing"), b"");
        let response = client.response().unwrap();
        assert!(response.cells.is_empty() && response.header.cell_block_meta.is_none());
        let found = GetResponse::decode(response.result).unwrap().result.unwrap();
        assert_eq!(found.associated_cell_count, Some(0));
    }
    server.stop();
}

/// Clients may name any of HBase's codecs for cells (`hbase.client.rpc.codec`), with and without a
/// compressor. What one has written the others read.
#[test]
fn cells_travel_in_the_form_of_every_codec() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&server, "t");
    let region = region(&server, "t");
    let forms = [
        None,
        Some(CellForm::Cell),
        Some(CellForm::CellWithTags),
        Some(CellForm::Message),
    ];
    let compressors = [None, Some(Compressor::Gzip)];
    let connect = |form: Option<CellForm>, compressor: Option<Compressor>| {
        let codec = form.map_or("KeyValueCodec".to_owned(), |form| match form {
            CellForm::Message => "MessageCodec".to_owned(),
            form => format!("{form:?}Codec").replace("WithTagsCodec", "CodecWithTags"),
        });
        let mut header = header("ClientService");
        header.cell_block_codec_class = Some(format!("org.apache.hadoop.hbase.codec.{codec}"));
        header.cell_block_compressor_class =
            compressor.map(|_| "org.apache.hadoop.io.compress.GzipCodec".to_owned());
        Client::connect_with(&server, &header)
    };
    let mut expected = Vec::new();
    for (number, form) in forms.into_iter().enumerate() {
        for compressor in compressors {
            let mut client = connect(form, compressor);
            let row =
                ["a", "b", "c", "d", "e", "f", "g", "h"][2 * number + usize::from(compressor.is_some())];
            // Larger than what is packed on the network thread.
            let value = format!("value {row} ").repeat(20_000);
            let mut block = Vec::new();
            cell(row, "q", &value).encode(&mut block);
            let packed =
                Packing::new(form, compressor).map_or(block.clone(), |packing| packing.pack(block).unwrap());
            client.call(0, "Mutate", &mutate(&region, put(row, 1)), &packed);
            assert_eq!(
                client.response().unwrap().header.exception,
                None,
                "{form:?} {compressor:?}"
            );
            expected.push((row.to_owned(), value));
        }
    }
    for form in forms {
        for compressor in compressors {
            let mut client = connect(form, compressor);
            let scan = ScanRequest {
                region: Some(region.clone()),
                scan: Some(Scan::default()),
                number_of_rows: Some(10),
                ..ScanRequest::default()
            };
            client.call(2, "Scan", &scan, b"");
            let response = client.response().unwrap();
            let cells = Packing::new(form, compressor).map_or(response.cells.to_vec(), |packing| {
                packing.unpack(&response.cells, 8 << 20, &mut Any).unwrap()
            });
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let found: Vec<_> = Cells::new(&cells)
                .map(|cell| cell.unwrap())
                .map(|cell| (text(cell.row), text(cell.value)))
                .collect();
            assert!(found == expected, "{form:?} {compressor:?}");
            client.call(3, "Get", &get(&region, "nothing"), b"");
            assert!(client.response().unwrap().cells.is_empty());
        }
    }
    let mut client = connect(Some(CellForm::Message), None);
    client.call(8, "Mutate", &mutate(&region, put("r", 1)), b"no cells");
    let (class, text) = exception(&client.response().unwrap());
    assert_eq!(class, "DoNotRetryIOException");
    assert!(text.contains("cell block: "), "{text}");
    client.call(9, "Get", &get(&region, "a"), b"");
    assert_eq!(
        client.response().unwrap().header.exception,
        None,
        "the connection lives"
    );
    server.stop();
}

/// A block that is not one, one that unpacks to more than the limit, and one for which there is no
/// memory fail their calls. The server allocates no more than the limit for them.
#[test]
fn compressed_blocks_are_unpacked_within_limits() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(
        &dir.path().join("data"),
        &["memory.total_bytes=134217728", "server.max_message_bytes=4000000"],
    );
    create(&server, "t");
    let region = region(&server, "t");
    let before = server.resident_bytes();
    for (class, compressor) in [
        ("org.apache.hadoop.io.compress.DefaultCodec", Compressor::Zlib),
        ("org.apache.hadoop.io.compress.ZStandardCodec", Compressor::Zstd),
        ("org.apache.hadoop.io.compress.Lz4Codec", Compressor::Lz4),
    ] {
        let mut client = Client::connect_with(&server, &with_compressor(class));
        let bomb = compressor.pack(&vec![0; 200 << 20]).unwrap();
        client.call(7, "Mutate", &mutate(&region, put("r", 1)), &bomb);
        let (class, text) = exception(&client.response().unwrap());
        assert_eq!(class, "DoNotRetryIOException");
        assert!(
            text.contains("unpacks to more than 4000000 bytes (server.max_message_bytes)"),
            "{text}"
        );
        client.call(8, "Mutate", &mutate(&region, put("r", 1)), b"not compressed");
        let (class, text) = exception(&client.response().unwrap());
        assert_eq!(class, "DoNotRetryIOException");
        assert!(text.contains("compressed cell block: "), "{text}");
        client.call(9, "Get", &get(&region, "r"), b"");
        assert_eq!(
            client.response().unwrap().header.exception,
            None,
            "the connection lives"
        );
    }
    let grown = server.peak_resident_bytes().saturating_sub(before);
    assert!(grown < 40 << 20, "{grown} bytes");
    server.stop();
}
