//! Connections that send ready-made messages and read what, and when, a test wants.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use basalt_idl::native::frame::{Request, put_connection_header};
use basalt_idl::native::messages::{ConnectionHeader, RequestHeader};
use prost::Message;

/// The preamble of a native client without Kerberos.
const SIMPLE: &[u8] = b"HBas\0\x50";

/// A connection. What it is sent and does not read soon fills the buffers of both sockets.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("the port is open");
    let timeout = Some(Duration::from_secs(2));
    socket.set_write_timeout(timeout).expect("a socket has timeouts");
    socket
}

/// Sends what the server takes. It may take less, or have closed the connection: both are what a
/// flooded server does.
pub(crate) fn flood(address: SocketAddr, message: &[u8]) -> TcpStream {
    let mut socket = connect(address);
    match socket.write_all(message) {
        Ok(()) => {}
        Err(error) => assert!(
            matches!(
                error.kind(),
                ErrorKind::WouldBlock
                    | ErrorKind::TimedOut
                    | ErrorKind::BrokenPipe
                    | ErrorKind::ConnectionReset
            ),
            "{error}"
        ),
    }
    socket
}

/// Opens a connection for a service and makes the same call so many times.
pub(crate) fn native_calls(service: &str, method: &str, parameter: &impl Message, count: u32) -> Vec<u8> {
    let mut out = SIMPLE.to_vec();
    let header = ConnectionHeader {
        service_name: Some(service.to_owned()),
        ..ConnectionHeader::default()
    };
    put_connection_header(&header, &mut out);
    for call_id in 1..=count {
        let header = RequestHeader {
            call_id: Some(call_id),
            method_name: Some(method.to_owned()),
            ..RequestHeader::default()
        };
        Request::encode(&header, parameter, b"", &mut out);
    }
    out
}

/// A framed Thrift call of a method whose arguments are these encoded fields.
pub(crate) fn thrift_call(method: &str, fields: &[u8]) -> Vec<u8> {
    let mut message = vec![0x80, 1, 0, 1];
    message.extend_from_slice(&(method.len() as u32).to_be_bytes());
    message.extend_from_slice(method.as_bytes());
    message.extend_from_slice(&1_u32.to_be_bytes());
    message.extend_from_slice(fields);
    message.push(0);
    framed(&message)
}

/// A message with its length in front: of Thrift, of native RPC, of ZooKeeper.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes()[..], message].concat()
}

/// The first packet of a ZooKeeper client.
pub(crate) fn zookeeper_session() -> Vec<u8> {
    let mut packet = vec![0; 12];
    packet.extend_from_slice(&90_000_u32.to_be_bytes());
    packet.extend_from_slice(&[0; 8]);
    packet.extend_from_slice(&16_u32.to_be_bytes());
    packet.extend_from_slice(&[0; 16]);
    framed(&packet)
}

/// A request for the children of a ZooKeeper node.
pub(crate) fn zookeeper_children(path: &str) -> Vec<u8> {
    let mut packet = [1_u32, 8, path.len() as u32].map(u32::to_be_bytes).concat();
    packet.extend_from_slice(path.as_bytes());
    packet.push(0);
    framed(&packet)
}

/// Whether the server has closed the connection, whatever it has sent before.
pub(crate) fn is_closed(socket: &mut TcpStream) -> bool {
    socket.set_nonblocking(true).expect("a socket");
    let closed = loop {
        match socket.read(&mut [0; 4 << 10]) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(error) => break error.kind() != ErrorKind::WouldBlock,
        }
    };
    socket.set_nonblocking(false).expect("a socket");
    closed
}
