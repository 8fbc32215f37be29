//! `basalt health`: asks a running server whether it is ready, for health checks of containers and
//! services that have no other HTTP client.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::Outcome;
use super::command_line::Settings;

/// Longest wait for each step: a server that takes longer is not healthy.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Asks the server at this address, or else at the address in the settings; prints its answer.
pub(crate) fn run(http: Option<String>, settings: Settings) -> Outcome {
    let address = match http {
        Some(address) => address,
        None => settings.load()?.config.http.listen.to_string(),
    };
    match resolve(&address).and_then(ask) {
        Ok((200, text)) => super::print(text.as_bytes()),
        Ok((status, text)) => Err(format!("{address} answers {status}: {}", text.trim_end()).into()),
        Err(error) => Err(format!("no server is ready at {address}: {error}").into()),
    }
}

/// The address to connect to: one that listens on all addresses is reached by loopback.
fn resolve(text: &str) -> io::Result<SocketAddr> {
    let text = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut address = text.to_socket_addrs()?.next().ok_or_else(none)?;
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    Ok(address)
}

/// Status and text of `/readyz`.
fn ask(address: SocketAddr) -> io::Result<(u16, String)> {
    let mut socket = TcpStream::connect_timeout(&address, PATIENCE)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    write!(socket, "GET /readyz HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = Vec::new();
    socket.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let not_http = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the answer is no HTTP; is it the HTTP port?",
        )
    };
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(not_http)?;
    let status = head
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.get(2..5)?.parse().ok());
    Ok((status.ok_or_else(not_http)?, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_to_connect_to() {
        for (text, address) in [
            ("127.0.0.1:9095", "127.0.0.1:9095"),
            ("0.0.0.0:9095", "127.0.0.1:9095"),
            ("[::]:1", "[::1]:1"),
            ("http://127.0.0.1:9095/", "127.0.0.1:9095"),
        ] {
            assert_eq!(resolve(text).unwrap(), address.parse().unwrap(), "{text}");
        }
        resolve("127.0.0.1").unwrap_err();
    }
}
