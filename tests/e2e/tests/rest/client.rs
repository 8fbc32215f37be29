//! A client of the REST interface that sends given bytes and returns the answer, whole or in chunks.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Header lines for each type.
pub(crate) const JSON: &str = "Accept: application/json\r\nContent-Type: application/json\r\n";
pub(crate) const XML: &str = "Accept: text/xml\r\nContent-Type: text/xml\r\n";
pub(crate) const PROTOBUF: &str =
    "Accept: application/x-protobuf\r\nContent-Type: application/x-protobuf\r\n";
pub(crate) const BINARY: &str =
    "Accept: application/octet-stream\r\nContent-Type: application/octet-stream\r\n";
pub(crate) const TEXT: &str = "Accept: text/plain\r\n";

/// Cells of a row: column and value.
type Cells = Vec<(String, Vec<u8>)>;

/// A connection.
pub(crate) struct Rest(BufReader<TcpStream>);

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Each row's key and cells (column, value) of a CellSet in JSON.
    pub(crate) fn rows(&self) -> Vec<(Vec<u8>, Cells)> {
        let bytes = |value: &Value| unbase64(value.as_str().expect("text"));
        let cell = |cell: &Value| {
            (
                String::from_utf8(bytes(&cell["column"])).expect("columns of tests are text"),
                bytes(&cell["$"]),
            )
        };
        let rows = self.json()["Row"].as_array().expect("rows are a list").clone();
        rows.iter()
            .map(|row| {
                let cells = row["Cell"].as_array().expect("cells are a list");
                (bytes(&row["key"]), cells.iter().map(cell).collect())
            })
            .collect()
    }

    /// The keys of a CellSet in JSON.
    pub(crate) fn keys(&self) -> Vec<String> {
        let rows = self.rows().into_iter();
        rows.map(|(key, _)| String::from_utf8_lossy(&key).into_owned())
            .collect()
    }
}

pub(crate) fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

pub(crate) fn unbase64(text: &str) -> Vec<u8> {
    STANDARD.decode(text).expect("base64")
}

/// A CellSet in JSON of rows with cells of column and value.
pub(crate) fn cell_set(rows: &[(&str, &[(&str, &str)])]) -> Vec<u8> {
    let rows: Vec<Value> = rows
        .iter()
        .map(|(key, cells)| {
            let cells: Vec<Value> = cells
                .iter()
                .map(|(column, value)| serde_json::json!({"column": base64(column), "$": base64(value)}))
                .collect();
            serde_json::json!({"key": base64(key), "Cell": cells})
        })
        .collect();
    serde_json::json!({ "Row": rows }).to_string().into_bytes()
}

impl Rest {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("the port is open");
        socket
            .set_read_timeout(Some(Duration::from_mins(1)))
            .expect("a socket has timeouts");
        Self(BufReader::new(socket))
    }

    /// One request with these header lines, and its answer.
    pub(crate) fn ask(&mut self, method: &str, path: &str, headers: &str, body: impl AsRef<[u8]>) -> Answer {
        self.ask_as("127.0.0.1", method, path, headers, body)
    }

    /// One request with this header Host, and its answer.
    pub(crate) fn ask_as(
        &mut self,
        host: &str,
        method: &str,
        path: &str,
        headers: &str,
        body: impl AsRef<[u8]>,
    ) -> Answer {
        self.send(host, method, path, headers, body.as_ref());
        self.answer(method == "HEAD")
    }

    pub(crate) fn send(&mut self, host: &str, method: &str, path: &str, headers: &str, body: &[u8]) {
        let length = match body.len() {
            0 => String::new(),
            length => format!("Content-Length: {length}\r\n"),
        };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}{length}\r\n");
        let bytes = [head.as_bytes(), body].concat();
        self.0.get_mut().write_all(&bytes).expect("the server reads");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let count = self.0.read_line(&mut line).expect("the server answers");
        assert!(count > 0, "the connection was closed");
        line.trim_end().to_owned()
    }

    /// The next answer.
    pub(crate) fn answer(&mut self, is_head: bool) -> Answer {
        let first = self.line();
        let status = first
            .split(' ')
            .nth(1)
            .expect("a status")
            .parse()
            .expect("a number");
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        let mut answer = Answer {
            status,
            headers,
            body: Vec::new(),
        };
        if is_head || status == 204 || status == 304 {
            return answer;
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let length = usize::from_str_radix(&self.line(), 16).expect("a length");
                let mut chunk = vec![0; length + 2];
                self.0.read_exact(&mut chunk).expect("a chunk is whole");
                answer.body.extend_from_slice(&chunk[..length]);
                if length == 0 {
                    return answer;
                }
            }
        }
        let length = answer
            .header("content-length")
            .map_or(0, |length| length.parse().expect("a number"));
        answer.body = vec![0; length];
        self.0.read_exact(&mut answer.body).expect("a body is whole");
        answer
    }

    /// Creates the table `t` with the families `f`, of three versions, and `g`.
    pub(crate) fn create_table(&mut self) {
        let schema = br#"{"ColumnSchema":[{"name":"f","VERSIONS":3},{"name":"g"}]}"#;
        let created = self.ask("PUT", "/t/schema", JSON, schema);
        assert_eq!(created.status, 201, "{}", created.text());
    }

    /// Stores one value.
    pub(crate) fn put(&mut self, path: &str, value: impl AsRef<[u8]>) {
        let put = self.ask("PUT", path, BINARY, value);
        assert_eq!(put.status, 200, "{path}: {}", put.text());
    }

    /// Reads JSON.
    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, JSON, "")
    }

    /// The value of one column.
    pub(crate) fn value(&mut self, path: &str) -> Option<Vec<u8>> {
        let got = self.ask("GET", path, BINARY, "");
        (got.status == 200).then_some(got.body)
    }
}
