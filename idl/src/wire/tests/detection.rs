//! Goal: every way to open a connection is recognised, early. Method: real messages and their
//! prefixes.

use super::*;

#[test]
fn every_method_in_every_form() {
    let names = [thrift1::SERVICE, thrift2::SERVICE, crate::admin::SERVICE]
        .map(|service| {
            service
                .methods
                .iter()
                .map(|method| method.name)
                .collect::<Vec<_>>()
        })
        .concat();
    for (protocol, name) in PROTOCOLS
        .into_iter()
        .flat_map(|protocol| names.iter().map(move |name| (protocol, name)))
    {
        let message = call(protocol, name, 7);
        for framed in [false, true] {
            let mut sent = if framed {
                (message.len() as u32).to_be_bytes().to_vec()
            } else {
                Vec::new()
            };
            sent.extend_from_slice(&message);
            check(&sent, Detected::Thrift { protocol, framed });
        }
    }
}

/// All of the bytes, and the first eight, give the answer; fewer give it or ask for more.
fn check(sent: &[u8], expected: Detected) {
    assert_eq!(detect(sent), expected, "{sent:x?}");
    assert_eq!(detect(&sent[..sent.len().min(8)]), expected, "{sent:x?}");
    for len in 0..sent.len().min(8) {
        let early = detect(&sent[..len]);
        assert!(
            early == Detected::NeedMore || early == expected,
            "{early:?} from {:x?}",
            &sent[..len]
        );
    }
}

#[test]
fn large_frames() {
    for first in [0x00, 0x01, 0x02, 0x04, 0x15] {
        let sent = [first, 0xfa, 0x00, 0x00, 0x80, 0x01, 0x00, 0x01];
        check(
            &sent,
            Detected::Thrift {
                protocol: Protocol::BinaryStrict,
                framed: true,
            },
        );
    }
}

#[test]
fn other_protocols() {
    check(b"POST / HTTP/1.1", Detected::Http);
    check(b"GET /metrics HTTP/1.1", Detected::Http);
    check(b"OPTIONS * HTTP/1.1", Detected::Http);
    check(b"PUT /x", Detected::Http);
    check(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01], Detected::Tls);
    check(b"\x01\0\0\0\x05PLAIN", Detected::Sasl);
    for preamble in [b"HBas\0\x50", b"Regist", b"Securi"] {
        check(preamble, Detected::HBaseRpc);
    }
    for length in crate::zookeeper::CONNECT_BYTES {
        let connect = [&length.to_be_bytes()[..], &[0; 12], &90_000_i32.to_be_bytes()].concat();
        check(&connect, Detected::ZooKeeper);
    }
    check(b"ruok", Detected::ZooKeeperWord);
    check(b"mntr\n", Detected::ZooKeeperWord);
}

#[test]
fn nonsense() {
    for sent in [
        b"SSH-2.0-OpenSSH" as &[u8],
        b"hello\n",
        b"GETS",
        b"\r\n",
        b"\n\n",
        &[0xff; 8],
        &[0x80, 0x02, 0, 1],
        &[0x82, 0x22],
        &[0; 8],
        &[0, 0, 0xff, 0xff, b'g', b'e', b't', 0],
        &[0, 0, 0, 20, 0x81, 0, 0, 0],
    ] {
        check(sent, Detected::Unknown);
    }
}
