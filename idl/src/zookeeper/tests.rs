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
        (
            1,
            Operation::Change(Change {
                path: b"/hbase",
                of_parent: true,
            }),
        ),
        (
            5,
            Operation::Change(Change {
                path: b"/hbase",
                of_parent: false,
            }),
        ),
        (6, Operation::GetAcl(b"/hbase")),
        (9, Operation::Sync(b"/hbase")),
        (18, Operation::Register),
        (104, Operation::CountBelow(b"/hbase")),
        (107, Operation::WhoAmI),
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

/// A multi in the form of Java: a header with the type in front of each operation, and one that ends them.
#[test]
fn the_operations_of_a_multi_are_read_to_its_end() {
    let header = |kind: i32, done: u8| [&kind.to_be_bytes()[..], &[done], &(-1_i32).to_be_bytes()].concat();
    let path = |path: &[u8]| {
        let mut out = Vec::new();
        put_buffer(path, &mut out);
        out
    };
    let int = |value: i32| value.to_be_bytes().to_vec();
    let acl = [int(1), int(31), path(b"world"), path(b"anyone")].concat();
    let packet = [
        [int(5), int(14)].concat(),
        header(1, 0),
        path(b"/a"),
        path(b"data"),
        acl.clone(),
        int(0),
        header(21, 0),
        path(b"/ttl"),
        path(b""),
        acl,
        int(5),
        [0; 8].to_vec(),
        header(2, 0),
        path(b"/b"),
        int(-1),
        header(5, 0),
        path(b"/c"),
        path(b"data"),
        int(3),
        header(13, 0),
        path(b"/d"),
        int(7),
        header(4, 0),
        path(b"/e"),
        vec![0],
        header(8, 0),
        path(b"/f"),
        vec![1],
        header(-1, 1),
    ]
    .concat();
    let read = |packet: &[u8]| -> Result<Vec<String>, PacketError> {
        let Operation::Multi { operations, reads } = ZkRequest::decode(packet)?.operation else {
            panic!("a multi");
        };
        assert!(!reads);
        operations
            .map(|operation| operation.map(|operation| format!("{operation:?}")))
            .collect()
    };
    let change =
        |path: &'static [u8], of_parent| format!("{:?}", MultiOp::Change(Change { path, of_parent }));
    assert_eq!(
        read(&packet).unwrap(),
        [
            change(b"/a", true),
            change(b"/ttl", true),
            change(b"/b", true),
            change(b"/c", false),
            format!(
                "{:?}",
                MultiOp::Check {
                    path: b"/d",
                    version: 7
                }
            ),
            format!("{:?}", MultiOp::GetData(b"/e")),
            format!("{:?}", MultiOp::GetChildren(b"/f")),
        ]
    );
    for length in 8..packet.len() {
        assert!(read(&packet[..length]).is_err(), "{length}");
    }
    let unknown = [[int(5), int(14)].concat(), header(99, 0), path(b"/a")].concat();
    assert_eq!(read(&unknown), Err(PacketError("type of an operation")));
}

#[test]
fn the_results_of_a_multi_have_zookeepers_layout() {
    let stat = Stat {
        zxid: 3,
        time_ms: 4,
        data_length: 2,
        children: 0,
    };
    let mut out = Vec::new();
    let mut responses = Responses {
        zxid: 3,
        out: &mut out,
    };
    let names = ["x".to_owned()];
    let results = [
        MultiResult::Checked,
        MultiResult::Data(b"ab", stat),
        MultiResult::Children(&names),
        MultiResult::Failed(Some(ZkError::NoAuth)),
        MultiResult::Failed(None),
    ];
    responses.multi(1, results.into_iter());
    let body = &out[20..];
    let error = |code: i32| {
        [
            &(-1_i32).to_be_bytes()[..],
            &[0],
            &code.to_be_bytes(),
            &code.to_be_bytes(),
        ]
        .concat()
    };
    assert_eq!(body[..9], *b"\0\0\0\x0d\0\0\0\0\0");
    assert_eq!(body[9..24], *b"\0\0\0\x04\0\0\0\0\0\0\0\0\x02ab");
    assert_eq!(body[92..110], *b"\0\0\0\x08\0\0\0\0\0\0\0\0\x01\0\0\0\x01x");
    assert_eq!(body[110..136], [error(-102), error(0)].concat());
    assert_eq!(body[136..], *b"\xff\xff\xff\xff\x01\xff\xff\xff\xff");
}
