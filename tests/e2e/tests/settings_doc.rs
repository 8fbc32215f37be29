//! `docs/settings.md` equals the output of `basalt config print --format markdown`, and the server
//! runs with the settings that are listed there. `BASALT_GENERATE=1` writes the page anew. Messages
//! in `docs/troubleshooting.md` are the server's.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use basalt_test_support::{binary, workspace};

/// A command of the server without settings in its environment.
fn basalt(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary("basalt"));
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"BASALT_") {
            command.env_remove(name);
        }
    }
    command.args(arguments);
    command
}

#[test]
fn the_page_is_what_the_server_prints() {
    let output = basalt(&["config", "print", "--format", "markdown"]).output();
    let output = output.expect("the binary was built");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8(output.stdout).expect("the page is text");
    let path = workspace().join("docs/settings.md");
    if std::env::var_os("BASALT_GENERATE").is_some() {
        std::fs::write(&path, &printed).expect("the page can be written");
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == printed,
        "docs/settings.md is out of date: run this test with BASALT_GENERATE=1"
    );
}

/// Goal: the page has every setting that is in force in a server. Method: the server prints its
/// effective settings before it opens the data directory; here that name is taken by a file, so it
/// prints the defaults and ends.
#[test]
fn the_page_lists_every_setting_in_force() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("basalt-data"), b"no directory").expect("the folder is ours");
    let output = basalt(&[
        "--set",
        "server.listen=127.0.0.1:0",
        "--set",
        "http.listen=127.0.0.1:0",
    ])
    .current_dir(dir.path())
    .output()
    .expect("the binary was built");
    let log = String::from_utf8(output.stderr).expect("the log is text");
    assert_eq!(
        output.status.code(),
        Some(1),
        "a data directory that is a file:\n{log}"
    );
    let in_force: BTreeSet<&str> = log
        .lines()
        .filter_map(|line| line.split_once("setting ")?.1.split_once(" = "))
        .map(|(name, _)| name)
        .collect();
    let page = std::fs::read_to_string(workspace().join("docs/settings.md")).expect("the page is there");
    let listed: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(name, _)| name)
        .filter(|name| name.contains('.'))
        .collect();
    assert!(!in_force.is_empty(), "the server prints its settings");
    assert_eq!(listed, in_force);
}

/// The text of all Rust files below a folder.
fn sources(dir: &Path, text: &mut String) {
    for entry in std::fs::read_dir(dir).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            *text += &std::fs::read_to_string(&path).expect("source is text");
        }
    }
}

/// Goal: a message that docs/troubleshooting.md explains is one that the server has. Method: each part
/// of a quoted message between dots stands in the source of the server or the engine.
#[test]
fn troubleshooting_quotes_messages_of_the_server() {
    let page = std::fs::read_to_string(workspace().join("docs/troubleshooting.md")).expect("the page");
    let mut source = String::new();
    for folder in ["server/src", "server/engine/src", "idl/types/src"] {
        sources(&workspace().join(folder), &mut source);
    }
    let messages = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let mut quoted = 0;
    for (message, _) in messages {
        for part in message
            .split("...")
            .map(|part| part.trim_matches([' ', ',', ';', ':']))
        {
            assert!(source.contains(part), "no source has {part:?} of {message:?}");
            quoted += part.len().min(1);
        }
    }
    assert!(quoted >= 8, "only {quoted} parts of messages were found");
}
