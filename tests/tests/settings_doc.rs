//! `docs/operations.md` and the server say the same: which settings there are, and their defaults.
//!
//! The server prints its effective settings before it opens the data directory. It is started without any argument in a
//! folder where the name of the data directory is taken by a file, so that it prints the defaults and ends.

use std::collections::BTreeMap;
use std::process::Command;

use basalt_tests::{binary, workspace};

/// `section.key` and default of each row of the table of settings.
fn documented() -> BTreeMap<String, String> {
    let path = workspace().join("docs/operations.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let (_, below) = page
        .split_once("## Settings")
        .expect("the page has a chapter on settings");
    let chapter = below.split("\n## ").next().unwrap_or_default();
    chapter
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let columns: Vec<&str> = line
                .split('|')
                .map(|column| column.trim().trim_matches('`'))
                .collect();
            (columns[1].to_owned(), columns[2].to_owned())
        })
        .collect()
}

/// What a server without arguments runs with.
fn printed() -> BTreeMap<String, String> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("basalt-data"), b"no directory").expect("the folder is ours");
    let output = Command::new(binary("basalt"))
        .current_dir(dir.path())
        .output()
        .expect("the binary was built");
    let log = String::from_utf8(output.stderr).expect("the log is text");
    assert_eq!(
        output.status.code(),
        Some(1),
        "a data directory that is a file:\n{log}"
    );
    log.lines()
        .filter_map(|line| line.split_once("setting ")?.1.split_once(" = "))
        .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
        .collect()
}

#[test]
fn the_page_lists_every_setting_with_its_default() {
    let (documented, printed) = (documented(), printed());
    assert!(!printed.is_empty(), "the server prints its settings");
    assert_eq!(documented, printed);
}
