//! A connection that sends requests of HTTP/1.1 and reads whole answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};

/// Longest time without a byte of an answer.
const TIMEOUT: Duration = Duration::from_mins(2);
/// A connection that was idle for longer is not used again: servers close such connections.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// A request.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    /// With parameters.
    pub(super) path: String,
    /// Names and values.
    pub(super) headers: Vec<(&'static str, String)>,
    /// The body; `None` sends no header Content-Length.
    pub(super) body: Option<Vec<u8>>,
    /// Packs the body, and accepts packed answers.
    pub(super) gzip: bool,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A server, and the connection to it that is open.
#[derive(Debug)]
pub(super) struct Http {
    server: SocketAddr,
    open: Option<(BufReader<TcpStream>, Instant)>,
}

impl Http {
    /// Connects at the first request.
    pub(super) fn new(server: SocketAddr) -> Self {
        Self { server, open: None }
    }

    /// Sends a request and reads its answer.
    pub(super) fn send(&mut self, request: &Request) -> std::io::Result<Response> {
        let mut socket = match self.open.take() {
            Some((socket, used)) if used.elapsed() < IDLE_MAX => socket,
            _ => self.connect()?,
        };
        socket.get_mut().write_all(&self.encoded(request)?)?;
        let response = read(&mut socket, request.method == "HEAD")?;
        let closes = response
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if !closes {
            self.open = Some((socket, Instant::now()));
        }
        unpacked(response)
    }

    fn connect(&self) -> std::io::Result<BufReader<TcpStream>> {
        let socket = TcpStream::connect(self.server)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        Ok(BufReader::new(socket))
    }

    fn encoded(&self, request: &Request) -> std::io::Result<Vec<u8>> {
        let mut head = Vec::new();
        let (method, path, server) = (&request.method, &request.path, &self.server);
        write!(head, "{method} {path} HTTP/1.1\r\nHost: {server}\r\n")?;
        for (name, value) in &request.headers {
            write!(head, "{name}: {value}\r\n")?;
        }
        let mut body = request.body.clone();
        if request.gzip {
            write!(head, "Accept-Encoding: gzip\r\n")?;
            if let Some(plain) = &body {
                let mut packed = Vec::new();
                GzEncoder::new(&plain[..], Compression::fast()).read_to_end(&mut packed)?;
                write!(head, "Content-Encoding: gzip\r\n")?;
                body = Some(packed);
            }
        }
        if let Some(body) = &body {
            write!(head, "Content-Length: {}\r\n", body.len())?;
        }
        write!(head, "\r\n")?;
        head.extend(body.unwrap_or_default());
        Ok(head)
    }
}

fn malformed(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned())
}

fn line(socket: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut line = String::new();
    if socket.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn read(socket: &mut BufReader<TcpStream>, is_head: bool) -> std::io::Result<Response> {
    let first = line(socket)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status: u16 = status.ok_or_else(|| malformed(&first))?;
    let mut headers = Vec::new();
    loop {
        let line = line(socket)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut response = Response {
        status,
        headers,
        body: Vec::new(),
    };
    if is_head || matches!(status, 100..=199 | 204 | 304) {
        return Ok(response);
    }
    let chunked = response.header("transfer-encoding") == Some("chunked");
    let length = response.header("content-length").map(str::to_owned);
    response.body = match length {
        _ if chunked => read_chunks(socket)?,
        Some(length) => {
            let length = length.parse().map_err(|_| malformed("Content-Length"))?;
            exactly(socket, length)?
        }
        None => Vec::new(),
    };
    Ok(response)
}

fn exactly(socket: &mut BufReader<TcpStream>, length: u64) -> std::io::Result<Vec<u8>> {
    if length > ANSWER_BYTES_MAX {
        return Err(malformed("the answer is too long"));
    }
    let mut bytes = Vec::new();
    if Read::take(socket, length).read_to_end(&mut bytes)? as u64 != length {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

fn read_chunks(socket: &mut BufReader<TcpStream>) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(socket)?;
        let size = size.split(';').next().unwrap_or_default();
        let size = u64::from_str_radix(size, 16).map_err(|_| malformed("the size of a chunk"))?;
        body.extend(exactly(socket, size)?);
        if !line(socket)?.is_empty() {
            return Err(malformed("the end of a chunk"));
        }
        if size == 0 {
            return Ok(body);
        }
        if body.len() as u64 > ANSWER_BYTES_MAX {
            return Err(malformed("the answer is too long"));
        }
    }
}

fn unpacked(mut response: Response) -> std::io::Result<Response> {
    if response.header("content-encoding") == Some("gzip") && !response.body.is_empty() {
        let mut plain = Vec::new();
        GzDecoder::new(&response.body[..]).read_to_end(&mut plain)?;
        response.body = plain;
    }
    Ok(response)
}
