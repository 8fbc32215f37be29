//! A read-only ZooKeeper server with the nodes in which native clients look up the HBase server.
//!
//! 1. A client connects and requests a session. A session ends with its connection: a client that
//!    reconnects gets a new one.
//! 2. The client reads `hbaseid`, `meta-region-server`, `master` and the states of tables below the
//!    base node (`operations`, `nodes`).
//! 3. The client closes the session, or sends pings to keep it.
//!
//! A connection may instead begin with one of ZooKeeper's four-letter words (`words`).
//!
//! Nodes are computed from the settings and the catalog. Changes are refused, and no watch events
//! are sent. A connection that sends nothing for its session's timeout is closed, and so is one whose
//! packet is not complete after `server.message_timeout_ms`. Packets are bounded by
//! `PACKET_BYTES_MAX`; large ones and large responses are reserved from the memory for calls
//! (`transfer`).

use std::sync::Arc;
use std::time::Duration;

use basalt_idl::zookeeper::{ConnectRequest, PACKET_BYTES_MAX, PacketError, put_connect_response};
use bytes::{Buf, BytesMut};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::limits::admission::{Busy, MemoryPermit};
use crate::security::Caller;
use crate::server::Server;
use crate::socket::Socket;
use nodes::Nodes;
use operations::answer;
use sessions::Registered;
pub(crate) use sessions::Sessions;
use transfer::Transfer;
use words::Asked;

mod nodes;
mod operations;
mod sessions;
mod transfer;
mod words;

/// Bounds of a session's timeout: ZooKeeper's default minimum (two ticks of 2 s), and HBase's
/// default `zookeeper.session.timeout`, which its clients request.
const SESSION_TIMEOUT_MS: std::ops::RangeInclusive<i32> = 4_000..=90_000;

/// Responses to requests that came together are sent when they have this many bytes.
const OUT_BYTES: usize = 64 << 10;

/// Why a session ended, when it was not the client that closed it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    #[error("{0}")]
    Packet(#[from] PacketError),
    #[error("a ZooKeeper packet of {0} bytes; the limit is {PACKET_BYTES_MAX}")]
    TooLong(u32),
    #[error("no ZooKeeper packet for {0:?}, the session's timeout")]
    Silent(Duration),
    #[error("a ZooKeeper packet was not complete after {0:?} (server.message_timeout_ms)")]
    SlowPacket(Duration),
    #[error("the client did not take the responses in {0:?} (server.write_timeout_ms)")]
    SlowReader(Duration),
    #[error("{0}")]
    Busy(#[from] Busy),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Answers a four-letter word and closes the connection.
pub(crate) async fn answer_word(
    server: &Arc<Server>,
    sessions: &Sessions,
    mut socket: Socket,
    first: &[u8],
) -> Result<(), End> {
    let Some(word) = first.first_chunk::<4>() else {
        return Ok(());
    };
    let peer = socket.peer_addr()?;
    let asked = Asked {
        server,
        sessions,
        peer,
    };
    let mut permit = MemoryPermit::empty(server.admission().memory());
    permit.raise(asked.answer_bytes()).await?;
    let answer = asked.answer(*word);
    let limit = Duration::from_millis(server.config().server.write_timeout_ms);
    let sent = async {
        socket.write.write_all(answer.as_bytes()).await?;
        socket.write.shutdown().await
    };
    Ok(timeout(limit, sent).await.map_err(|_| End::SlowReader(limit))??)
}

/// Serves a session until either side ends it. `received` holds the bytes that have arrived.
pub(crate) async fn run(
    server: Arc<Server>,
    sessions: &Sessions,
    mut socket: Socket,
    mut received: BytesMut,
    (number, caller): (u64, Arc<Caller>),
    stop: CancellationToken,
) -> Result<(), End> {
    let address = socket.peer_addr()?;
    let nodes = Nodes::new(&server, &caller);
    let session = sessions.register(number, address, nodes.wall_ms());
    let mut out = Vec::new();
    let mut transfer = Transfer::new(&server, Some(address.ip()));
    let mut has_session = false;
    loop {
        let mut is_new = false;
        while let Some(packet) = next_packet(&mut received)? {
            is_new = true;
            if has_session {
                transfer.reserve_response(&server, &packet).await?;
                if !answer(&nodes, &session, &packet, &mut out)? {
                    return transfer.send(&socket.write, &mut out, &stop).await;
                }
                if out.len() > OUT_BYTES {
                    transfer.send(&socket.write, &mut out, &stop).await?;
                }
            } else {
                transfer.session = Some(open_session(&packet, number, &session, &mut out)?);
                has_session = true;
            }
        }
        transfer.send(&socket.write, &mut out, &stop).await?;
        let count = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            read = transfer.receive(&mut socket.read, &mut received, is_new) => read?,
        };
        server.load().connections.received_bytes.add(count as u64);
        if count == 0 {
            return Ok(());
        }
    }
}

/// Takes the next packet off `received`; `None` when it is not complete.
fn next_packet(received: &mut BytesMut) -> Result<Option<BytesMut>, End> {
    let Some(length) = received
        .first_chunk::<4>()
        .map(|bytes| u32::from_be_bytes(*bytes))
    else {
        return Ok(None);
    };
    if length as usize > PACKET_BYTES_MAX {
        return Err(End::TooLong(length));
    }
    if received.len() < 4 + length as usize {
        return Ok(None);
    }
    received.advance(4);
    Ok(Some(received.split_to(length as usize)))
}

/// Answers the first packet; returns the session's timeout.
fn open_session(
    packet: &[u8],
    number: u64,
    registered: &Registered<'_>,
    out: &mut Vec<u8>,
) -> Result<Duration, End> {
    let request = ConnectRequest::decode(packet)?;
    let timeout_ms = request
        .timeout_ms
        .clamp(*SESSION_TIMEOUT_MS.start(), *SESSION_TIMEOUT_MS.end());
    // Ids of sessions are positive, and 0 means none.
    let session = (number & i64::MAX as u64).max(1) as i64;
    put_connect_response(timeout_ms, session, &[0; 16], request.has_read_only, out);
    registered.began(timeout_ms);
    Ok(Duration::from_millis(timeout_ms.unsigned_abs().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_taken_whole_and_bounded() {
        let mut received = BytesMut::from(&[0, 0, 0, 2, 7][..]);
        assert!(next_packet(&mut received).unwrap().is_none());
        received.extend_from_slice(&[8, 0, 0]);
        assert_eq!(&next_packet(&mut received).unwrap().unwrap()[..], [7, 8]);
        assert_eq!(&received[..], [0, 0]);
        received = BytesMut::from(&[0x7f, 0, 0, 0][..]);
        assert!(matches!(
            next_packet(&mut received),
            Err(End::TooLong(0x7f00_0000))
        ));
    }

    #[test]
    fn sessions_get_a_timeout_within_bounds() {
        let sessions = Sessions::default();
        let registered = sessions.register(3, "127.0.0.1:7".parse().unwrap(), 0);
        for (asked, given) in [(1, 4_000), (30_000, 30_000), (i32::MAX, 90_000), (-5, 4_000)] {
            let mut packet = vec![0; 12];
            packet.extend_from_slice(&i32::to_be_bytes(asked));
            packet.extend_from_slice(&[0; 8]);
            packet.extend_from_slice(&i32::to_be_bytes(16));
            packet.extend_from_slice(&[0; 16]);
            let mut out = Vec::new();
            assert_eq!(
                open_session(&packet, 3, &registered, &mut out).unwrap(),
                Duration::from_millis(given)
            );
        }
    }
}
