//! A native connection that sends ready-made frames and reads responses.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use basalt_idl::native::frame::{Request, Response, put_connection_header};
use basalt_idl::native::messages::{
    ColumnFamilySchema, ConnectionHeader, CreateTableRequest, GenericExceptionMessage,
    GetProcedureResultRequest, GetProcedureResultResponse, RegionSpecifier, RequestHeader, TableName,
    TableSchema, VersionInfo, region_specifier::RegionSpecifierType,
};
use basalt_test_support::Server;
use bytes::Bytes;
use prost::Message;
use tempfile::TempDir;

/// The preamble of a client without Kerberos.
pub(crate) const SIMPLE: &[u8] = b"HBas\0\x50";

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
}

impl Client {
    /// Connects and sends nothing.
    pub(crate) fn silent(server: &Server) -> Self {
        let socket = TcpStream::connect(server.thrift).expect("the port is open");
        socket
            .set_read_timeout(Some(Duration::from_mins(1)))
            .expect("a socket has timeouts");
        Self { socket }
    }

    /// A connection for a service, opened as by Java's client 2.6.
    pub(crate) fn connect(server: &Server, service: &str) -> Self {
        Self::connect_with(server, &header(service))
    }

    /// A connection with this header.
    pub(crate) fn connect_with(server: &Server, header: &ConnectionHeader) -> Self {
        let mut client = Self::silent(server);
        let mut out = SIMPLE.to_vec();
        put_connection_header(header, &mut out);
        client.send(&out);
        client
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the server reads");
    }

    /// Sends a call.
    pub(crate) fn call(&mut self, call_id: u32, method: &str, parameter: &impl Message, cells: &[u8]) {
        let header = RequestHeader {
            call_id: Some(call_id),
            method_name: Some(method.to_owned()),
            ..RequestHeader::default()
        };
        let mut out = Vec::new();
        Request::encode(&header, parameter, cells, &mut out);
        self.send(&out);
    }

    /// The next response; `None` at the end of the connection.
    pub(crate) fn response(&mut self) -> Option<Response> {
        let length = self.length()?;
        Some(self.frame(length).expect("a whole frame"))
    }

    /// The next response; `None` at the end of the connection, also within a response.
    pub(crate) fn response_until_cut(&mut self) -> Option<Response> {
        let length = self.length()?;
        self.frame(length).ok()
    }

    fn length(&mut self) -> Option<usize> {
        let mut length = [0; 4];
        self.socket.read_exact(&mut length).ok()?;
        Some(u32::from_be_bytes(length) as usize)
    }

    fn frame(&mut self, length: usize) -> io::Result<Response> {
        let mut frame = vec![0; length];
        self.socket.read_exact(&mut frame)?;
        Ok(Response::decode(Bytes::from(frame)).expect("a well-formed response"))
    }

    /// Makes a call and returns its message.
    pub(crate) fn ask<M: Message + Default>(&mut self, method: &str, parameter: &impl Message) -> M {
        self.call(1, method, parameter, b"");
        let response = self.response().expect("a response");
        assert_eq!(response.header.exception, None, "{method}");
        M::decode(response.result).expect("the method's message")
    }

    /// Makes a call and returns the class and text of its exception.
    pub(crate) fn refusal(
        &mut self,
        method: &str,
        parameter: &impl Message,
        cells: &[u8],
    ) -> (String, String) {
        self.call(7, method, parameter, cells);
        let response = self.response().expect("a response");
        assert_eq!(response.header.call_id, Some(7));
        exception(&response)
    }
}

/// The exception of the master's operation with this id; `None` if it did not fail.
pub(crate) fn failure_of(master: &mut Client, proc_id: u64) -> Option<GenericExceptionMessage> {
    let call = GetProcedureResultRequest { proc_id };
    let answer: GetProcedureResultResponse = master.ask("getProcedureResult", &call);
    answer.exception?.generic_exception
}

/// Class, without its package, and text of a response's exception.
pub(crate) fn exception(response: &Response) -> (String, String) {
    let exception = response.header.exception.clone().expect("an exception");
    let class = exception.exception_class_name.expect("a class");
    let text = exception.stack_trace.expect("a text");
    assert!(text.starts_with(&class), "{text}");
    (class.rsplit('.').next().expect("a name").to_owned(), text)
}

/// Connection header of Java's client 2.6.
pub(crate) fn header(service: &str) -> ConnectionHeader {
    ConnectionHeader {
        service_name: Some(service.to_owned()),
        cell_block_codec_class: Some("org.apache.hadoop.hbase.codec.KeyValueCodec".to_owned()),
        version_info: Some(VersionInfo {
            version_major: Some(2),
            version_minor: Some(6),
            ..VersionInfo::default()
        }),
        ..ConnectionHeader::default()
    }
}

/// The name of a table in the default namespace.
pub(crate) fn table_name(table: &str) -> TableName {
    TableName {
        namespace: Bytes::from_static(b"default"),
        qualifier: Bytes::copy_from_slice(table.as_bytes()),
    }
}

/// Creates a table with the family `f`.
pub(crate) fn create(server: &Server, table: &str) {
    create_split(server, table, &[]);
}

/// Creates a table with the family `f` and regions that start at these rows.
pub(crate) fn create_split(server: &Server, table: &str, splits: &[&str]) {
    let call = CreateTableRequest {
        split_keys: splits
            .iter()
            .map(|row| Bytes::copy_from_slice(row.as_bytes()))
            .collect(),
        table_schema: TableSchema {
            table_name: Some(table_name(table)),
            column_families: vec![ColumnFamilySchema {
                name: Bytes::from_static(b"f"),
                ..ColumnFamilySchema::default()
            }],
            ..TableSchema::default()
        },
        ..CreateTableRequest::default()
    };
    let mut master = Client::connect(server, "MasterService");
    master.ask::<basalt_idl::native::messages::CreateTableResponse>("CreateTable", &call);
}

/// A server with the table `t` of one region, that region, and a client. The folder has the data.
pub(crate) fn start_with_table(settings: &[&str]) -> (TempDir, Server, RegionSpecifier, Client) {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), settings);
    create(&server, "t");
    let region = region(&server, "t");
    let client = Client::connect(&server, "ClientService");
    (dir, server, region, client)
}

/// The full name of the last region of a table, looked up in `hbase:meta` as gohbase does.
pub(crate) fn region(server: &Server, table: &str) -> RegionSpecifier {
    use basalt_idl::native::cells::Cells;
    use basalt_idl::native::messages::{Scan, ScanRequest};
    let mut client = Client::connect(server, "ClientService");
    let scan = ScanRequest {
        region: Some(specifier(b"hbase:meta,,1")),
        scan: Some(Scan {
            start_row: Some(Bytes::from(format!("{table},~,:"))),
            stop_row: Some(Bytes::from(table.to_owned())),
            reversed: Some(true),
            ..Scan::default()
        }),
        number_of_rows: Some(1),
        close_scanner: Some(true),
        ..ScanRequest::default()
    };
    client.call(1, "Scan", &scan, b"");
    let response = client.response().expect("a response");
    let mut cells = Cells::new(&response.cells);
    let row = cells.require().expect("the table has a region").row;
    specifier(row)
}

/// A region by its full name.
pub(crate) fn specifier(name: &[u8]) -> RegionSpecifier {
    RegionSpecifier {
        r#type: RegionSpecifierType::RegionName.into(),
        value: Bytes::copy_from_slice(name),
    }
}
