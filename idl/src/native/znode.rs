//! Payload of the ZooKeeper nodes in which clients look up a server.
//!
//! ```text
//! ff | int32 n | n bytes: the writer's identifier | "PBUF" | protobuf message
//! ```
//!
//! Clients skip the identifier. They refuse a payload in which `ff` or "PBUF" is missing.

use prost::Message;

use super::messages::ServerName;

const MAGIC: u8 = 0xff;
const PROTOBUF_MAGIC: &[u8] = b"PBUF";

/// Identifier of the writer. Clients skip it.
const IDENTIFIER: &[u8] = b"basalt";

/// The payload of a node that holds `message`.
pub fn encode(message: &impl Message) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + message.encoded_len());
    out.push(MAGIC);
    out.extend_from_slice(&(IDENTIFIER.len() as u32).to_be_bytes());
    out.extend_from_slice(IDENTIFIER);
    encode_protobuf(message, &mut out);
    out
}

/// The message in a node's payload; `None` when a magic is missing or the message is malformed.
pub fn decode<M: Message + Default>(payload: &[u8]) -> Option<M> {
    let (&MAGIC, rest) = payload.split_first()? else {
        return None;
    };
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let skip = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    decode_protobuf(rest.get(skip..)?)
}

/// Appends "PBUF" and `message`: the form of `info:regioninfo` in `hbase:meta`.
pub fn encode_protobuf(message: &impl Message, out: &mut Vec<u8>) {
    out.extend_from_slice(PROTOBUF_MAGIC);
    message.encode(out).expect("a Vec grows");
}

/// The message behind "PBUF"; `None` when that is missing or the message is malformed.
pub fn decode_protobuf<M: Message + Default>(bytes: &[u8]) -> Option<M> {
    M::decode(bytes.strip_prefix(PROTOBUF_MAGIC)?).ok()
}

/// A server's name as text: `host,port,startcode`.
pub fn server_name_text(name: &ServerName) -> String {
    format!(
        "{},{},{}",
        name.host_name,
        name.port.unwrap_or_default(),
        name.start_code.unwrap_or_default()
    )
}
