//! The part of ZooKeeper's client protocol by which clients read nodes to find an HBase server.
//!
//! ```text
//! packet:           int32 length | that many bytes
//! first request:    int32 version = 0 | int64 last zxid | int32 timeout | int64 session
//!                   | buffer password [| bool read only]
//! further requests: int32 xid | int32 operation | body
//! responses:        int32 xid | int64 zxid | int32 error | body, only when the error is 0
//! ```
//!
//! Strings and buffers have an int32 length in front (-1: null). Integers are big-endian. Decoders
//! take a packet without its length. Nothing here does I/O, and no decoder allocates: strings and
//! buffers are slices of the packet.

mod multi;

pub use multi::{MultiOp, MultiOps, MultiResult};

/// Longest packet that is accepted: requests have a path and a few numbers.
pub const PACKET_BYTES_MAX: usize = 64 << 10;

/// Lengths of a first packet with a password of 16 bytes: without and with the read-only flag.
pub const CONNECT_BYTES: [u32; 2] = [44, 45];

/// xid of pings and of their answers.
pub const PING_XID: i32 = -2;

/// Error codes of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZkError {
    /// An operation that is not served.
    Unimplemented = -6,
    /// No such node.
    NoNode = -101,
    /// Not allowed: every change.
    NoAuth = -102,
    /// A path without a slash in front, or too much in one packet.
    BadArguments = -8,
    /// The node has another version.
    BadVersion = -103,
    /// An operation of a transaction behind the one that failed.
    RuntimeInconsistency = -2,
}

/// A malformed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ZooKeeper packet: {0} is missing or does not fit")]
pub struct PacketError(pub &'static str);

/// The first packet of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRequest<'a> {
    /// Session timeout the client asks for, milliseconds.
    pub timeout_ms: i32,
    /// 0 for a new session.
    pub session: i64,
    /// Password of the session.
    pub password: &'a [u8],
    /// Whether the packet has a read-only flag. The response must have one exactly then.
    pub has_read_only: bool,
}

impl<'a> ConnectRequest<'a> {
    /// Reads a first packet.
    pub fn decode(packet: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader(packet);
        if reader.int("protocol version")? != 0 {
            return Err(PacketError("protocol version 0"));
        }
        reader.long("last zxid")?;
        let timeout_ms = reader.int("timeout")?;
        let session = reader.long("session")?;
        let password = reader.buffer("password")?;
        let has_read_only = match reader.0.len() {
            0 => false,
            1 => true,
            _ => return Err(PacketError("end of the connect request")),
        };
        Ok(Self {
            timeout_ms,
            session,
            password,
            has_read_only,
        })
    }
}

/// Appends the response to a [`ConnectRequest`], with its length.
pub fn put_connect_response(
    timeout_ms: i32,
    session: i64,
    password: &[u8; 16],
    has_read_only: bool,
    out: &mut Vec<u8>,
) {
    let at = begin_packet(out);
    out.extend_from_slice(&0_i32.to_be_bytes());
    out.extend_from_slice(&timeout_ms.to_be_bytes());
    out.extend_from_slice(&session.to_be_bytes());
    put_buffer(password, out);
    if has_read_only {
        out.push(0);
    }
    end_packet(at, out);
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Whether a node exists.
    Exists(&'a [u8]),
    /// A node's data.
    GetData(&'a [u8]),
    /// Names of a node's children, for `getChildren2` with the node's Stat.
    GetChildren {
        /// Path of the node.
        path: &'a [u8],
        /// Whether the Stat is wanted.
        with_stat: bool,
    },
    /// Keeps the session alive.
    Ping,
    /// Ends the session.
    Close,
    /// Registers authentication or watches, or removes a watch. Accepted without effect.
    Register,
    /// Registers a watch; unlike [`Self::Register`], its answer has a body.
    AddWatch,
    /// The permissions of a node.
    GetAcl(&'a [u8]),
    /// Waits until the server has all changes.
    Sync(&'a [u8]),
    /// The number of nodes below a node.
    CountBelow(&'a [u8]),
    /// The session's own nodes that end with it.
    GetEphemerals,
    /// The client, as the server knows it.
    WhoAmI,
    /// Operations of which all are done or none; with `reads`, any number of reads.
    Multi {
        /// The operations.
        operations: MultiOps<'a>,
        /// Whether they are reads, which succeed or fail one by one.
        reads: bool,
    },
    /// The version of a node.
    Check {
        /// Path of the node.
        path: &'a [u8],
        /// The version that it should have; -1: any.
        version: i32,
    },
    /// A change of a node.
    Change(Change<'a>),
    /// Not served.
    Other(i32),
}

/// A change of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// Path of the node.
    pub path: &'a [u8],
    /// Whether it creates or deletes the node, which changes the node above it, too.
    pub of_parent: bool,
}

/// A request after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZkRequest<'a> {
    /// Repeated in the response.
    pub xid: i32,
    /// The operation.
    pub operation: Operation<'a>,
}

impl<'a> ZkRequest<'a> {
    /// Reads a request. The watch flag is ignored: no watch events are sent.
    pub fn decode(packet: &'a [u8]) -> Result<Self, PacketError> {
        let mut reader = Reader(packet);
        let xid = reader.int("xid")?;
        let operation = match reader.int("operation")? {
            3 => Operation::Exists(reader.buffer("path")?),
            4 => Operation::GetData(reader.buffer("path")?),
            code @ (8 | 12) => Operation::GetChildren {
                path: reader.buffer("path")?,
                with_stat: code == 12,
            },
            11 => Operation::Ping,
            -11 => Operation::Close,
            17 | 18 | 100 | 101 | 105 => Operation::Register,
            106 => Operation::AddWatch,
            6 => Operation::GetAcl(reader.buffer("path")?),
            9 => Operation::Sync(reader.buffer("path")?),
            104 => Operation::CountBelow(reader.buffer("path")?),
            103 => Operation::GetEphemerals,
            107 => Operation::WhoAmI,
            code @ (14 | 22) => Operation::Multi {
                operations: MultiOps::new(reader),
                reads: code == 22,
            },
            13 => Operation::Check {
                path: reader.buffer("path")?,
                version: reader.int("version")?,
            },
            code @ (1 | 2 | 5 | 7 | 15 | 19 | 20 | 21) => Operation::Change(Change {
                path: reader.buffer("path")?,
                of_parent: !matches!(code, 5 | 7),
            }),
            other => Operation::Other(other),
        };
        Ok(Self { xid, operation })
    }
}

/// Attributes of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Transaction that created and last changed the node.
    pub zxid: i64,
    /// Time of that transaction, milliseconds since 1970.
    pub time_ms: i64,
    /// Bytes of its data.
    pub data_length: i32,
    /// Number of its children.
    pub children: i32,
}

/// Writes responses of one session.
#[derive(Debug)]
pub struct Responses<'o> {
    /// Transaction id of every response. It must never decrease, also not over restarts.
    pub zxid: i64,
    /// Buffer to which responses are appended.
    pub out: &'o mut Vec<u8>,
}

impl Responses<'_> {
    /// An error, or success without a body when `error` is `None`.
    pub fn empty(&mut self, xid: i32, error: Option<ZkError>) {
        let at = self.begin(xid, error);
        end_packet(at, self.out);
    }

    /// The answer to exists.
    pub fn stat(&mut self, xid: i32, stat: Stat) {
        let at = self.begin(xid, None);
        put_stat(stat, self.out);
        end_packet(at, self.out);
    }

    /// The answer to getData.
    pub fn data(&mut self, xid: i32, data: &[u8], stat: Stat) {
        let at = self.begin(xid, None);
        put_buffer(data, self.out);
        put_stat(stat, self.out);
        end_packet(at, self.out);
    }

    /// The answer to getChildren, and to getChildren2 with `stat`.
    pub fn children<'n>(
        &mut self,
        xid: i32,
        names: impl ExactSizeIterator<Item = &'n str>,
        stat: Option<Stat>,
    ) {
        let at = self.begin(xid, None);
        self.out.extend_from_slice(&(names.len() as i32).to_be_bytes());
        for name in names {
            put_buffer(name.as_bytes(), self.out);
        }
        if let Some(stat) = stat {
            put_stat(stat, self.out);
        }
        end_packet(at, self.out);
    }

    /// The answer to getACL: everybody has these permissions.
    pub fn acl(&mut self, xid: i32, permissions: i32, stat: Stat) {
        let at = self.begin(xid, None);
        self.out.extend_from_slice(&1_i32.to_be_bytes());
        self.out.extend_from_slice(&permissions.to_be_bytes());
        put_buffer(b"world", self.out);
        put_buffer(b"anyone", self.out);
        put_stat(stat, self.out);
        end_packet(at, self.out);
    }

    /// The answer to sync.
    pub fn path(&mut self, xid: i32, path: &[u8]) {
        let at = self.begin(xid, None);
        put_buffer(path, self.out);
        end_packet(at, self.out);
    }

    /// A number: the answer to getAllChildrenNumber, and with 0 those to addWatch and getEphemerals.
    pub fn number(&mut self, xid: i32, number: i32) {
        let at = self.begin(xid, None);
        self.out.extend_from_slice(&number.to_be_bytes());
        end_packet(at, self.out);
    }

    /// The answer to whoAmI: one scheme with its user.
    pub fn identity(&mut self, xid: i32, scheme: &str, user: &str) {
        let at = self.begin(xid, None);
        self.out.extend_from_slice(&1_i32.to_be_bytes());
        put_buffer(scheme.as_bytes(), self.out);
        put_buffer(user.as_bytes(), self.out);
        end_packet(at, self.out);
    }

    /// The answer to a multi.
    pub fn multi<'n>(&mut self, xid: i32, results: impl Iterator<Item = MultiResult<'n>>) {
        let at = self.begin(xid, None);
        results.for_each(|result| result.put(self.out));
        MultiResult::put_end(self.out);
        end_packet(at, self.out);
    }

    fn begin(&mut self, xid: i32, error: Option<ZkError>) -> usize {
        let at = begin_packet(self.out);
        self.out.extend_from_slice(&xid.to_be_bytes());
        self.out.extend_from_slice(&self.zxid.to_be_bytes());
        let code = error.map_or(0, |error| error as i32);
        self.out.extend_from_slice(&code.to_be_bytes());
        at
    }
}

fn put_stat(stat: Stat, out: &mut Vec<u8>) {
    for _ in ["czxid", "mzxid"] {
        out.extend_from_slice(&stat.zxid.to_be_bytes());
    }
    for _ in ["ctime", "mtime"] {
        out.extend_from_slice(&stat.time_ms.to_be_bytes());
    }
    for _ in ["version", "cversion", "aversion"] {
        out.extend_from_slice(&0_i32.to_be_bytes());
    }
    out.extend_from_slice(&0_i64.to_be_bytes());
    out.extend_from_slice(&stat.data_length.to_be_bytes());
    out.extend_from_slice(&stat.children.to_be_bytes());
    out.extend_from_slice(&stat.zxid.to_be_bytes());
}

fn begin_packet(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; 4]);
    out.len()
}

fn end_packet(at: usize, out: &mut [u8]) {
    let length = (out.len() - at) as u32;
    out[at - 4..at].copy_from_slice(&length.to_be_bytes());
}

fn put_buffer(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Reads the parts of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn int(&mut self, what: &'static str) -> Result<i32, PacketError> {
        let (value, rest) = self.0.split_first_chunk::<4>().ok_or(PacketError(what))?;
        self.0 = rest;
        Ok(i32::from_be_bytes(*value))
    }

    fn long(&mut self, what: &'static str) -> Result<i64, PacketError> {
        let (value, rest) = self.0.split_first_chunk::<8>().ok_or(PacketError(what))?;
        self.0 = rest;
        Ok(i64::from_be_bytes(*value))
    }

    fn bool(&mut self, what: &'static str) -> Result<bool, PacketError> {
        let (value, rest) = self.0.split_first().ok_or(PacketError(what))?;
        self.0 = rest;
        Ok(*value != 0)
    }

    /// A string or buffer; null reads as empty.
    fn buffer(&mut self, what: &'static str) -> Result<&'a [u8], PacketError> {
        let length = self.int(what)?;
        let length = if length == -1 { 0 } else { length };
        let length = usize::try_from(length).map_err(|_| PacketError(what))?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(PacketError(what))?;
        self.0 = rest;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
