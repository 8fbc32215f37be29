//! HBase's REST interface. "Check 7" in a comment is the number of an acceptance check of its specification,
//! from 1 to 36.

use std::path::PathBuf;

use basalt_test_support::Server;

mod bodies;
mod client;
mod limits;
mod page;
mod rows;
mod scans;
mod schemas;

use client::Rest;

/// A server with the table `t`, and a connection to its main port.
struct Started {
    server: Server,
    rest: Rest,
    dir: tempfile::TempDir,
}

impl Started {
    fn with(settings: &[&str]) -> Self {
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let server = Server::start(&dir.path().join("data"), settings);
        let mut rest = Rest::connect(server.thrift);
        rest.create_table();
        Self { server, rest, dir }
    }

    fn new() -> Self {
        Self::with(&[])
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }
}
