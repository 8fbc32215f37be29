//! HBase's MapReduce tools in one JVM with Hadoop's LocalJobRunner: TableInputFormat as source and
//! TableOutputFormat as sink of jobs.
//!
//! Copies are compared cell by cell: a transcript has the number of cells and a digest of them all.

use std::path::Path;

use basalt_test_support::{JavaProgram, Server};

use super::{Explained, compare, is_recorded, with_hbase, with_server};

/// The transcript recorded with HBase 2.6.1.
const ANSWERS: &str = include_str!("../../clients/mapreduce/answers.txt");

const EXPLAINED: &[Explained] = &[];

#[test]
fn tools() {
    let Some(client) = JavaProgram::find("e2e/clients/mapreduce") else {
        return;
    };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    // The folder of the files for bulk loads, which the server reads itself.
    let loads = format!("bulkload.directories=[\"{}\"]", dir.path().display());
    let server = Server::start(&dir.path().join("data"), &[&loads]);
    let transcript = tour(&client, server.thrift.port(), dir.path(), &[]);
    compare(ANSWERS, EXPLAINED, &transcript, "MapReduce");
    server.stop();
}

#[test]
fn hbase_gives_the_recorded_answers() {
    let Some(client) = JavaProgram::find("e2e/clients/mapreduce") else {
        return;
    };
    with_hbase(|hbase, dir| {
        let port = hbase.zookeeper_port().expect("it has started");
        let transcript = tour(&client, port, dir, &[]);
        is_recorded(ANSWERS, &transcript, "e2e/clients/mapreduce");
    });
}

/// An export of HBase is imported into Basalt and the other way round: equal cell by cell.
#[test]
fn exports_of_one_are_imported_into_the_other() {
    let Some(client) = JavaProgram::find("e2e/clients/mapreduce") else {
        return;
    };
    with_hbase(|hbase, dir| {
        let hbase = hbase.zookeeper_port().expect("it has started");
        let server = Server::start(&dir.join("data"), &[]);
        let basalt = server.thrift.port();
        for (table, from, to) in [("of_hbase", hbase, basalt), ("of_basalt", basalt, hbase)] {
            let export = dir.join(table).display().to_string();
            let given = tour(&client, from, dir, &["export", table, &export]);
            let taken = tour(&client, to, dir, &["import", table, &export]);
            assert_eq!(cells(&given), cells(&taken), "{table}");
        }
        server.stop();
    });
}

/// CopyTable writes a table of one server into another.
#[test]
fn a_table_is_copied_to_another_server() {
    let Some(client) = JavaProgram::find("e2e/clients/mapreduce") else {
        return;
    };
    with_server(|server, dir| {
        let other = Server::start(&dir.join("other"), &[]);
        copy(
            &client,
            dir,
            "copied_over",
            server.thrift.port(),
            other.thrift.port(),
        );
        other.stop();
    });
}

#[test]
fn tables_are_copied_between_hbase_and_basalt() {
    let Some(client) = JavaProgram::find("e2e/clients/mapreduce") else {
        return;
    };
    with_hbase(|hbase, dir| {
        let hbase = hbase.zookeeper_port().expect("it has started");
        let server = Server::start(&dir.join("data"), &[]);
        let basalt = server.thrift.port();
        copy(&client, dir, "from_hbase", hbase, basalt);
        copy(&client, dir, "from_basalt", basalt, hbase);
        server.stop();
    });
}

/// Copies a table from the server at one port to that at another: equal cell by cell.
fn copy(client: &JavaProgram, dir: &Path, table: &str, from: u16, to: u16) {
    let target = format!("127.0.0.1:{to}");
    tour(client, to, dir, &["create", table, &target]);
    let source = tour(client, from, dir, &["copy", table, &target]);
    let copied = tour(client, to, dir, &["cells", table, &target]);
    assert_eq!(cells(&source), cells(&copied), "{table}");
}

/// The transcript of all tools, or of those that `rest` asks for. Files are made in `dir`.
fn tour(client: &JavaProgram, port: u16, dir: &Path, rest: &[&str]) -> String {
    let (port, dir) = (port.to_string(), dir.display().to_string());
    let server = ["zookeeper", "127.0.0.1", port.as_str(), dir.as_str()];
    client.tour(&[&server[..], rest].concat())
}

/// The line with the number and the digest of the cells; there are more cells than rows.
fn cells(transcript: &str) -> &str {
    let line = transcript
        .lines()
        .find(|line| line.starts_with("cells -> 1600 cells "));
    line.unwrap_or_else(|| panic!("not all cells were seen:\n{transcript}"))
}
