//! A client that sends given bytes and returns the answers, and short ways to write requests.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use basalt_idl::thrift1::{self, args as one};
use basalt_idl::thrift2::{self, TDeleteType, args as two};
use basalt_idl::wire::{BinaryReader, BinaryWriter};
use basalt_idl::{Call, CallError, call};
use basalt_test_support::Server;
use bytes::Bytes;

/// A server in a folder of its own; both go with the last test that uses them.
pub(crate) struct Shared {
    pub(crate) server: Server,
    _dir: tempfile::TempDir,
}

pub(crate) fn start(settings: &[&str]) -> Arc<Shared> {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let start = if crate::cluster::is_tested() {
        Server::start_before_another
    } else {
        Server::start
    };
    let server = start(&dir.path().join("data"), settings);
    Arc::new(Shared { server, _dir: dir })
}

/// A server whose process may have that many open files.
pub(crate) fn start_with_open_files(open_files: u32) -> Arc<Shared> {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start_with_open_files(&dir.path().join("data"), &[], open_files);
    Arc::new(Shared { server, _dir: dir })
}

/// Stops the server and starts it again as a process that may have that many open files. `shared`
/// must be the only reference.
pub(crate) fn restarted_with_open_files(shared: Arc<Shared>, open_files: u32) -> Arc<Shared> {
    let Shared { server, _dir: dir } = Arc::into_inner(shared).expect("no other test uses it");
    server.stop();
    let server = Server::start_with_open_files(&dir.path().join("data"), &[], open_files);
    Arc::new(Shared { server, _dir: dir })
}

/// A server whose wall clock follows the file `clock` in its folder; `None` without libfaketime.
pub(crate) fn start_with_clock(set: &str) -> Option<Arc<Shared>> {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let clock = dir.path().join("clock");
    std::fs::write(&clock, set).expect("a file in a folder of ours");
    let server = Server::start_with_clock(&dir.path().join("data"), &[], &clock)?;
    Some(Arc::new(Shared { server, _dir: dir }))
}

impl Shared {
    /// Sets the clock of a server from [`start_with_clock`].
    pub(crate) fn set_clock(&self, set: &str) {
        // Renamed into place, so that the server never reads half of the file.
        let (new, clock) = (
            self.data_dir().with_file_name("clock.new"),
            self.data_dir().with_file_name("clock"),
        );
        std::fs::write(&new, format!("{set}\n")).expect("a file in a folder of ours");
        std::fs::rename(&new, &clock).expect("a file in a folder of ours");
    }

    /// Where its data is.
    pub(crate) fn data_dir(&self) -> std::path::PathBuf {
        let Self { _dir: dir, .. } = self;
        dir.path().join("data")
    }

    /// The server, and the folder that goes when it is dropped.
    pub(crate) fn into_parts(self) -> (Server, tempfile::TempDir) {
        let Self { server, _dir: dir } = self;
        (server, dir)
    }
}

/// Kills the server and starts it again. No other test may use it.
pub(crate) fn killed(shared: Arc<Shared>) -> Arc<Shared> {
    let Shared { server, _dir: dir } = Arc::into_inner(shared).expect("no other test uses it");
    server.kill();
    let server = Server::start(&dir.path().join("data"), &[]);
    Arc::new(Shared { server, _dir: dir })
}

/// Stops the server and starts it again with these settings. No other test may use it.
pub(crate) fn restarted(shared: Arc<Shared>, settings: &[&str]) -> Arc<Shared> {
    let Shared { server, _dir: dir } = Arc::into_inner(shared).expect("no other test uses it");
    server.stop();
    let server = Server::start(&dir.path().join("data"), settings);
    Arc::new(Shared { server, _dir: dir })
}

/// Stops the server and returns its log. No other test may use it.
pub(crate) fn shut_down(shared: Arc<Shared>) -> String {
    let shared = Arc::into_inner(shared).expect("no other test uses it");
    shared.server.stop_and_log()
}

/// A connection, framed binary.
pub(crate) struct Wire {
    pub(crate) socket: TcpStream,
    pub(crate) shared: Arc<Shared>,
}

impl Wire {
    /// To the server that running tests share.
    pub(crate) fn connect() -> Self {
        static SHARED: Mutex<Weak<Shared>> = Mutex::new(Weak::new());
        let mut current = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = current
            .upgrade()
            .unwrap_or_else(|| start(&["scanner.fetch_max_bytes=4096"]));
        *current = Arc::downgrade(&shared);
        Self::to(shared)
    }

    /// A further connection to that server.
    pub(crate) fn to(shared: Arc<Shared>) -> Self {
        let socket = TcpStream::connect(shared.server.thrift).expect("the main port is open");
        socket
            .set_read_timeout(Some(Duration::from_mins(1)))
            .expect("a socket has timeouts");
        Self { socket, shared }
    }

    pub(crate) fn send<C: Call>(&mut self, args: &C) {
        let mut message = vec![0; 4];
        call::write_call(&mut BinaryWriter::new(&mut message), 7, args);
        let length = (message.len() - 4) as u32;
        message[..4].copy_from_slice(&length.to_be_bytes());
        self.socket.write_all(&message).expect("the server reads");
    }

    pub(crate) fn call<C: Call>(&mut self, args: &C) -> Result<C::Success, CallError<C::Exception>> {
        self.send(args);
        let mut length = [0; 4];
        self.socket.read_exact(&mut length).expect("the server answers");
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.socket.read_exact(&mut body).expect("a frame is whole");
        call::read_reply::<C, _>(&mut BinaryReader::new(body.into()), 7).expect("the answer is well-formed")
    }

    pub(crate) fn ok<C: Call>(&mut self, args: &C) -> C::Success {
        self.call(args)
            .unwrap_or_else(|error| panic!("{} failed: {error}", C::METHOD.name))
    }

    /// The call must fail with an exception in whose debug form all these words are.
    pub(crate) fn refused<C: Call>(&mut self, args: &C, words: &[&str]) {
        let method = C::METHOD.name;
        let Err(error) = self.call(args) else {
            panic!("{method} must be refused")
        };
        let text = format!("{error:?}");
        for word in words {
            assert!(text.contains(word), "{method}: {text} does not say {word:?}");
        }
    }

    /// A table with the families `f` and `g`, five versions each.
    pub(crate) fn create(&mut self, table: &str, splits: &[&str]) {
        let columns = ["f", "g"].map(|family| thrift2::TColumnFamilyDescriptor {
            name: bytes(family),
            max_versions: Some(5),
            ..Default::default()
        });
        let desc = thrift2::TTableDescriptor {
            table_name: name(table),
            columns: Some(columns.to_vec()),
            ..Default::default()
        };
        let split_keys = Some(splits.iter().map(|split| bytes(split)).collect());
        self.ok(&two::CreateTable { desc, split_keys });
    }

    pub(crate) fn put(&mut self, table: &str, row: &str, column: &str, value: &str, timestamp: Option<i64>) {
        let tput = put(row, column, value, timestamp);
        self.ok(&two::Put {
            table: bytes(table),
            tput,
        });
    }

    /// A row's cells as `family:qualifier@timestamp=value`, all versions.
    pub(crate) fn row(&mut self, table: &str, row: &str) -> Vec<String> {
        let tget = thrift2::TGet {
            row: bytes(row),
            max_versions: Some(9),
            ..Default::default()
        };
        let result = self.ok(&two::Get {
            table: bytes(table),
            tget,
        });
        assert_eq!(
            result.row.is_none(),
            result.column_values.is_empty(),
            "{result:?}"
        );
        shown(&result)
    }

    /// All rows of a table as `row family:qualifier@timestamp=value ...`, newest versions.
    pub(crate) fn rows(&mut self, table: &str) -> Vec<String> {
        let scan = two::GetScannerResults {
            table: bytes(table),
            tscan: thrift2::TScan::default(),
            num_rows: 100,
        };
        self.ok(&scan)
            .iter()
            .map(|result| format!("{} {}", key(result), shown(result).join(" ")))
            .collect()
    }

    /// The results that a Thrift 1 scanner has left as `row:columns`; closes it.
    pub(crate) fn drain(&mut self, id: i32) -> String {
        let id = Some(id);
        let mut rows = Vec::new();
        loop {
            let fetched = self.ok(&one::ScannerGetList { id, nb_rows: Some(9) });
            if fetched.is_empty() {
                break;
            }
            rows.extend(fetched.iter().map(|row| {
                let columns = row.columns.as_ref().map_or(0, BTreeMap::len);
                let sorted = row.sorted_columns.as_ref().map_or(0, Vec::len);
                format!(
                    "{}:{}",
                    text(row.row.as_deref().unwrap_or_default()),
                    columns + sorted
                )
            }));
        }
        self.ok(&one::ScannerClose { id });
        rows.join(" ")
    }

    /// Rows of a scan in one call, as their keys.
    pub(crate) fn scan(&mut self, table: &str, tscan: thrift2::TScan) -> Vec<String> {
        let table = bytes(table);
        let scan = two::GetScannerResults {
            table,
            tscan,
            num_rows: 100,
        };
        self.ok(&scan).iter().map(key).collect()
    }
}

pub(crate) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// An optional field that is set.
#[expect(clippy::unnecessary_wraps, reason = "a field that may be unset is an Option")]
pub(crate) fn some(text: &str) -> Option<Bytes> {
    Some(bytes(text))
}

/// An optional list that is set.
#[expect(clippy::unnecessary_wraps, reason = "a field that may be unset is an Option")]
pub(crate) fn list(texts: &[&str]) -> Option<Vec<Bytes>> {
    Some(texts.iter().map(|text| bytes(text)).collect())
}

/// Attributes with a value for `_raw_`.
#[expect(clippy::unnecessary_wraps, reason = "a field that may be unset is an Option")]
pub(crate) fn raw(value: &'static [u8]) -> Option<BTreeMap<Bytes, Bytes>> {
    Some([(bytes("_raw_"), Bytes::from_static(value))].into())
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn name(table: &str) -> thrift2::TTableName {
    let (ns, qualifier) = table.split_once(':').unwrap_or(("", table));
    thrift2::TTableName {
        ns: some(ns),
        qualifier: bytes(qualifier),
    }
}

pub(crate) fn key(result: &thrift2::TResult) -> String {
    text(result.row.as_deref().expect("a scan's result has a row"))
}

pub(crate) fn shown(result: &thrift2::TResult) -> Vec<String> {
    let show = |value: &thrift2::TColumnValue| {
        assert_eq!(value.cell_type, Some(4), "Java's client needs the type");
        let stamp = value.timestamp.expect("always set");
        format!(
            "{}:{}@{stamp}={}",
            text(&value.family),
            text(&value.qualifier),
            text(&value.value)
        )
    };
    result.column_values.iter().map(show).collect()
}

pub(crate) fn put(row: &str, column: &str, value: &str, timestamp: Option<i64>) -> thrift2::TPut {
    let (family, qualifier) = column.split_once(':').expect("family:qualifier");
    let value = thrift2::TColumnValue {
        family: bytes(family),
        qualifier: bytes(qualifier),
        value: bytes(value),
        timestamp,
        ..Default::default()
    };
    thrift2::TPut {
        row: bytes(row),
        column_values: vec![value],
        ..Default::default()
    }
}

pub(crate) fn delete(row: &str, kind: TDeleteType, columns: &[(&str, Option<i64>)]) -> thrift2::TDelete {
    let column = |(column, timestamp): &(&str, Option<i64>)| {
        let (family, qualifier) = column.split_once(':').unwrap_or((column, ""));
        thrift2::TColumn {
            family: bytes(family),
            qualifier: some(qualifier),
            timestamp: *timestamp,
        }
    };
    thrift2::TDelete {
        row: bytes(row),
        columns: Some(columns.iter().map(column).collect()),
        delete_type: kind,
        ..Default::default()
    }
}

pub(crate) fn values(cells: &[thrift1::TCell]) -> Vec<String> {
    cells
        .iter()
        .map(|cell| text(cell.value.as_deref().unwrap_or_default()))
        .collect()
}

/// Rows of Thrift 1 as `row column@timestamp=value ...`.
pub(crate) fn columns(rows: &[thrift1::TRowResult]) -> Vec<String> {
    let cell = |(name, cell): (&Bytes, &thrift1::TCell)| {
        format!(
            "{}@{}={}",
            text(name),
            cell.timestamp.unwrap_or(-1),
            text(cell.value.as_deref().unwrap_or_default())
        )
    };
    rows.iter()
        .map(|row| {
            let columns = row.columns.iter().flatten().map(cell).collect::<Vec<_>>();
            format!(
                "{} {}",
                text(row.row.as_deref().unwrap_or_default()),
                columns.join(" ")
            )
        })
        .collect()
}
