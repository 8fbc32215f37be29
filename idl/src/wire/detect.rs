//! Detects a client's protocol by the first bytes of its connection.
//!
//! ```text
//! byte  0  1  2  3 | 4  5  6  7
//!      80 01 .. ..                  binary, strict
//!      82 .1                        compact
//!      frame length | 80 01         framed, binary strict
//!      frame length | 82 .1         framed, compact
//!      frame length | 00 00 0. ..   framed, binary old: the length of the method name
//!      00 00 0. ..  | letter        binary, old: the length of the method name, then the name
//!      G E T ' '                    HTTP
//!      H B a s                      HBase's RPC; also R e g i and S e c u
//!      00 00 00 2c  | 00 00 00 00   ZooKeeper: length (or 2d) and version of a connect request
//!      r u o k                      ZooKeeper: a four-letter word
//! ```
//!
//! No two rows share a prefix: a frame length has a first byte of up to 15 (hexadecimal), and a
//! method name starts with a letter, where a frame starts with 80, 82 or 00. Eight bytes always
//! suffice. Some lengths of a first message are not recognised: 352 MiB and more, since TLS and
//! HTTP begin with greater bytes, and those that begin with 0a0a or 0d0a, which are empty lines of
//! text.

use super::METHOD_NAME_BYTES_MAX;
use crate::zookeeper::CONNECT_BYTES;

/// The protocol of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Binary with a version in the message header.
    BinaryStrict,
    /// Binary without a version: old clients. Replies are strict, as from HBase.
    BinaryOld,
    /// Compact.
    Compact,
}

/// Result of a detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detected {
    /// A Thrift message.
    Thrift {
        /// The protocol of the message.
        protocol: Protocol,
        /// Whether four bytes of length come first.
        framed: bool,
    },
    /// An HTTP request.
    Http,
    /// A TLS handshake, which this port cannot answer in clear.
    Tls,
    /// The start of a SASL negotiation.
    Sasl,
    /// HBase's native RPC.
    HBaseRpc,
    /// A ZooKeeper session.
    ZooKeeper,
    /// One of ZooKeeper's four-letter words.
    ZooKeeperWord,
    /// Nothing that is known here. The connection should be closed.
    Unknown,
    /// All is possible yet. At most eight bytes are ever needed.
    NeedMore,
}

/// Request methods of HTTP, with the blank that ends them. The first four letters decide.
const HTTP_METHODS: [&[u8; 4]; 9] = [
    b"GET ", b"POST", b"OPTI", b"HEAD", b"PUT ", b"DELE", b"TRAC", b"CONN", b"PATC",
];

/// Detects the protocol of a connection by its first bytes.
pub fn detect(first: &[u8]) -> Detected {
    match *first {
        [] | [0x80 | 0x82 | 0x16] => Detected::NeedMore,
        [0x80, 0x01, ..] => thrift(Protocol::BinaryStrict, false),
        [0x82, second, ..] if second & 0x1f == 1 => thrift(Protocol::Compact, false),
        [0x16, 0x03, ..] => Detected::Tls,
        // Empty lines of text. As a length they would be 160 or 208 MiB, too much for a first
        // message.
        [b'\n' | b'\r', b'\n', ..] => Detected::Unknown,
        [0x00..=0x15, ..] => detect_length(first),
        [b'A'..=b'Z', ..] => detect_letters(first),
        [b'a'..=b'z', ..] => detect_word(first),
        _ => Detected::Unknown,
    }
}

const fn thrift(protocol: Protocol, framed: bool) -> Detected {
    Detected::Thrift { protocol, framed }
}

/// The first four bytes are a length: of a frame, or of an old header's method name. SASL has its status
/// byte (1, start) before the length of the mechanism's name.
fn detect_length(first: &[u8]) -> Detected {
    let Some((length, rest)) = first.split_first_chunk::<4>() else {
        return Detected::NeedMore;
    };
    let len = u32::from_be_bytes(*length);
    match *rest {
        [0, 0, 0, 0, ..] if CONNECT_BYTES.contains(&len) => Detected::ZooKeeper,
        [0, 0, 0] if CONNECT_BYTES.contains(&len) => Detected::NeedMore,
        [] | [0x80 | 0x82 | 0x00] | [0x00, 0x00] | [0x00, 0x00, 0x00 | 0x01] => Detected::NeedMore,
        [0x80, 0x01, ..] => thrift(Protocol::BinaryStrict, true),
        [0x82, second, ..] if second & 0x1f == 1 => thrift(Protocol::Compact, true),
        [letter, ..] if letter.is_ascii_alphabetic() && is_name_len(len) => {
            thrift(Protocol::BinaryOld, false)
        }
        // Mechanism names have 1 to 20 characters.
        [1..=20, ..] if len == 0x0100_0000 => Detected::Sasl,
        [0x00, high, mid, low, ..] if is_name_len(u32::from_be_bytes([0, high, mid, low])) => {
            thrift(Protocol::BinaryOld, true)
        }
        _ => Detected::Unknown,
    }
}

fn is_name_len(len: u32) -> bool {
    (1..=METHOD_NAME_BYTES_MAX as u32).contains(&len)
}

/// The first four letters of HBase's preambles.
const HBASE_PREAMBLES: [&[u8; 4]; 3] = [b"HBas", b"Regi", b"Secu"];

/// ZooKeeper's four-letter words, which monitoring sends.
const ZOOKEEPER_WORDS: [&[u8; 4]; 18] = [
    b"conf", b"cons", b"crst", b"dirs", b"dump", b"envi", b"gtmk", b"hash", b"isro", b"mntr", b"ruok",
    b"srst", b"srvr", b"stat", b"stmk", b"wchc", b"wchp", b"wchs",
];

fn detect_letters(first: &[u8]) -> Detected {
    match begin_of(first, &HBASE_PREAMBLES) {
        Begin::Whole => Detected::HBaseRpc,
        Begin::Part => Detected::NeedMore,
        Begin::None => match begin_of(first, &HTTP_METHODS) {
            Begin::Whole => Detected::Http,
            Begin::Part => Detected::NeedMore,
            Begin::None => Detected::Unknown,
        },
    }
}

fn detect_word(first: &[u8]) -> Detected {
    match begin_of(first, &ZOOKEEPER_WORDS) {
        Begin::Whole => Detected::ZooKeeperWord,
        Begin::Part => Detected::NeedMore,
        Begin::None => Detected::Unknown,
    }
}

/// How much of one of the expected words has arrived.
enum Begin {
    Whole,
    Part,
    None,
}

fn begin_of(first: &[u8], words: &[&[u8; 4]]) -> Begin {
    let begin = first.get(..4).unwrap_or(first);
    match (words.iter().any(|word| word.starts_with(begin)), begin.len()) {
        (true, 4) => Begin::Whole,
        (true, _) => Begin::Part,
        (false, _) => Begin::None,
    }
}
