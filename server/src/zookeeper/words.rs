//! ZooKeeper's four-letter words: questions of monitoring, health checks and HBase's own pages.
//!
//! | word | answer |
//! | --- | --- |
//! | `ruok`, `isro` | the server is well, and writes are accepted |
//! | `srvr`, `stat` | version, connections, mode; `stat` lists the connections |
//! | `mntr` | figures, one a line |
//! | `cons`, `dump`, `wchs` | connections; sessions; watches, of which there are none |
//! | `conf`, `envi` | settings and environment, without paths of the server's disk |
//! | all others | not in the whitelist, as with ZooKeeper's default settings |
//!
//! The forms are those of ZooKeeper 3.8, in whose whitelist an administrator has put the words above.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use super::SESSION_TIMEOUT_MS;
use super::nodes::Nodes;
use super::sessions::{Seen, Session, Sessions};
use crate::security::{Caller, Owner};
use crate::server::Server;

/// The version of ZooKeeper whose protocol this is, in the form of ZooKeeper's own versions.
const VERSION: &str = concat!("3.8.4-basalt-", env!("CARGO_PKG_VERSION"));
/// Most bytes of a connection in an answer, about.
const LINE_BYTES: usize = 256;
/// Bytes of an answer without connections, at most.
const REST_BYTES: usize = 4 << 10;

/// A question with all that its answer can depend on.
pub(super) struct Asked<'a> {
    pub(super) server: &'a Arc<Server>,
    pub(super) sessions: &'a Sessions,
    /// The connection that asks, which ZooKeeper lists, too.
    pub(super) peer: SocketAddr,
}

impl Asked<'_> {
    fn nodes(&self) -> Nodes<'_> {
        Nodes::new(self.server, &Caller::locating(Owner::Http, Some(self.peer)))
    }

    /// Bytes that the answer has at most, about.
    pub(super) fn answer_bytes(&self) -> usize {
        REST_BYTES + self.sessions.count() * LINE_BYTES
    }

    /// The answer to a word.
    pub(super) fn answer(&self, word: [u8; 4]) -> String {
        match &word {
            b"ruok" => "imok".to_owned(),
            b"isro" => "rw".to_owned(),
            b"srvr" => self.state(false),
            b"stat" => self.state(true),
            b"mntr" => self.figures(),
            b"cons" => format!("{}\n", self.connections(false)),
            b"dump" => self.dump(),
            b"wchs" => "0 connections watching 0 paths\nTotal watches:0\n".to_owned(),
            b"conf" => self.settings(),
            b"envi" => self.environment(),
            _ => format!(
                "{} is not executed because it is not in the whitelist.\n",
                word.escape_ascii()
            ),
        }
    }

    fn state(&self, with_clients: bool) -> String {
        let clients = if with_clients {
            format!("Clients:\n{}\n", self.connections(true))
        } else {
            String::new()
        };
        let nodes = self.nodes();
        let (received, sent) = self.packets();
        format!(
            "Zookeeper version: {VERSION}\n{clients}Latency min/avg/max: 0/0.0/0\nReceived: {received}\nSent: {sent}\n\
             Connections: {}\nOutstanding: 0\nZxid: 0x{:x}\nMode: standalone\nNode count: {}\n",
            self.sessions.count() + 1,
            nodes.zxid(),
            nodes.count()
        )
    }

    /// Packets received and sent, this question included.
    fn packets(&self) -> (u64, u64) {
        let (received, sent) = self.sessions.packets();
        (received + 1, sent)
    }

    fn connections(&self, is_brief: bool) -> String {
        let mut out = format!(" /{}[0](queued=0,recved=1,sent=0)\n", self.peer);
        let zxid = self.nodes().zxid();
        for (number, session) in self.sessions.list() {
            put_connection(number, &session, zxid, is_brief, &mut out);
        }
        out
    }

    fn figures(&self) -> String {
        let nodes = self.nodes();
        let (received, sent) = self.packets();
        let connections = self.sessions.count() + 1;
        let figures = [
            ("version", VERSION.to_owned()),
            ("server_state", "standalone".to_owned()),
            ("uptime", self.server.instance().uptime().as_millis().to_string()),
            ("avg_latency", "0.0".to_owned()),
            ("max_latency", "0".to_owned()),
            ("min_latency", "0".to_owned()),
            ("packets_received", received.to_string()),
            ("packets_sent", sent.to_string()),
            ("num_alive_connections", connections.to_string()),
            ("outstanding_requests", "0".to_owned()),
            ("znode_count", nodes.count().to_string()),
            ("watch_count", "0".to_owned()),
            ("ephemerals_count", "0".to_owned()),
            ("global_sessions", self.sessions.count().to_string()),
            ("local_sessions", "0".to_owned()),
            ("connection_drop_probability", "0.0".to_owned()),
            ("auth_failed_count", "0".to_owned()),
        ];
        figures.iter().fold(String::new(), |mut out, (name, value)| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "zk_{name}\t{value}");
            out
        })
    }

    fn dump(&self) -> String {
        let sessions = self.sessions.list();
        let begun = sessions
            .iter()
            .filter(|(_, session)| session.seen().timeout_ms > 0);
        let ids: Vec<String> = begun.map(|(number, _)| format!("0x{number:x}\n")).collect();
        let sets = ids.iter().fold(String::new(), |mut out, id| {
            out.push('\t');
            out.push_str(id);
            out
        });
        format!(
            "SessionTracker dump:\nSession Sets ({0})/({0}):\n{sets}ephemeral nodes dump:\n\
             Sessions with Ephemerals (0):\nConnections dump:\nConnections Sets ({1})/({1}):\n",
            ids.len(),
            sessions.len() + 1,
        )
    }

    fn settings(&self) -> String {
        let config = self.server.config();
        format!(
            "clientPort={}\nsecureClientPort=-1\ntickTime=2000\nmaxClientCnxns={}\nminSessionTimeout={}\n\
             maxSessionTimeout={}\nclientPortListenBacklog=-1\nserverId=0\n",
            self.server.instance().main_address().port(),
            config.server.max_connections,
            SESSION_TIMEOUT_MS.start(),
            SESSION_TIMEOUT_MS.end()
        )
    }

    fn environment(&self) -> String {
        format!(
            "Environment:\nzookeeper.version={VERSION}\nhost.name={}\nos.name={}\nos.arch={}\n",
            self.server.instance().advertised().0,
            std::env::consts::OS,
            std::env::consts::ARCH
        )
    }
}

/// Appends the line of a connection.
fn put_connection(number: u64, session: &Session, zxid: i64, is_brief: bool, out: &mut String) {
    let Seen {
        timeout_ms,
        received,
        sent,
        last_xid,
        last_operation,
    } = session.seen();
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        " /{}[1](queued=0,recved={received},sent={sent}",
        session.peer
    );
    if !is_brief && timeout_ms > 0 {
        let _ = write!(
            out,
            ",sid=0x{number:x},lop={},est={},to={timeout_ms},lcxid=0x{last_xid:x},lzxid=0x{zxid:x},llat=0,\
             minlat=0,avglat=0,maxlat=0",
            operation_name(last_operation),
            session.began_ms
        );
    }
    out.push_str(")\n");
}

/// ZooKeeper's abbreviation of an operation.
fn operation_name(code: i32) -> &'static str {
    match code {
        0 => "SESS",
        1 | 15 | 19 | 21 => "CREA",
        2 | 20 => "DELE",
        3 => "EXIS",
        4 => "GETD",
        5 => "SETD",
        6 => "GETA",
        7 => "SETA",
        8 | 12 => "GETC",
        9 => "SYNC",
        11 => "PING",
        14 | 22 => "MULT",
        17 => "CHKW",
        18 => "REMW",
        101 | 105 => "SETW",
        -11 => "CLOS",
        _ => "NA",
    }
}
