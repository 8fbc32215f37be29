//! Clients of other protocols: detection by their first bytes, and texts that explain the refusal
//! to the user.
//!
//! 1. [`ForeignProtocol::of`] names the protocol.
//! 2. The [`fmt::Display`] text names the protocol and the remedy. It is logged.
//! 3. [`ForeignProtocol::reply`] encodes that text in the protocol, where the protocol allows an error as
//!    the first reply.
//!
//! This helps users with the wrong port or client. Nothing depends on the guess: the connection is
//! refused anyway.

use std::fmt;
use std::time::Duration;

use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::frame::{CONNECTION_CALL_ID, put_exception};
use basalt_idl::native::preamble::{EXPECTED_HEADER, PREAMBLE_BYTES, RPC_VERSION};
use basalt_idl::wire::Detected;
use tokio_util::sync::CancellationToken;

use crate::server::Server;
use crate::socket::Socket;

/// A fatal alert, `handshake_failure` (RFC 8446, section 6; the same in every version before).
const TLS_ALERT: &[u8] = &[21, 3, 1, 0, 2, 2, 40];
/// Status byte `ERROR` of Thrift's SASL negotiation; a length and a text follow.
const SASL_ERROR: u8 = 4;
/// Signature of HAProxy's PROXY protocol, version 2.
const PROXY_HEADER: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Codes in front of a PostgreSQL session: cancel, TLS, GSSAPI, and version 3.
const POSTGRESQL_CODES: [[u8; 4]; 4] = [[4, 210, 22, 46], [4, 210, 22, 47], [4, 210, 22, 48], [0, 3, 0, 0]];
/// Bytes that are examined for text.
const TEXT_BYTES: usize = 64;

/// A protocol that a port does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ForeignProtocol {
    /// HTTP/1.
    Http,
    /// HTTP/2 without TLS, as gRPC speaks it.
    Http2,
    /// A TLS handshake.
    Tls,
    /// Thrift's SASL handshake.
    Sasl,
    /// HBase's RPC between Java clients and region servers.
    HbaseRpc,
    /// A preamble of the form of HBase's, with other letters: of a client that is newer or broken.
    HbasePreamble,
    /// A client of ZooKeeper.
    ZooKeeper,
    /// HBase's RPC to a gateway, whose tables are elsewhere.
    HbaseRpcOfGateway,
    /// A client of ZooKeeper at a gateway.
    ZooKeeperOfGateway,
    /// A client of Redis.
    Redis,
    /// A client of PostgreSQL.
    PostgreSql,
    /// A client of SSH.
    Ssh,
    /// The header that a proxy puts in front of a connection.
    Proxy,
    /// Thrift's JSON protocol.
    ThriftJson,
    /// Thrift's header transport.
    ThriftHeader,
    /// Lines of text, as from telnet.
    Text,
    /// Anything else.
    Unknown,
}

impl ForeignProtocol {
    /// The protocol of first bytes that [`basalt_idl::wire::detect`] did not recognize as one that the
    /// port serves.
    pub(crate) fn of(detected: Detected, first: &[u8]) -> Self {
        match detected {
            Detected::Http => Self::Http,
            Detected::Tls => Self::Tls,
            Detected::Sasl => Self::Sasl,
            Detected::HBaseRpc => Self::HbaseRpc,
            Detected::ZooKeeper | Detected::ZooKeeperWord => Self::ZooKeeper,
            _ => Self::from_bytes(first),
        }
    }

    fn from_bytes(first: &[u8]) -> Self {
        let begins = |with: &[u8]| first.starts_with(with);
        let next = first.get(4..8).unwrap_or_default();
        if begins(b"PRI ") {
            Self::Http2
        } else if begins(b"SSH-") {
            Self::Ssh
        } else if begins(b"PROXY ") || begins(PROXY_HEADER) {
            Self::Proxy
        } else if begins(b"[1,") {
            Self::ThriftJson
        } else if next.starts_with(&[0x0f, 0xff]) {
            Self::ThriftHeader
        } else if begins(&[0, 0]) && POSTGRESQL_CODES.iter().any(|code| next == code) {
            Self::PostgreSql
        } else if is_redis(first) {
            Self::Redis
        } else if is_preamble(first) {
            Self::HbasePreamble
        } else if is_text(first) {
            Self::Text
        } else {
            Self::Unknown
        }
    }

    /// The reply to send before the connection is closed; empty where the protocol has none.
    pub(crate) fn reply(self) -> Vec<u8> {
        let text = self.to_string();
        match self {
            Self::Http => format!(
                "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}\n",
                text.len() + 1
            )
            .into_bytes(),
            Self::Tls => TLS_ALERT.to_vec(),
            Self::Sasl => [&[SASL_ERROR][..], &length(text.len())[..], text.as_bytes()].concat(),
            Self::Redis => format!("-ERR {text}\r\n").into_bytes(),
            Self::PostgreSql => postgresql_error(&text),
            Self::HbasePreamble | Self::HbaseRpcOfGateway => {
                let mut out = Vec::new();
                let refusal = ExceptionClass::FatalConnection.response(&text);
                put_exception(CONNECTION_CALL_ID, refusal, &mut out);
                out
            }
            // An SSH client shows lines that precede the server's version.
            Self::Ssh | Self::Text => format!("{text}\r\n").into_bytes(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for ForeignProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => {
                "this is the main port (server.listen), and HBase's REST interface is switched off here (rest.enabled); Thrift over HTTP is on \
                 the HTTP port (http.listen), at /thrift1 and /thrift2, as are metrics, health and status"
            }
            Self::Http2 => {
                "the first bytes are HTTP/2, as gRPC and some proxies send it: Basalt has HTTP/1.1 on its HTTP port (http.listen)"
            }
            Self::Tls => {
                "the first bytes are a TLS handshake, and TLS is not configured: connect without TLS, or through a proxy that ends it"
            }
            Self::Sasl => {
                "the first bytes are a SASL handshake, and SASL is not configured: switch security off in the client"
            }
            Self::HbaseRpc => {
                "the first bytes are HBase's own RPC, which the port for binary protocols speaks (server.listen), and this one does not"
            }
            Self::HbasePreamble => {
                return write!(f, "{EXPECTED_HEADER}: the first bytes have the form of HBase's preamble, and other letters");
            }
            Self::ZooKeeper => {
                "the first bytes are a ZooKeeper client's, as HBase's clients send them before anything else: set \
                 hbase.zookeeper.property.clientPort to the port for binary protocols (server.listen)"
            }
            Self::HbaseRpcOfGateway => {
                "this is a Basalt gateway, for clients of Thrift and REST; its tables are in another cluster: native clients connect to \
                 that cluster themselves"
            }
            Self::ZooKeeperOfGateway => {
                "this is a Basalt gateway, for clients of Thrift and REST, and has no ZooKeeper: native clients set hbase.zookeeper.quorum to \
                 that of the cluster"
            }
            Self::Redis => "the first bytes are a Redis client's, and this is Basalt, which speaks HBase's protocols: check the port",
            Self::PostgreSql => {
                "the first bytes are a PostgreSQL client's, and this is Basalt, which speaks HBase's protocols: check the port"
            }
            Self::Ssh => "the first bytes are an SSH client's, and this is Basalt, which speaks HBase's protocols: check the port",
            Self::Proxy => {
                "the first bytes are the PROXY header of a proxy, which Basalt does not read: switch the PROXY protocol off there"
            }
            Self::ThriftJson => {
                "the first bytes are Thrift's JSON protocol: use the binary or the compact protocol, as with HBase's gateway"
            }
            Self::ThriftHeader => {
                "the first bytes are Thrift's header transport: use framed or unframed (buffered) transport, as with HBase's gateway"
            }
            Self::Text => {
                "the first bytes are text: this is Basalt, which speaks HBase's protocols; for people there are basalt-shell and the \
                 pages of the HTTP port"
            }
            Self::Unknown => {
                "the first bytes are of no protocol of HBase's clients: check the port, and with Thrift the client's protocol (binary or compact) and \
                 transport (framed or unframed)"
            }
        })
    }
}

/// Ends the connection of a client that speaks `protocol`, with the reason where it can be told.
pub(super) async fn refuse(
    server: &Server,
    socket: Socket,
    protocol: ForeignProtocol,
    stop: &CancellationToken,
) {
    server.load().connections.protocol_errors.increment(1);
    let limit = Duration::from_millis(server.config().server.message_timeout_ms);
    socket.send_and_close(&protocol.reply(), limit, stop).await;
}

/// Ends a connection in order, without a word: a reset would hide the end from a client that sends.
pub(super) async fn end(server: &Server, socket: Socket, stop: &CancellationToken) {
    let limit = Duration::from_millis(server.config().server.message_timeout_ms);
    socket.send_and_close(b"", limit, stop).await;
}

/// The length of a text, in network byte order.
fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes()
}

/// PostgreSQL's ErrorResponse: severity, code of a protocol violation, message.
fn postgresql_error(text: &str) -> Vec<u8> {
    let fields = format!("SFATAL\0C08P01\0M{text}\0\0");
    [&b"E"[..], &length(fields.len() + 4)[..], fields.as_bytes()].concat()
}

fn is_redis(first: &[u8]) -> bool {
    matches!(first, [b'*', b'0'..=b'9', ..]) || first.trim_ascii_end().eq_ignore_ascii_case(b"PING")
}

/// Whether the bytes are letters where HBase's RPC has its own, with a version and an authentication
/// method behind them; or a preamble of letters alone, whose client waits for the answer.
fn is_preamble(first: &[u8]) -> bool {
    let is_word = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_alphabetic);
    match first.split_first_chunk::<4>() {
        Some((letters, [RPC_VERSION, 80..=82, ..])) => is_word(letters),
        _ => first.len() == PREAMBLE_BYTES && is_word(first),
    }
}

/// Whether the bytes are printable ASCII and line ends, or telnet options.
fn is_text(first: &[u8]) -> bool {
    let first = first.get(..TEXT_BYTES).unwrap_or(first);
    match first {
        [0xff, 0xfb..=0xfe, ..] => true,
        [] => false,
        _ => first
            .iter()
            .all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')),
    }
}

#[cfg(test)]
mod tests {
    use basalt_idl::wire::detect;

    use super::*;

    #[test]
    fn protocols_are_named_by_their_first_bytes() {
        for (first, expected) in [
            (&b"GET / HTTP/1.1\r\n"[..], ForeignProtocol::Http),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ForeignProtocol::Http2),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01", ForeignProtocol::Tls),
            (b"\x01\0\0\0\x05PLAIN", ForeignProtocol::Sasl),
            (b"HBas\0\x50", ForeignProtocol::HbaseRpc),
            (
                b"\0\0\0\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x75\x30",
                ForeignProtocol::ZooKeeper,
            ),
            (b"ruok", ForeignProtocol::ZooKeeper),
            (b"*1\r\n$4\r\nPING\r\n", ForeignProtocol::Redis),
            (b"PING\r\n", ForeignProtocol::Redis),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", ForeignProtocol::PostgreSql),
            (b"\0\0\0\x29\0\x03\0\0user\0", ForeignProtocol::PostgreSql),
            (b"SSH-2.0-OpenSSH_9.2\r\n", ForeignProtocol::Ssh),
            (b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n", ForeignProtocol::Proxy),
            (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", ForeignProtocol::Proxy),
            (b"[1,\"getTableNames\",1,0,{}]", ForeignProtocol::ThriftJson),
            (b"\0\0\0\x20\x0f\xff\0\0", ForeignProtocol::ThriftHeader),
            (b"HBaz\0\x50\0\0\0\x0a", ForeignProtocol::HbasePreamble),
            (b"hbas\0\x51", ForeignProtocol::HbasePreamble),
            (b"Rogist", ForeignProtocol::HbasePreamble),
            (b"HBaz\x01\x50", ForeignProtocol::Unknown),
            (b"Rogist\r\n", ForeignProtocol::Text),
            (b"hello\r\n", ForeignProtocol::Text),
            (b"\r\n", ForeignProtocol::Text),
            (b"\xff\xfb\x1f\xff\xfb\x20", ForeignProtocol::Text),
            (b"\xff\xff\xff\xff", ForeignProtocol::Unknown),
            (b"\x3a\0\0\0\x01\0\0\0", ForeignProtocol::Unknown),
        ] {
            assert_eq!(
                ForeignProtocol::of(detect(first), first),
                expected,
                "{}",
                first.escape_ascii()
            );
        }
    }

    #[test]
    fn replies_are_in_the_form_of_the_protocol() {
        let reply = ForeignProtocol::PostgreSql.reply();
        assert_eq!((reply[0], reply.last()), (b'E', Some(&0)));
        assert_eq!(reply[1..5], length(reply.len() - 1));
        assert!(
            ForeignProtocol::Redis.reply().starts_with(b"-ERR ")
                && ForeignProtocol::Redis.reply().ends_with(b"\r\n")
        );
        let http = String::from_utf8(ForeignProtocol::Http.reply()).unwrap();
        let (head, body) = http.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("Content-Length: {}\r\n", body.len())),
            "{http}"
        );
        assert!(
            ForeignProtocol::HbaseRpc.reply().is_empty() && ForeignProtocol::ZooKeeper.reply().is_empty()
        );
    }
}
