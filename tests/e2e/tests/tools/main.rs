//! `basalt-shell` and `basalt-bench` as programs, against the real server.

mod lab;
mod load;
mod model;
mod security;
mod shell;
mod shell_forms;
mod shell_terminal;

use std::path::Path;
use std::process::Command;

use basalt_test_support::{Server, binary};
use serde_json::Value;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a workload of the load generator; panics when it fails.
fn bench(server: &Server, arguments: &[&str], out: &Path) -> String {
    let output = Command::new(binary("basalt-bench"))
        .args(arguments)
        .args(["--target", &server.thrift.to_string(), "--out"])
        .arg(out)
        .output()
        .expect("the binary was built");
    assert!(output.status.success(), "{arguments:?}\n{output:?}");
    text(&output.stdout)
}

/// The JSON of a report, and its HTML, which must not need a network.
fn report(out: &Path) -> (Value, String) {
    let html = std::fs::read_to_string(out.join("report.html")).expect("a page was written");
    for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!html.contains(outside), "the report needs a network: {outside}");
    }
    assert!(html.contains("new uPlot("), "the report draws nothing");
    let json = std::fs::read(out.join("report.json")).expect("figures were written");
    (serde_json::from_slice(&json).expect("JSON"), html)
}
