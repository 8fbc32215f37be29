//! Continuous backup to a store that is slow, refuses, breaks off half way, answers with old objects and
//! lists late, with restores meanwhile, and a standby that follows it.
//!
//! A row more is a position more, so the model is a number: a restore to a position has exactly the rows up
//! to it, and one of the newest has a prefix. What goes wrong follows from a seed; `BACKUP_SEEDS=20` sets how
//! many there are, from `BACKUP_SEED` on.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use basalt_test_support::objects::{Faults, ObjectServer};
use basalt_test_support::{Server, binary, serve, until};
use serde_json::Value;

use super::points::{as_time, lag, rows};
use super::{SMALL, Writer, text};

/// Restores of a seed, of the newest and to a position each.
const ROUNDS: u64 = 5;

/// Begins the names of pieces of the log: their segment in hexadecimal digits.
const PIECES: &str = "/0000";

/// The faults that are injected while rows are written and restored.
const FAULTS: Faults = Faults {
    slow: 200,
    refused: 100,
    cut: 60,
    old: 300,
    lag: Duration::from_secs(2),
};

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

/// A store, and programs that find it.
struct Stored {
    store: ObjectServer,
    dir: tempfile::TempDir,
}

impl Stored {
    const URL: &str = "s3://bucket/a/b";

    fn start(&self, name: &str, settings: &[&str]) -> Server {
        let data = self.dir.path().join(name);
        let mut command = serve(&binary("basalt"), &data, &[&SMALL[..], settings].concat());
        command.envs(self.store.variables());
        Server::run_command(command).expect("the server starts")
    }

    /// Runs a command that must succeed; its standard output.
    fn done(&self, words: &[&str]) -> String {
        let mut command = super::basalt(words);
        let output = command.envs(self.store.variables()).output().expect("started");
        let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{words:?}: {shown}");
        text(&output.stdout)
    }

    /// Rows of a restore to a position, or of the newest.
    fn restored(&self, at: Option<u64>) -> u64 {
        let data: PathBuf = self.dir.path().join("restored");
        let (target, at) = (data.display().to_string(), at.map(|at| at.to_string()));
        let mut words = vec!["restore", "--from", Self::URL, "--data-dir", &target];
        if let Some(at) = &at {
            words.extend(["--at", at]);
        }
        self.done(&words);
        let count = rows(&data);
        std::fs::remove_dir_all(&data).expect("removed");
        count
    }

    /// First and last position of backups with rows, and of the log behind each.
    fn spans(&self) -> Vec<(u64, u64)> {
        let list = self.done(&["restore", "--list", "--from", Self::URL]);
        let spans = list.lines().map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |word: usize| words[word].parse::<u64>().expect("a position");
            (number(3), number(7))
        });
        spans.filter(|(from, _)| *from > 0).collect()
    }
}

/// Goal: whatever the store does, each restore has exactly the rows up to its position, the newest one a
/// prefix, and a standby of the store becomes a primary with a prefix; once the store is well, nothing is
/// missing.
#[test]
fn a_faulty_store_loses_nothing() {
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let first: u64 = number("BACKUP_SEED", 1);
    for seed in first..first + number("BACKUP_SEEDS", 1) {
        println!("seed {seed}");
        of_seed(seed);
    }
}

fn of_seed(seed: u64) {
    let stored = Stored {
        store: ObjectServer::start(seed).expect("a port"),
        dir: basalt_test_support::tempdir().expect("a temporary folder"),
    };
    let url = format!("backup.url=\"{}\"", Stored::URL);
    let server = stored.start("leader", &[&url, "backup.interval_ms=4000"]);
    let writer = Writer::start(&server);
    writer.wait_for(300);
    until("the log is shipped", || lag(&server) < 3.0);
    let follow = format!("standby.follow=\"{}\"", Stored::URL);
    let standby = stored.start("standby", &[&follow]);
    until("a backup has rows", || !stored.spans().is_empty());
    let first = stored.spans()[0].0;
    let base = first - stored.restored(Some(first));

    stored.store.set_faults(FAULTS);
    let mut random = Random(seed);
    for _ in 0..ROUNDS {
        writer.wait_for(writer.acknowledged() + random.below(500));
        let newest = stored.restored(None);
        assert!(newest <= writer.acknowledged() + 1, "{newest} rows were restored");
        let spans = stored.spans();
        let (from, to) = spans[usize::try_from(random.below(spans.len() as u64)).expect("few")];
        let position = from + random.below(to - from + 1);
        assert_eq!(
            stored.restored(Some(position)),
            position - base,
            "seed {seed}, position {position}"
        );
    }
    assert!(stored.store.failed() > 20, "the store has failed");

    stored.store.set_faults(Faults::default());
    let acknowledged = writer.acknowledged();
    until("the log is shipped again", || lag(&server) < 3.0);
    drop(writer);
    // A clean stop ships the rest.
    server.stop();
    // A listing may be late for objects that were written before the faults ended.
    until("listings show everything", || {
        stored.spans().iter().any(|(_, to)| *to >= base + acknowledged)
    });
    let found = stored.restored(None);
    assert!(found >= acknowledged, "{acknowledged} {found}");
    assert!(
        stored
            .done(&["backups", "verify", "--at", Stored::URL])
            .contains(" 0 problems")
    );
    of_standby(&standby, found);
    standby.kill();
    assert_eq!(rows(&stored.dir.path().join("standby")), found, "seed {seed}");
}

/// Goal: of a primary that dies when it has shipped the first of several pieces, the store promises no more
/// than it has.
#[test]
fn the_first_of_several_pieces_promises_no_more_than_it_has() {
    let stored = Stored {
        store: ObjectServer::start(1).expect("a port"),
        dir: basalt_test_support::tempdir().expect("a temporary folder"),
    };
    let url = format!("backup.url=\"{}\"", Stored::URL);
    let server = stored.start("leader", &[&url]);
    let writer = Writer::start(&server);
    writer.wait_for(300);
    until("the log is shipped", || lag(&server) < 3.0);

    // Several segments wait for the store.
    stored.store.limit(PIECES, 0);
    writer.wait_for(writer.acknowledged() + 4000);
    drop(writer);
    let written = as_time(SystemTime::now());
    stored.store.limit(PIECES, 1);
    until("one piece is shipped", || stored.store.left() == Some(0));
    server.kill();
    stored.store.end_limit();
    let list = stored.done(&["restore", "--list", "--from", Stored::URL]);
    let end = list
        .lines()
        .last()
        .and_then(|line| line.split_whitespace().nth(5));
    let end = end.expect("a time");
    assert!(
        end < written.as_str(),
        "all rows are from before {written}:\n{list}"
    );
}

/// Waits until the standby has everything, and makes it the primary.
fn of_standby(standby: &Server, rows: u64) {
    let status = || serde_json::from_str::<Value>(&standby.http_get("/standby/status")).unwrap_or_default();
    until("the standby is one", || status()["role"] == "standby");
    let (code, text) = standby.http_post("/standby/promote", "{}");
    assert_eq!(code, 200, "{text}");
    println!("{rows} rows: {text}");
}
