//! Apache's crate `thrift` with the types of `basalt-idl`: for programs that have transports and protocols of
//! that crate already, and need HBase's interface but no generated code.
//!
//! `cargo run -p basalt-client --features thrift --example apache_thrift [HOST:PORT]`; without an address,
//! 127.0.0.1:9090. The transport and the protocol are those of HBase's Thrift server by default: unframed,
//! binary.

use basalt_idl::apache::call;
use basalt_idl::thrift2::{
    TColumnFamilyDescriptor, TColumnValue, TGet, TPut, TTableDescriptor, TTableName, args,
};
use bytes::Bytes;
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol, TSerializable};
use thrift::transport::{
    ReadHalf, TBufferedReadTransport, TBufferedWriteTransport, TIoChannel as _, TTcpChannel, WriteHalf,
};

const TABLE: &str = "example_apache_thrift";

type Error = Box<dyn std::error::Error>;

/// A connection of Apache's crate.
struct Connection {
    input: TBinaryInputProtocol<TBufferedReadTransport<ReadHalf<TTcpChannel>>>,
    output: TBinaryOutputProtocol<TBufferedWriteTransport<WriteHalf<TTcpChannel>>>,
    calls: i32,
}

impl Connection {
    fn open(target: &str) -> thrift::Result<Connection> {
        let mut channel = TTcpChannel::new();
        channel.open(target)?;
        let (read, write) = channel.split()?;
        Ok(Connection {
            input: TBinaryInputProtocol::new(TBufferedReadTransport::new(read), true),
            output: TBinaryOutputProtocol::new(TBufferedWriteTransport::new(write), true),
            calls: 0,
        })
    }

    /// Any call of the interface: the type of its arguments says which.
    fn call<C: basalt_idl::Call + TSerializable>(&mut self, arguments: &C) -> Result<C::Success, Error> {
        self.calls += 1;
        Ok(call(arguments, self.calls, &mut self.input, &mut self.output)??)
    }
}

fn main() -> Result<(), Error> {
    let target = std::env::args().nth(1);
    let mut server = Connection::open(target.as_deref().unwrap_or("127.0.0.1:9090"))?;
    let table_name = TTableName {
        ns: None,
        qualifier: Bytes::from_static(TABLE.as_bytes()),
    };
    let family = TColumnFamilyDescriptor {
        name: Bytes::from_static(b"f"),
        ..TColumnFamilyDescriptor::default()
    };
    server.call(&args::CreateTable {
        desc: TTableDescriptor {
            table_name: table_name.clone(),
            columns: Some(vec![family]),
            ..TTableDescriptor::default()
        },
        split_keys: None,
    })?;

    let table = Bytes::from_static(TABLE.as_bytes());
    let born = TColumnValue {
        family: Bytes::from_static(b"f"),
        qualifier: Bytes::from_static(b"born"),
        value: Bytes::from_static(b"1815"),
        ..TColumnValue::default()
    };
    let tput = TPut {
        row: Bytes::from_static(b"ada"),
        column_values: vec![born],
        ..TPut::default()
    };
    server.call(&args::Put {
        table: table.clone(),
        tput,
    })?;
    let tget = TGet {
        row: Bytes::from_static(b"ada"),
        ..TGet::default()
    };
    let row = server.call(&args::Get {
        table,
        tget: tget.clone(),
    })?;
    for cell in row.column_values {
        println!(
            "{} = {}",
            cell.qualifier.escape_ascii(),
            cell.value.escape_ascii()
        );
    }
    // An exception that the interface declares is an error with the server's words.
    let missing = args::Get {
        table: Bytes::from_static(b"no_such_table"),
        tget,
    };
    if let Err(refused) = server.call(&missing) {
        println!("refused: {refused}");
    }

    server.call(&args::DisableTable {
        table_name: table_name.clone(),
    })?;
    server.call(&args::DeleteTable { table_name })?;
    Ok(())
}
