//! The ZooKeeper nodes in which clients look up the server, read with the packets of go-zookeeper
//! and of Java.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use basalt_idl::native::cells::Cells;
use basalt_idl::native::messages::{ClusterId, Get, GetRequest, Master, MetaRegionServer};
use basalt_idl::native::znode;
use basalt_test_support::{Server, until, workspace};

use super::client::{Client, create, region, specifier};

struct Session {
    socket: TcpStream,
}

impl Session {
    /// Opens a session. The length of the response depends on the read-only flag in the request.
    fn open(server: &Server, has_read_only: bool) -> Self {
        let socket = TcpStream::connect(server.thrift).unwrap();
        socket.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let mut session = Self { socket };
        let mut connect = vec![0; 12];
        connect.extend_from_slice(&30_000_i32.to_be_bytes());
        connect.extend_from_slice(&[0; 8]);
        connect.extend_from_slice(&16_i32.to_be_bytes());
        connect.extend_from_slice(&[0; 16]);
        if has_read_only {
            connect.push(0);
        }
        session.send(&connect);
        let answer = session.packet().unwrap();
        assert_eq!(answer.len(), if has_read_only { 37 } else { 36 });
        assert_eq!(answer[4..8], 30_000_i32.to_be_bytes());
        session
    }

    fn send(&mut self, packet: &[u8]) {
        self.socket
            .write_all(&(packet.len() as u32).to_be_bytes())
            .unwrap();
        self.socket.write_all(packet).unwrap();
    }

    fn packet(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; 4];
        self.socket.read_exact(&mut length).ok()?;
        let mut packet = vec![0; u32::from_be_bytes(length) as usize];
        self.socket.read_exact(&mut packet).unwrap();
        Some(packet)
    }

    /// Error code and body of the answer to an operation on a path.
    fn ask(&mut self, operation: i32, path: &str) -> (i32, Vec<u8>) {
        let mut body = (path.len() as i32).to_be_bytes().to_vec();
        body.extend_from_slice(path.as_bytes());
        body.push(0);
        self.request(operation, &body)
    }

    /// Error code and body of the answer to an operation.
    fn request(&mut self, operation: i32, body: &[u8]) -> (i32, Vec<u8>) {
        self.send(&[&3_i32.to_be_bytes()[..], &operation.to_be_bytes(), body].concat());
        let answer = self.packet().unwrap();
        assert_eq!(answer[..4], 3_i32.to_be_bytes());
        let code = i32::from_be_bytes(answer[12..16].try_into().unwrap());
        (code, answer[16..].to_vec())
    }

    /// The data of a node.
    fn data(&mut self, path: &str) -> Vec<u8> {
        let (code, body) = self.ask(4, path);
        assert_eq!(code, 0, "{path}");
        let length = u32::from_be_bytes(body[..4].try_into().unwrap()) as usize;
        body[4..4 + length].to_vec()
    }
}

#[test]
fn the_nodes_name_this_server() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    for has_read_only in [false, true] {
        let mut session = Session::open(&server, has_read_only);
        let id: ClusterId = znode::decode(&session.data("/hbase/hbaseid")).unwrap();
        assert_eq!(id.cluster_id.len(), 36);
        let meta: MetaRegionServer = znode::decode(&session.data("/hbase/meta-region-server")).unwrap();
        let master: Master = znode::decode(&session.data("/hbase-unsecure/master")).unwrap();
        assert_eq!(meta.server, master.master);
        assert_eq!(
            (meta.server.host_name.as_str(), meta.server.port),
            ("127.0.0.1", Some(u32::from(server.thrift.port())))
        );
        // No such node. asynchbase reads it first, to distinguish old servers from new ones.
        assert_eq!(session.ask(4, "/hbase/root-region-server").0, -101);
        assert_eq!(session.ask(3, "/hbase/hbaseid").0, 0);
        let (code, children) = session.ask(8, "/hbase");
        assert_eq!(code, 0);
        assert!(children.windows(18).any(|name| name == b"meta-region-server"));
        // Changes are refused, unknown operations too.
        assert_eq!(session.ask(1, "/hbase/x").0, -102);
        assert_eq!(session.ask(99, "/hbase/x").0, -6);
        session.send(&[(-2_i32).to_be_bytes(), 11_i32.to_be_bytes()].concat());
        assert_eq!(session.packet().unwrap().len(), 16);
        session.send(&[1_i32.to_be_bytes(), (-11_i32).to_be_bytes()].concat());
        assert_eq!(session.packet().unwrap().len(), 16);
        assert_eq!(session.packet(), None);
    }
    server.stop();
}

/// The nodes of the page's table "ZooKeeper nodes", and no others, are there below each base node.
#[test]
fn the_nodes_are_those_of_the_page() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&server, "t");
    let page = std::fs::read_to_string(workspace().join("docs/compatibility.md")).unwrap();
    let (_, below) = page.split_once("\n### ZooKeeper nodes").expect("the heading");
    let table = below.split("\n#").next().unwrap_or_default();
    let mut session = Session::open(&server, false);
    let master: Master = znode::decode(&session.data("/hbase/master")).unwrap();
    let own = znode::server_name_text(&master.master);
    let mut children = BTreeSet::new();
    for line in table.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = line.trim_start_matches("| `").split(" | ");
        let (node, state) = (cells.next().unwrap().trim_matches('`'), cells.next().unwrap());
        let node = node.replace("HOST,PORT,STARTCODE", &own).replace("NAME", "t");
        for base in ["/hbase", "/hbase-unsecure", "/hbase-secure"] {
            let path = node.replacen("/hbase", base, 1);
            let expected = if state == "absent" { -101 } else { 0 };
            assert_eq!(session.ask(3, &path).0, expected, "{path}");
        }
        if state != "absent"
            && let Some((_, child)) = node[1..].split_once('/')
        {
            children.insert(child.split('/').next().unwrap().to_owned());
        }
    }
    let (code, body) = session.ask(8, "/hbase");
    assert_eq!(code, 0);
    assert_eq!(children, strings(&body));
    server.stop();
}

/// A list of strings, each with its length in front.
fn strings(body: &[u8]) -> BTreeSet<String> {
    let (count, mut rest) = number(body);
    let mut found = BTreeSet::new();
    for _ in 0..count {
        let (length, begin) = number(rest);
        let (string, end) = begin.split_at(length);
        found.insert(String::from_utf8(string.to_vec()).expect("text"));
        rest = end;
    }
    found
}

fn number(body: &[u8]) -> (usize, &[u8]) {
    let (first, rest) = body.split_first_chunk::<4>().expect("a number");
    (u32::from_be_bytes(*first) as usize, rest)
}

/// The nodes contain the name and port of `server.advertise`, and so does `hbase:meta`.
#[test]
fn the_advertised_name_is_told() {
    let dir = basalt_test_support::tempdir().unwrap();
    let settings = ["server.advertise=basalt.example:19090"];
    let server = Server::start(&dir.path().join("data"), &settings);
    let mut session = Session::open(&server, true);
    let meta: MetaRegionServer = znode::decode(&session.data("/hbase/meta-region-server")).unwrap();
    assert_eq!(
        (meta.server.host_name.as_str(), meta.server.port),
        ("basalt.example", Some(19090))
    );
    create(&server, "t");
    let region = region(&server, "t");
    let read = GetRequest {
        region: specifier(b"hbase:meta,,1"),
        get: Get {
            row: region.value,
            ..Get::default()
        },
    };
    let mut client = Client::connect(&server, "ClientService");
    client.call(1, "Get", &read, b"");
    let response = client.response().unwrap();
    let cells = Cells::new(&response.cells).map(|cell| cell.unwrap());
    let servers = cells.filter(|cell| cell.qualifier == b"server");
    assert_eq!(
        servers.map(|cell| cell.value.to_vec()).collect::<Vec<_>>(),
        [b"basalt.example:19090"]
    );
    server.stop();
}

/// The answer to a four-letter word.
fn word(server: &Server, word: &str) -> String {
    let mut socket = TcpStream::connect(server.thrift).unwrap();
    socket.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    socket.write_all(word.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// Every word of ZooKeeper 3.8 has its answer, or the sentence for one that is not in the whitelist.
#[test]
fn every_word_of_zookeeper_has_an_answer() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    assert_eq!(word(&server, "ruok"), "imok");
    assert_eq!(word(&server, "ruok\n"), "imok");
    assert_eq!(word(&server, "isro"), "rw");
    let version = concat!("3.8.4-basalt-", env!("CARGO_PKG_VERSION"));
    let mut session = Session::open(&server, true);
    session.data("/hbase/hbaseid");
    let own = session.socket.local_addr().unwrap();
    for (asked, expected) in [
        (
            "srvr",
            &[
                &format!("Zookeeper version: {version}\n")[..],
                "\nMode: standalone\n",
            ][..],
        ),
        (
            "srvr",
            &[
                "\nLatency min/avg/max: ",
                "\nConnections: 2\n",
                "\nNode count: 34\n",
            ],
        ),
        ("stat", &["\nClients:\n /127.0.0.1:", "\nMode: standalone\n"]),
        ("stat", &[&format!(" /{own}[1](queued=0,recved=2,sent=2)\n")]),
        (
            "mntr",
            &[
                &format!("zk_version\t{version}\n"),
                "\nzk_server_state\tstandalone\n",
            ],
        ),
        (
            "mntr",
            &["\nzk_znode_count\t34\n", "\nzk_num_alive_connections\t2\n"],
        ),
        (
            "cons",
            &[
                &format!(" /{own}[1](queued=0,recved=2,sent=2,sid=0x"),
                ",lop=GETD,",
                ",to=30000,lcxid=0x3,",
            ],
        ),
        (
            "dump",
            &[
                "SessionTracker dump:\nSession Sets (1)/(1):\n\t0x",
                "\nephemeral nodes dump:\n",
            ],
        ),
        ("wchs", &["0 connections watching 0 paths\nTotal watches:0\n"]),
        (
            "conf",
            &[
                &format!("clientPort={}\n", server.thrift.port()),
                "\nmaxSessionTimeout=90000\n",
            ],
        ),
        (
            "envi",
            &["Environment:\n", &format!("\nzookeeper.version={version}\n")],
        ),
    ] {
        let answer = word(&server, asked);
        for part in expected {
            assert!(answer.contains(part), "{asked}: no {part:?} in\n{answer}");
        }
        assert!(
            !answer.contains(dir.path().to_str().unwrap()),
            "{asked}: {answer}"
        );
    }
    for asked in ["crst", "dirs", "gtmk", "hash", "srst", "stmk", "wchc", "wchp"] {
        assert_eq!(
            word(&server, asked),
            format!("{asked} is not executed because it is not in the whitelist.\n")
        );
    }
    drop(session);
    until("the session's end", || {
        word(&server, "mntr").contains("zk_global_sessions\t0\n")
    });
    server.stop();
}

/// The operations that Curator sends beside reads.
#[test]
fn curators_operations_are_answered() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut session = Session::open(&server, true);
    let text = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let everybody = [
        &1_i32.to_be_bytes()[..],
        &1_i32.to_be_bytes(),
        &text("world"),
        &text("anyone"),
    ]
    .concat();
    let (code, body) = session.ask(6, "/hbase/master");
    assert_eq!(
        (code, &body[..everybody.len()], body.len()),
        (0, &everybody[..], everybody.len() + 68)
    );
    assert_eq!(session.ask(9, "/hbase"), (0, text("/hbase")));
    let me = [&1_i32.to_be_bytes()[..], &text("ip"), &text("127.0.0.1")].concat();
    assert_eq!(session.ask(107, ""), (0, me));
    assert_eq!(session.ask(104, "/hbase"), (0, 10_i32.to_be_bytes().to_vec()));
    assert_eq!(session.ask(103, "/"), (0, vec![0; 4]));
    assert_eq!(session.ask(106, "/hbase/master"), (0, vec![0; 4]));
    for operation in [17, 18] {
        assert_eq!(session.ask(operation, "/hbase/master"), (0, vec![]), "a watch");
    }
    // Without the node above there is nothing to change, so that clients make that first.
    for (operation, path, expected) in [
        (1, "/hbase/new", -102),
        (1, "/other/new", -101),
        (1, "new", -8),
        (2, "/hbase/master", -102),
        (5, "/hbase/master", -102),
        (5, "/hbase/new", -101),
        (7, "/hbase/master", -102),
        (6, "/hbase/new", -101),
        (104, "/hbase/new", -101),
        (15, "/hbase/new", -102),
        (21, "/hbase/new", -102),
    ] {
        assert_eq!(session.ask(operation, path).0, expected, "{operation} {path}");
    }

    let header = |kind: i32, done: u8| [&kind.to_be_bytes()[..], &[done], &(-1_i32).to_be_bytes()].concat();
    let check =
        |path: &str, version: i32| [header(13, 0), text(path), version.to_be_bytes().to_vec()].concat();
    let delete = |path: &str| [header(2, 0), text(path), (-1_i32).to_be_bytes().to_vec()].concat();
    let read = |kind, path: &str| [header(kind, 0), text(path), vec![0]].concat();
    let done = |kind: i32| [&kind.to_be_bytes()[..], &[0; 5]].concat();
    let failed = |code: i32| {
        [
            &(-1_i32).to_be_bytes()[..],
            &[0],
            &code.to_be_bytes(),
            &code.to_be_bytes(),
        ]
        .concat()
    };
    let end = header(-1, 1);
    for (operations, expected) in [
        (
            vec![check("/hbase", -1), check("/hbase/rs", 0)],
            vec![done(13), done(13)],
        ),
        (
            vec![check("/hbase", -1), delete("/hbase/rs"), check("/hbase", -1)],
            vec![failed(0), failed(-102), failed(-2)],
        ),
        (vec![check("/hbase", 7)], vec![failed(-103)]),
        (vec![check("/other", -1)], vec![failed(-101)]),
    ] {
        let body = [operations.concat(), end.clone()].concat();
        assert_eq!(
            session.request(14, &body),
            (0, [expected.concat(), end.clone()].concat())
        );
    }
    let body = [read(4, "/hbase/hbaseid"), read(8, "/other"), end.clone()].concat();
    let (code, answer) = session.request(22, &body);
    let data = session.data("/hbase/hbaseid");
    assert_eq!((code, &answer[..9]), (0, &done(4)[..]));
    assert_eq!(answer[13..13 + data.len()], data);
    assert!(answer.ends_with(&[failed(-101), end].concat()));
    session.send(
        &[
            &3_i32.to_be_bytes()[..],
            &14_i32.to_be_bytes(),
            &header(99, 0),
            &text("/"),
        ]
        .concat(),
    );
    assert_eq!(session.packet(), None, "an operation that there is not");
    server.stop();
}

#[test]
fn words_of_monitoring_and_packets_without_sense() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut socket = TcpStream::connect(server.thrift).unwrap();
    socket.write_all(b"ruok").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "imok");
    let mut session = Session::open(&server, true);
    session.send(&[0; 3]);
    assert_eq!(session.packet(), None);
    let mut session = Session::open(&server, true);
    session.socket.write_all(&u32::MAX.to_be_bytes()).unwrap();
    assert_eq!(session.packet(), None);
    Session::open(&server, true);
    server.stop();
}
