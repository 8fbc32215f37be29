//! Frames and cells: bytes recorded from HBase 2.6.1, round trips, truncations and changed bytes.

use bytes::Bytes;
use proptest::prelude::*;
use prost::Message as _;

use super::cells::{
    CELL_OVERHEAD_MAX, CellError, CellType, Cells, LATEST_TIMESTAMP, WireCell, put_stored_cell,
};
use super::exception::ExceptionClass;
use super::frame::{
    CONNECTION_CALL_ID, FrameError, Request, Response, begin_response, decode_connection_header,
    encoded_response_head, put_connection_header, put_exception, response_head,
};
use super::messages::{
    AdminServiceMethod, ClientServiceMethod, ClusterId, ConnectionHeader, GetRequest, GetResponse,
    MasterServiceMethod,
};
use super::preamble::{Authentication, Preamble};
use super::znode;

fn bytes(hex: &str) -> Bytes {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// A Get of `table:state` of row `pet` in meta, recorded from Java 2.6, and HBase's response.
const GET: &str = "09 0801 1a03476574 2001 2a 0a11 0801 120d 68626173653a6d6574612c2c31 1215 0a03706574 120e 0a057461626c65 12057374617465";
const GOT: &str = "06 0801 1a02 0827 06 0a04 1001 2000 00000023 00000019 00000002 0003 706574 05 7461626c65 7374617465 000001a21604d187 04 0800";

#[test]
fn a_call_of_javas_client_is_read() {
    let request = Request::decode(bytes(GET)).unwrap();
    assert_eq!(request.header.call_id, Some(1));
    assert_eq!(request.header.method(), "Get");
    let get = GetRequest::decode(request.parameter).unwrap();
    assert_eq!(&get.region.value[..], b"hbase:meta,,1");
    assert_eq!(
        (&get.get.row[..], &get.get.column[0].qualifier[0][..]),
        (&b"pet"[..], &b"state"[..])
    );
    assert!(request.cells.is_empty());
}

#[test]
fn a_response_of_hbase_is_read_and_written_the_same() {
    let response = Response::decode(bytes(GOT)).unwrap();
    assert_eq!(response.header.call_id, Some(1));
    let got = GetResponse::decode(response.result).unwrap();
    assert_eq!(got.result.as_ref().unwrap().associated_cell_count, Some(1));
    let cells: Vec<_> = Cells::new(&response.cells).collect::<Result<_, _>>().unwrap();
    assert_eq!(
        cells,
        [WireCell {
            row: b"pet",
            family: b"table",
            qualifier: b"state",
            timestamp: 0x1a2_1604_d187,
            cell_type: CellType::Put,
            value: &[8, 0],
            tags: &[],
        }]
    );
    let mut out = Vec::new();
    begin_response(1, &got, response.cells.len(), &mut out);
    cells[0].encode(&mut out);
    assert_eq!(out[4..], bytes(GOT));
    assert_eq!(out[..4], (bytes(GOT).len() as u32).to_be_bytes());
    let mut pieces = response_head(1, &got, response.cells.len());
    pieces.extend_from_slice(&response.cells);
    assert_eq!(pieces, out);
    let encoded = got.encode_to_vec();
    let mut pieces = encoded_response_head(1, &encoded, response.cells.len());
    pieces.extend_from_slice(&response.cells);
    assert_eq!(pieces, out);
}

/// Java counts calls from 0, and clients reject a response without a call id as malformed.
#[test]
fn call_id_zero_is_written() {
    let mut out = Vec::new();
    begin_response(0, &GetResponse::default(), 0, &mut out);
    assert_eq!(out, [0, 0, 0, 4, 2, 8, 0, 0]);
    out.clear();
    put_exception(0, ExceptionClass::TableNotFound.response("t"), &mut out);
    let response = Response::decode(Bytes::copy_from_slice(&out[4..])).unwrap();
    assert_eq!(response.header.call_id, Some(0));
    let exception = response.header.exception.unwrap();
    assert_eq!(
        exception.stack_trace.as_deref(),
        Some("org.apache.hadoop.hbase.TableNotFoundException: t")
    );
    assert_eq!(exception.do_not_retry, Some(true));
}

/// The whole response to "Regist", recorded from HBase 2.6.1.
#[test]
fn the_answer_to_regist_is_hbases() {
    use super::messages::GetConnectionRegistryResponse;
    let id = "0123456789abcdef0123456789abcdef0123";
    let mut out = Vec::new();
    let answer = GetConnectionRegistryResponse {
        cluster_id: id.to_owned(),
    };
    begin_response(CONNECTION_CALL_ID, &answer, 0, &mut out);
    assert_eq!(out[..14], bytes("0000002e 06 08ffffffff0f 26 0a24")[..]);
    assert_eq!(&out[14..], id.as_bytes());
}

#[test]
fn frames_that_do_not_hold_together_are_refused() {
    let whole = bytes(GET);
    for length in 0..whole.len() {
        assert!(Request::decode(whole.slice(..length)).is_err(), "{length}");
    }
    let mut longer = whole.to_vec();
    longer.push(0);
    assert_eq!(Request::decode(longer.into()), Err(FrameError::Trailing(1)));
    let claims = bytes("ffffffffffffffffff01");
    assert!(matches!(
        Request::decode(claims),
        Err(FrameError::Truncated {
            part: "request header",
            ..
        })
    ));
    assert_eq!(
        Request::decode(bytes("80")),
        Err(FrameError::Length("request header"))
    );
}

#[test]
fn preambles_are_told_apart() {
    for (bytes, expected) in [
        (b"HBas\0\x50", Preamble::Rpc(Authentication::Simple)),
        (b"HBas\0\x51", Preamble::Rpc(Authentication::Kerberos)),
        (b"HBas\0\x52", Preamble::Rpc(Authentication::Digest)),
        (b"HBas\0\x53", Preamble::BadAuthentication(0x53)),
        (b"HBas\x01\x50", Preamble::WrongVersion(1)),
        (b"Regist", Preamble::Registry),
        (b"Securi", Preamble::Security),
        (b"GET / ", Preamble::Unknown),
    ] {
        assert_eq!(Preamble::parse(*bytes), expected);
    }
}

#[test]
fn connection_headers_have_no_length_inside_their_frame() {
    let header = ConnectionHeader {
        service_name: Some("ClientService".to_owned()),
        ..ConnectionHeader::default()
    };
    let mut out = Vec::new();
    put_connection_header(&header, &mut out);
    assert_eq!(out[..6], [0, 0, 0, 15, 0x12, 13]);
    assert_eq!(
        decode_connection_header(Bytes::copy_from_slice(&out[4..])),
        Ok(header)
    );
}

#[test]
fn methods_are_found_by_their_names() {
    assert_eq!(ClientServiceMethod::SERVICE, "ClientService");
    assert_eq!(
        ClientServiceMethod::from_name("Get"),
        Some(ClientServiceMethod::Get)
    );
    assert_eq!(ClientServiceMethod::from_name("get"), None);
    assert_eq!(
        MasterServiceMethod::from_name("truncateTable").map(MasterServiceMethod::name),
        Some("truncateTable")
    );
    for method in MasterServiceMethod::ALL {
        assert_eq!(MasterServiceMethod::from_name(method.name()), Some(*method));
    }
    assert!(AdminServiceMethod::from_name("GetRegionLoad").is_some());
}

#[test]
fn znodes_are_read_back() {
    let id = ClusterId {
        cluster_id: "u".to_owned(),
    };
    let payload = znode::encode(&id);
    assert_eq!(znode::decode::<ClusterId>(&payload), Some(id.clone()));
    for length in 0..payload.len() {
        assert_ne!(
            znode::decode::<ClusterId>(&payload[..length]),
            Some(id.clone()),
            "{length}"
        );
    }
}

fn cell<'a>(row: &'a [u8], qualifier: &'a [u8], value: &'a [u8], tags: &'a [u8]) -> WireCell<'a> {
    WireCell {
        row,
        family: b"f",
        qualifier,
        timestamp: LATEST_TIMESTAMP,
        cell_type: CellType::DeleteColumn,
        value,
        tags,
    }
}

#[test]
fn a_stored_key_travels_as_it_is() {
    let sent = cell(b"r", b"q", b"value", b"\0\x02\x08x");
    let mut out = Vec::new();
    sent.encode(&mut out);
    let key = &out[12..out.len() - 5 - 2 - 4];
    let mut stored = Vec::new();
    put_stored_cell(key, sent.value, sent.tags, &mut stored);
    assert_eq!(stored, out);
    let parts = key.len() + sent.value.len() + sent.tags.len();
    assert_eq!(parts + CELL_OVERHEAD_MAX, out.len());
    assert_eq!(sent.encoded_len(), out.len());
}

#[test]
fn a_block_with_too_few_cells_is_noticed() {
    let mut block = Vec::new();
    cell(b"r", b"q", b"v", b"").encode(&mut block);
    let mut cells = Cells::new(&block);
    assert!(cells.require().is_ok() && cells.is_empty());
    assert_eq!(cells.require(), Err(CellError::Missing(1)));
    assert_eq!(cells.skip_one(), Err(CellError::Missing(1)));
    block[12 + 2 + 1 + 1 + 1 + 1 + 8] = 5;
    assert_eq!(
        Cells::new(&block).require(),
        Err(CellError::Type { code: 5, at: 0 })
    );
}

#[test]
fn a_skipped_cell_is_as_long_as_a_decoded_one() {
    let mut block = Vec::new();
    cell(b"r", b"q", b"v", b"").encode(&mut block);
    let first = block.len();
    cell(b"r2", b"", b"", b"\0\x01\x08").encode(&mut block);
    let mut cells = Cells::new(&block);
    assert_eq!(cells.skip_one(), Ok(()));
    assert_eq!(cells.offset(), first);
    assert_eq!(cells.require().unwrap().row, b"r2");
    for length in 0..block.len() {
        let mut cut = Cells::new(&block[..length]);
        let skipped = cut.skip_one().and_then(|()| cut.skip_one());
        assert!(skipped.is_err(), "{length} bytes");
        assert!(cut.offset() <= length);
    }
}

proptest! {
    #[test]
    fn cells_are_read_back(
        row in prop::collection::vec(any::<u8>(), 0..40),
        qualifier in prop::collection::vec(any::<u8>(), 0..40),
        value in prop::collection::vec(any::<u8>(), 0..40),
        tags in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let sent = cell(&row, &qualifier, &value, &tags);
        let mut block = Vec::new();
        sent.encode(&mut block);
        sent.encode(&mut block);
        let read: Vec<_> = Cells::new(&block).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(read, vec![sent, sent]);
        for length in 1..block.len() / 2 {
            prop_assert!(Cells::new(&block[..length]).any(|cell| cell.is_err()));
        }
    }

    /// With any byte changed, decoding terminates and never reads beyond the block.
    #[test]
    fn changed_bytes_do_no_harm(at in 0_usize..200, to in any::<u8>(), garbage in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut block = Vec::new();
        for row in [&b"row1"[..], b"row2", b"row3"] {
            cell(row, b"qualifier", b"a value", b"").encode(&mut block);
        }
        let length = block.len();
        block[at % length] = to;
        let read = Cells::new(&block).flatten().map(|cell| cell.encoded_len()).sum::<usize>();
        prop_assert!(read <= length);
        prop_assert!(Cells::new(&garbage).count() <= garbage.len());
        let mut frame = bytes(GET).to_vec();
        let length = frame.len();
        frame[at % length] = to;
        drop(Request::decode(frame.into()));
        drop(Request::decode(garbage.into()));
    }
}
