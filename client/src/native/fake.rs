//! A cluster of fake servers on sockets, for tests of retries, grouping and scans.
//!
//! The first server answers the registry's questions and look-ups in `hbase:meta` from a list of regions. All
//! other calls are answered by the test.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use basalt_idl::native::cells::{CellType, WireCell};
use basalt_idl::native::frame::{Request, decode_connection_header, put_encoded_response, put_exception};
use basalt_idl::native::messages::{
    self, ExceptionResponse, GetMetaRegionLocationsResponse, GetRequest, GetResponse, RegionInfo,
    RegionLocation, RegionSpecifier, ScanRequest, ScanResponse, ServerName, TableState,
};
use basalt_idl::native::znode;
use bytes::Bytes;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{Cluster, ClusterOptions, Registry};

/// The reaction of a fake server to a call.
pub(super) enum Answer {
    /// A message and its cell block.
    Message(Vec<u8>, Vec<u8>),
    Exception(ExceptionResponse),
    /// Bytes that are sent as they are.
    Raw(Vec<u8>),
    /// The connection is closed without an answer.
    Close,
    /// Nothing is ever answered.
    Silence,
}

impl Answer {
    pub(super) fn message(message: &impl Message) -> Answer {
        Answer::Message(message.encode_to_vec(), Vec::new())
    }

    /// An exception of a class in HBase's package.
    pub(super) fn exception(class: &str, text: &str) -> Answer {
        let class = format!("org.apache.hadoop.hbase.{class}");
        Answer::Exception(ExceptionResponse {
            stack_trace: Some(format!("{class}: {text}")),
            exception_class_name: Some(class),
            do_not_retry: Some(false),
            ..ExceptionResponse::default()
        })
    }
}

/// A call as a fake server receives it.
pub(super) struct Seen<'a> {
    /// The number of the server.
    pub(super) server: usize,
    pub(super) method: &'a str,
    pub(super) request: &'a Request,
}

impl Seen<'_> {
    pub(super) fn parameter<M: Message + Default>(&self) -> M {
        M::decode(self.request.parameter.clone()).expect("the method's message")
    }
}

/// A region: first row, end, number of its server.
pub(super) type FakeRegion = (&'static str, &'static str, usize);

type Handler = dyn Fn(&Seen<'_>) -> Answer + Send + Sync;

/// Running fake servers.
pub(super) struct Fakes {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) ports: Vec<u16>,
    pub(super) regions: Mutex<Vec<FakeRegion>>,
    /// State of the table `t`: enabled 0, disabled 1.
    pub(super) table_state: Mutex<i32>,
    /// Methods of all calls, in the order of arrival. Look-ups are "look-up".
    pub(super) log: Mutex<Vec<String>>,
    handler: Box<Handler>,
}

impl Fakes {
    /// Starts as many servers as the regions name.
    pub(super) async fn start(
        regions: &[FakeRegion],
        handler: impl Fn(&Seen<'_>) -> Answer + Send + Sync + 'static,
    ) -> Fakes {
        let servers = regions.iter().map(|region| region.2).max().unwrap_or_default() + 1;
        Fakes::start_servers(servers, regions, handler).await
    }

    pub(super) async fn start_servers(
        servers: usize,
        regions: &[FakeRegion],
        handler: impl Fn(&Seen<'_>) -> Answer + Send + Sync + 'static,
    ) -> Fakes {
        let mut listeners = Vec::new();
        for _ in 0..servers {
            listeners.push(TcpListener::bind("127.0.0.1:0").await.expect("a free port"));
        }
        let port = |listener: &TcpListener| listener.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared {
            ports: listeners.iter().map(port).collect(),
            regions: Mutex::new(regions.to_vec()),
            table_state: Mutex::new(0),
            log: Mutex::default(),
            handler: Box::new(handler),
        });
        for (server, listener) in listeners.into_iter().enumerate() {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, server, Arc::clone(&shared)));
                }
            });
        }
        Fakes { shared }
    }

    /// Answers in turn. A call without an answer fails the test: its server stops.
    pub(super) fn in_turn(answers: Vec<Answer>) -> impl Fn(&Seen<'_>) -> Answer + Send + Sync {
        let answers = Mutex::new(VecDeque::from(answers));
        move |seen| {
            let next = answers.lock().expect("no panics").pop_front();
            next.unwrap_or_else(|| panic!("no answer is left for {}", seen.method))
        }
    }

    pub(super) fn cluster(&self, change: impl FnOnce(&mut ClusterOptions)) -> Cluster {
        let registry =
            Registry::bootstrap(&format!("127.0.0.1:{}", self.shared.ports[0])).expect("an address");
        let mut options = ClusterOptions::new(registry);
        options.pause = std::time::Duration::from_millis(1);
        change(&mut options);
        Cluster::new(options)
    }

    /// The calls so far.
    pub(super) fn log(&self) -> Vec<String> {
        self.shared.log.lock().expect("no panics").clone()
    }
}

async fn serve(mut stream: TcpStream, server: usize, shared: Arc<Shared>) {
    let mut preamble = [0; 6];
    if stream.read_exact(&mut preamble).await.is_err() {
        return;
    }
    assert_eq!(&preamble, b"HBas\0\x50");
    let header = decode_connection_header(frame(&mut stream).await.expect("a header")).expect("a header");
    assert!(header.service_name.is_some());
    while let Some(frame) = frame(&mut stream).await {
        let request = Request::decode(frame).expect("a request");
        let answer = shared.answer(server, &request);
        let id = request.header.call_id.expect("a call id");
        let mut out = Vec::new();
        match answer {
            Answer::Message(message, cells) => put_encoded_response(id, &message, &cells, &mut out),
            Answer::Exception(exception) => put_exception(id, exception, &mut out),
            Answer::Raw(bytes) => out = bytes,
            Answer::Close => return,
            Answer::Silence => {}
        }
        if stream.write_all(&out).await.is_err() {
            return;
        }
    }
}

async fn frame(stream: &mut TcpStream) -> Option<Bytes> {
    let length = stream.read_u32().await.ok()?;
    let mut frame = vec![0; length as usize];
    stream.read_exact(&mut frame).await.ok()?;
    Some(frame.into())
}

impl Shared {
    fn answer(&self, server: usize, request: &Request) -> Answer {
        let method = request.header.method();
        let seen = Seen {
            server,
            method,
            request,
        };
        let (name, answer) = match method {
            "GetMetaRegionLocations" => ("meta server", self.meta_server()),
            "Scan" if is_meta(seen.parameter::<ScanRequest>().region.as_ref()) => {
                ("look-up", self.look_up(&seen.parameter()))
            }
            "Get" if is_meta(Some(&seen.parameter::<GetRequest>().region)) => ("state", self.state()),
            _ => (method, (self.handler)(&seen)),
        };
        self.log.lock().expect("no panics").push(name.to_owned());
        answer
    }

    fn meta_server(&self) -> Answer {
        Answer::message(&GetMetaRegionLocationsResponse {
            meta_locations: vec![RegionLocation {
                server_name: Some(self.server_name(0)),
                ..RegionLocation::default()
            }],
        })
    }

    fn server_name(&self, server: usize) -> ServerName {
        ServerName {
            host_name: "127.0.0.1".to_owned(),
            port: Some(self.ports[server].into()),
            start_code: Some(7),
        }
    }

    /// The region of `t` at or before the scan's start row.
    fn look_up(&self, request: &ScanRequest) -> Answer {
        let scan = request.scan.as_ref().expect("a scan");
        let start = scan.start_row.clone().expect("a start row");
        let start = String::from_utf8(start.to_vec()).expect("text");
        let row = start.trim_start_matches("t,");
        let regions = self.regions.lock().expect("no panics");
        let mut from_the_end = regions.iter().rev();
        // Without an id, the start row comes before the region that begins there.
        let found = match row.strip_suffix(",99999999999999") {
            Some(row) => from_the_end.find(|region| region.0 <= row),
            None => from_the_end.find(|region| region.0 < row.trim_end_matches(',')),
        };
        let Some(found) = found.filter(|_| start.starts_with("t,")) else {
            return Answer::message(&ScanResponse::default());
        };
        let mut cells = Vec::new();
        let mut info = Vec::new();
        znode::encode_protobuf(&Self::info(found), &mut info);
        let server = format!("127.0.0.1:{}", self.ports[found.2]);
        let name = name(found);
        for (qualifier, value) in [
            ("regioninfo", &info[..]),
            ("server", server.as_bytes()),
            ("serverstartcode", &7_u64.to_be_bytes()),
        ] {
            cell(&name, "info", qualifier, value).encode(&mut cells);
        }
        let response = ScanResponse {
            cells_per_result: vec![3],
            more_results: Some(false),
            ..ScanResponse::default()
        };
        Answer::Message(response.encode_to_vec(), cells)
    }

    fn info(region: &FakeRegion) -> RegionInfo {
        RegionInfo {
            region_id: 1,
            table_name: messages::TableName {
                namespace: Bytes::from_static(b"default"),
                qualifier: Bytes::from_static(b"t"),
            },
            start_key: Some(Bytes::from_static(region.0.as_bytes())),
            end_key: Some(Bytes::from_static(region.1.as_bytes())),
            ..RegionInfo::default()
        }
    }

    fn state(&self) -> Answer {
        let state = TableState {
            state: *self.table_state.lock().expect("no panics"),
        };
        let mut cells = Vec::new();
        cell("t", "table", "state", &state.encode_to_vec()).encode(&mut cells);
        Answer::Message(get_response(1).encode_to_vec(), cells)
    }
}

fn is_meta(region: Option<&RegionSpecifier>) -> bool {
    region.is_some_and(|region| region.value == "hbase:meta,,1")
}

/// The name of a fake region.
pub(super) fn name(region: &FakeRegion) -> String {
    format!("t,{},1.0123456789abcdef0123456789abcdef.", region.0)
}

/// A cell for a block.
pub(super) fn cell<'a>(row: &'a str, family: &'a str, qualifier: &'a str, value: &'a [u8]) -> WireCell<'a> {
    WireCell {
        row: row.as_bytes(),
        family: family.as_bytes(),
        qualifier: qualifier.as_bytes(),
        timestamp: 1,
        cell_type: CellType::Put,
        value,
        tags: b"",
    }
}

/// An answer to a get with cells in the block.
pub(super) fn get_response(cells: i32) -> GetResponse {
    GetResponse {
        result: Some(messages::Result {
            associated_cell_count: Some(cells),
            ..messages::Result::default()
        }),
    }
}
