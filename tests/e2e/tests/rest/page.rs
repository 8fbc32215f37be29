//! The page `docs/getting-started/rest.md`: its commands are run as they stand there.

use std::process::Command;

use basalt_test_support::{Server, workspace};

/// Goal: a reader can follow the page. Method: all commands in one shell, against a server on other ports;
/// curl fails at each status of an error.
#[test]
fn the_page_can_be_followed() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("not run: curl is not to be had here");
        return;
    }
    let page =
        std::fs::read_to_string(workspace().join("docs/getting-started/rest.md")).expect("the page is there");
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut script =
        "set -euo pipefail\ncurl() { command curl -sS --fail-with-body \"$@\"; echo; }\n".to_owned();
    let (mut commands, mut is_shell) = (0, false);
    for line in page.lines() {
        match line {
            "```sh" => is_shell = true,
            "```" => is_shell = false,
            line if is_shell && !line.starts_with("basalt ") => {
                commands += usize::from(line.starts_with("curl"));
                script.push_str(line);
                script.push('\n');
            }
            _ => {}
        }
    }
    assert!(commands > 15, "the commands of the page were not found");
    let script = script
        .replace("localhost:9090", &server.thrift.to_string())
        .replace("localhost:9095", &server.http.to_string());
    let output = Command::new("bash")
        .arg("-c")
        .arg(&script)
        .output()
        .expect("bash is there");
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}\n{error}");
    for expected in [
        "2.6.1",
        "hello",
        "X-Timestamp: ",
        "\"VERSIONS\":\"3\"",
        "{\"Row\":[{\"key\":\"cm93MQ==\"",
        "HTTP/1.1 200 OK",
        "bytes",
    ] {
        assert!(out.contains(expected), "no {expected} in\n{out}");
    }
    server.stop();
}
