//! HBase's shell 2.4.17: the commands of `tests/e2e/clients/shell/src/*.rb`, one after the other on its
//! standard input.
//!
//! The shell repeats each command behind its prompt, so its output says which lines belong to which
//! command. A line of the transcript is a command with its output, in which [`masked`] hides parts
//! that differ between runs.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use basalt_test_support::java::SMALL;
use basalt_test_support::{JavaProgram, Oracle};

use super::{Explained, compare, is_recorded, is_recorded_in, with_hbase, with_server};

const COMMANDS: &str = include_str!("../../clients/shell/src/commands.rb");

/// The transcript recorded with HBase 2.6.1.
const ANSWERS: &str = include_str!("../../clients/shell/answers.txt");

/// Commands about quotas. An HBase has none unless they are switched on.
const QUOTA_COMMANDS: &str = include_str!("../../clients/shell/src/quotas.rb");
const QUOTA_ANSWERS: &str = include_str!("../../clients/shell/quotas.txt");

const EXPLAINED: &[Explained] = &[(
    "status 'simple'",
    "| active master: HOST:# # | # backup masters | # live servers | HOST:# # | \
         requestsPerSecond=#.#, numberOfOnlineRegions=#, usedHeapMB=#, maxHeapMB=#, \
         numberOfStores=#, numberOfStorefiles=#, storefileUncompressedSizeMB=#, \
         storefileSizeMB=#, memstoreSizeMB=#, storefileIndexSizeKB=#, readRequestsCount=#, \
         filteredReadRequestsCount=#, writeRequestsCount=#, rootIndexSizeKB=#, \
         totalStaticIndexSizeKB=#, totalStaticBloomSizeKB=#, totalCompactingKVs=#, \
         currentCompactedKVs=#, compactionProgressPct=NaN, coprocessors=[AggregateImplementation, MultiRowMutationEndpoint] | # dead servers | \
         Aggregate load: #, regions: #",
    "AggregateService is served for every table, as by an HBase that has AggregateImplementation loaded",
)];

/// Commands that print figures of the machine, such as requests and memory: numbers are masked.
const FIGURES: &[&str] = &["status 'simple'", "list_regions 'st'", "clear_block_cache 'st'"];

/// Characters of words that stay together when parts of a line are masked.
fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric()
}

#[test]
fn hbase_gives_the_recorded_answers() {
    let Some(shell) = JavaProgram::find("e2e/clients/shell") else {
        return;
    };
    with_hbase(|hbase, dir| {
        let port = hbase.zookeeper_port().expect("it has started");
        is_recorded(
            ANSWERS,
            &transcript(&run(&shell, port, dir, COMMANDS)),
            "e2e/clients/shell",
        );
    });
}

#[test]
fn commands() {
    let Some(shell) = JavaProgram::find("e2e/clients/shell") else {
        return;
    };
    with_server(|server, dir| {
        let output = run(&shell, server.thrift.port(), dir, COMMANDS);
        compare(ANSWERS, EXPLAINED, &transcript(&output), "shell");
    });
}

#[test]
fn hbase_gives_the_recorded_answers_about_quotas() {
    let Some(shell) = JavaProgram::find("e2e/clients/shell") else {
        return;
    };
    let Some(mut hbase) = Oracle::start_with(&["hbase.quota.enabled=true"]) else {
        return;
    };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let port = hbase.zookeeper_port().expect("it has started");
    let output = run(&shell, port, dir.path(), QUOTA_COMMANDS);
    is_recorded_in(
        QUOTA_ANSWERS,
        &transcript(&output),
        "e2e/clients/shell/quotas.txt",
    );
}

/// The shell reads quotas from the table `hbase:quota`.
#[test]
fn quotas_are_set_and_listed() {
    let Some(shell) = JavaProgram::find("e2e/clients/shell") else {
        return;
    };
    with_server(|server, dir| {
        let output = run(&shell, server.thrift.port(), dir, QUOTA_COMMANDS);
        compare(QUOTA_ANSWERS, &[], &transcript(&output), "shell");
    });
}

/// The shell's output for these commands, with the server at `port` of this machine. Panics unless
/// the last command is `exit` and was reached.
pub(super) fn run(shell: &JavaProgram, port: u16, dir: &Path, commands: &str) -> String {
    run_as(shell, port, dir, None, commands)
}

/// [`run`], logged in with a token file.
pub(super) fn run_as(
    shell: &JavaProgram,
    port: u16,
    dir: &Path,
    token: Option<&Path>,
    commands: &str,
) -> String {
    let authentication = if token.is_some() { "kerberos" } else { "simple" };
    let site = format!(
        "<configuration>\
         <property><name>hbase.zookeeper.quorum</name><value>127.0.0.1</value></property>\
         <property><name>hbase.zookeeper.property.clientPort</name><value>{port}</value></property>\
         <property><name>hbase.security.authentication</name><value>{authentication}</value></property>\
         </configuration>"
    );
    std::fs::write(dir.join("hbase-site.xml"), site).expect("the folder is ours");
    let mut java = shell.java_with(dir);
    if let Some(token) = token {
        java.env("HADOOP_TOKEN_FILE_LOCATION", token);
    }
    let mut process = java
        .args(SMALL)
        .arg("org.jruby.JarBootstrapMain")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("java was found a moment ago");
    let mut input = process.stdin.take().expect("standard input is piped");
    input
        .write_all(commands.as_bytes())
        .expect("it reads its commands");
    drop(input);
    let output = process.wait_with_output().expect("the process was started here");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.trim_end().ends_with("> exit"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// The transcript of a session: `command -> line | line ...` for each command.
pub(super) fn transcript(output: &str) -> String {
    let mut transcript = String::new();
    let mut has_figures = false;
    for line in output.lines() {
        if let Some(command) = command(line) {
            has_figures = FIGURES.contains(&command);
            let end = if transcript.is_empty() { "" } else { "\n" };
            transcript.extend([end, command, " ->"]);
        } else if !transcript.is_empty() && is_answer(line) {
            let answer = masked(&without_message(line));
            let answer = if has_figures {
                without_numbers(&answer)
            } else {
                answer
            };
            transcript.extend([" | ", &answer]);
        }
    }
    transcript.push('\n');
    transcript
}

/// The text with `#` for each run of digits.
fn without_numbers(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars() {
        let shows = if character.is_ascii_digit() {
            '#'
        } else {
            character
        };
        if shows != '#' || !shown.ends_with('#') {
            shown.push(shows);
        }
    }
    shown
}

/// The command of a line that begins with the prompt: `hbase:007:0> list`.
fn command(line: &str) -> Option<&str> {
    let (prompt, command) = line.split_once("> ")?;
    (prompt.starts_with("hbase:") && prompt.ends_with(":0")).then_some(command)
}

/// Whether the line is part of the command's answer: not a duration, and not a place in Java code.
fn is_answer(line: &str) -> bool {
    let line = line.trim();
    !(line.is_empty()
        || line.starts_with("Took ")
        || line.starts_with("at ")
        || line.starts_with("For usage try")
        || line.starts_with("=> #<Java"))
}

/// An error without its message, which each server words in its own way: the class is compared.
fn without_message(line: &str) -> String {
    let error = line.strip_prefix("ERROR: ");
    match error.and_then(|error| error.split_once(": ")) {
        Some((class, _)) if class.contains('.') => format!("ERROR: {class}"),
        _ => line.to_owned(),
    }
}

/// The line with `#` for each time, start code, region name and port, `HOST` for the name of the
/// server, and without the blanks and dashes that line columns up.
fn masked(line: &str) -> String {
    let line = line.replace("localhost", "HOST").replace("127.0.0.1", "HOST");
    let mut masked = String::new();
    let mut rest = line.as_str();
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        if length == 0 {
            masked.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let word = &rest[..length];
        let is_port = (masked.ends_with("HOST:") || masked.ends_with("HOST,")) && is_number(word);
        masked.push_str(if is_port || is_unique(word) { "#" } else { word });
        rest = &rest[length..];
    }
    let words = masked
        .split_whitespace()
        .filter(|word| !word.chars().all(|c| c == '-'));
    words.map(without_time).collect::<Vec<_>>().join(" ")
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit())
}

/// Whether a word is a start code, a time in milliseconds, or the digest in a region's name.
fn is_unique(word: &str) -> bool {
    word.len() >= 12 && word.chars().all(|c| c.is_ascii_hexdigit())
}

/// `#` for a date or a time of day that is not long past: `2026-11-26T11:04:34.145,`.
fn without_time(word: &str) -> String {
    let is_of_time = |c: char| c.is_ascii_digit() || "-:.T".contains(c);
    let Some(begin) = word.find(|c: char| c.is_ascii_digit()) else {
        return word.to_owned();
    };
    let end = word[begin..]
        .find(|c| !is_of_time(c))
        .map_or(word.len(), |length| begin + length);
    let time = &word[begin..end];
    let is_date = time.starts_with("20") && time.matches('-').count() == 2;
    let is_time_of_day = time.len() == 8 && time.matches(':').count() == 2;
    if is_date || is_time_of_day {
        format!("{}#{}", &word[..begin], &word[end..])
    } else {
        word.to_owned()
    }
}
