//! Packets in the form of Java, gohbase and asynchbase, and hostile packets.

use super::*;

fn connect(has_read_only: bool) -> Vec<u8> {
    let mut packet = Vec::new();
    packet.extend_from_slice(&0_i32.to_be_bytes());
    packet.extend_from_slice(&7_i64.to_be_bytes());
    packet.extend_from_slice(&90_000_i32.to_be_bytes());
    packet.extend_from_slice(&0_i64.to_be_bytes());
    put_buffer(&[0; 16], &mut packet);
    if has_read_only {
        packet.push(0);
    }
    packet
}

fn request(xid: i32, operation: i32, path: &[u8]) -> Vec<u8> {
    let mut packet = [xid.to_be_bytes(), operation.to_be_bytes()].concat();
    put_buffer(path, &mut packet);
    packet.push(0);
    packet
}

#[test]
fn connect_requests_of_both_lengths_are_read() {
    for (has_read_only, length) in [false, true].into_iter().zip(CONNECT_BYTES) {
        let packet = connect(has_read_only);
        assert_eq!(packet.len(), length as usize);
        let read = ConnectRequest::decode(&packet).unwrap();
        assert_eq!(
            read,
            ConnectRequest {
                timeout_ms: 90_000,
                session: 0,
                password: &[0; 16],
                has_read_only,
            }
        );
    }
}

/// A client that sent the read-only flag reads one in the response. Any other client would take the
/// byte for the beginning of the next packet.
#[test]
fn connect_responses_have_the_length_that_the_client_expects() {
    for (has_read_only, length) in [(false, 36), (true, 37)] {
        let mut out = Vec::new();
        put_connect_response(40_000, 0x1234, &[9; 16], has_read_only, &mut out);
        assert_eq!(out.len(), 4 + length);
        assert_eq!(out[..4], (length as u32).to_be_bytes());
        assert_eq!(out[8..12], 40_000_i32.to_be_bytes());
    }
}

#[test]
fn requests_are_told_apart() {
    for (code, expected) in [
        (3, Operation::Exists(b"/hbase")),
        (4, Operation::GetData(b"/hbase")),
        (
            8,
            Operation::GetChildren {
                path: b"/hbase",
                with_stat: false,
            },
        ),
        (
            12,
            Operation::GetChildren {
                path: b"/hbase",
                with_stat: true,
            },
        ),
        (11, Operation::Ping),
        (-11, Operation::Close),
        (101, Operation::Register),
        (1, Operation::Change),
        (77, Operation::Other(77)),
    ] {
        let packet = request(5, code, b"/hbase");
        let read = ZkRequest::decode(&packet).unwrap();
        assert_eq!((read.xid, read.operation), (5, expected));
    }
}

#[test]
fn every_cut_of_a_packet_is_an_error_or_a_request() {
    let packet = request(5, 4, b"/hbase/master");
    for length in 0..packet.len() - 1 {
        let read = ZkRequest::decode(&packet[..length]);
        assert_eq!(read.is_err(), length < packet.len() - 1, "{length}");
    }
    let mut negative = request(5, 4, b"");
    negative[8..12].copy_from_slice(&(-2_i32).to_be_bytes());
    assert_eq!(ZkRequest::decode(&negative), Err(PacketError("path")));
    assert!(ConnectRequest::decode(&connect(true)[..20]).is_err());
    assert!(ConnectRequest::decode(&[connect(true), vec![0]].concat()).is_err());
}

#[test]
fn responses_have_zookeepers_layout() {
    let stat = Stat {
        zxid: 3,
        time_ms: 4,
        data_length: 2,
        children: 1,
    };
    let mut out = Vec::new();
    let mut responses = Responses {
        zxid: 3,
        out: &mut out,
    };
    responses.empty(PING_XID, None);
    assert_eq!(responses.out.len(), 4 + 16);
    responses.out.clear();
    responses.data(1, b"ab", stat);
    assert_eq!(responses.out.len(), 4 + 16 + 4 + 2 + 68);
    responses.out.clear();
    responses.children(1, ["rs", "master"].into_iter(), Some(stat));
    assert_eq!(responses.out.len(), 4 + 16 + 4 + (4 + 2) + (4 + 6) + 68);
    responses.out.clear();
    responses.empty(1, Some(ZkError::NoNode));
    assert_eq!(responses.out[16..20], (-101_i32).to_be_bytes());
}
