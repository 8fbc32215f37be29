//! Some load: a little of everything that a metric counts.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use basalt_idl::wire::{BinaryReader, BinaryWriter};
use basalt_idl::{Call, CallError, admin, call, thrift2};
use bytes::Bytes;

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// A client that has put a table with two regions there.
pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("the main port is open");
        socket
            .set_read_timeout(Some(Duration::from_mins(1)))
            .expect("a socket has timeouts");
        let mut client = Self(socket);
        let family = thrift2::TColumnFamilyDescriptor {
            name: bytes("f"),
            ..Default::default()
        };
        let table_name = thrift2::TTableName {
            ns: None,
            qualifier: bytes("t"),
        };
        let desc = thrift2::TTableDescriptor {
            table_name,
            columns: Some(vec![family]),
            ..Default::default()
        };
        client
            .call(&thrift2::args::CreateTable {
                desc,
                split_keys: Some(vec![bytes("m")]),
            })
            .expect("the table is new");
        client
    }

    fn call<C: Call>(&mut self, args: &C) -> Result<C::Success, CallError<C::Exception>> {
        let mut message = Vec::new();
        call::write_call(&mut BinaryWriter::new(&mut message), 1, args);
        let mut frame = (message.len() as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(&message);
        self.0.write_all(&frame).expect("the server reads");
        let mut length = [0; 4];
        self.0.read_exact(&mut length).expect("the server answers");
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut body).expect("a frame is whole");
        call::read_reply::<C, _>(&mut BinaryReader::new(body.into()), 1).expect("the answer is well-formed")
    }

    /// Writes, flushes, compacts, reads from the files, scans, and makes a mistake: a little of everything.
    pub(crate) fn burst(&mut self) {
        for file in 0..2 {
            for row in 0..20 {
                let row = bytes(&format!("{}{row:02}", if row < 15 { "a" } else { "z" }));
                let value = thrift2::TColumnValue {
                    family: bytes("f"),
                    qualifier: bytes("q"),
                    value: bytes(&format!("value {file}")),
                    ..Default::default()
                };
                let tput = thrift2::TPut {
                    row,
                    column_values: vec![value],
                    ..Default::default()
                };
                self.call(&thrift2::args::Put {
                    table: bytes("t"),
                    tput,
                })
                .expect("a good put");
            }
            self.call(&admin::args::BasaltFlush { table: bytes("t") })
                .expect("flushed");
        }
        self.call(&admin::args::BasaltCompact {
            table: bytes("t"),
            family: None,
            major: true,
            wait: true,
        })
        .expect("compacted");
        for row in ["a03", "a03x", "z17"] {
            let tget = thrift2::TGet {
                row: bytes(row),
                ..Default::default()
            };
            self.call(&thrift2::args::Get {
                table: bytes("t"),
                tget,
            })
            .expect("a good get");
        }
        let tscan = thrift2::TScan::default();
        let scanner_id = self
            .call(&thrift2::args::OpenScanner {
                table: bytes("t"),
                tscan,
            })
            .expect("a scanner");
        self.call(&thrift2::args::GetScannerRows {
            scanner_id,
            num_rows: 100,
        })
        .expect("rows");
        self.call(&thrift2::args::CloseScanner { scanner_id })
            .expect("closed");
        let tget = thrift2::TGet {
            row: bytes("r"),
            ..Default::default()
        };
        self.call(&thrift2::args::Get {
            table: bytes("missing"),
            tget,
        })
        .expect_err("no such table");
    }
}
