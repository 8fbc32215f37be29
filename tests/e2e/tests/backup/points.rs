//! Continuous backup, and restores to points between backups.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use basalt_engine::{Engine, Scan};
use basalt_test_support::{Server, until};

use super::{SMALL, Writer, done, refused};

/// Restores to many random points.
const RESTORES: u64 = 50;

/// A server that ships to a directory.
fn shipping(dir: &Path, more: &[&str]) -> (Server, String) {
    let url = format!("file:{}/backups", dir.display());
    let setting = format!("backup.url=\"{url}\"");
    let settings = [&SMALL[..], &[&setting, "backup.interval_ms=5000"], more].concat();
    (Server::start(&dir.join("data"), &settings), url)
}

pub(super) fn lag(server: &Server) -> f64 {
    let text = server.http_get("/metrics");
    let line = text
        .lines()
        .find(|line| line.starts_with("basalt_backup_lag_seconds "));
    let value = line
        .and_then(|line| line.rsplit(' ').next())
        .expect("the metric is there");
    value.parse().expect("a number")
}

/// Points that can be restored: first and last time and position of each line.
fn spans(url: &str) -> Vec<[String; 4]> {
    let list = done(&["restore", "--list", "--from", url]);
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        [words[1], words[3], words[5], words[7]].map(str::to_owned)
    };
    list.lines().map(of_line).collect()
}

/// As [`spans`], from backups that have rows: the first one may be from before the table.
fn with_rows(url: &str) -> Vec<[String; 4]> {
    spans(url).into_iter().filter(|span| span[1] != "0").collect()
}

/// Rows of the numbered table of a directory, which must be all from 0 on. The engine itself reads it: a
/// server takes longer to start.
pub(super) fn rows(data: &Path) -> u64 {
    let engine = Engine::open(data).expect("the directory is a database");
    let table = engine.table("numbers").expect("the table is there");
    let mut count = 0;
    for row in table.scan(Scan::new()) {
        let row = row.expect("a row");
        assert_eq!(row.key(), format!("{count:012}").as_bytes(), "no row is missing");
        count += 1;
    }
    engine.close().expect("closed");
    count
}

/// Restores to a point; number of rows.
fn rows_at(url: &str, at: &str, data: &PathBuf) -> u64 {
    done(&[
        "restore",
        "--from",
        url,
        "--at",
        at,
        "--data-dir",
        &data.display().to_string(),
    ]);
    let count = rows(data);
    std::fs::remove_dir_all(data).expect("removed");
    count
}

/// Goal: with a URL set, the server is never far behind; after a kill, every position from the first backup
/// to the last edit can be restored, though the table splits all the time, and has exactly the rows up to
/// there: each position more is one row more, for there is one writer, whose rows have consecutive sequence
/// ids. Restores to times have what was acknowledged then, and nothing that was written later.
#[test]
fn every_point_is_a_prefix() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let (server, url) = shipping(dir.path(), &[]);
    let writer = Writer::start(&server);
    writer.wait_for(500);
    until("the log is shipped", || lag(&server) < 3.0);
    // Times, with the rows that were acknowledged before and after.
    let mut samples: Vec<(u64, String, u64)> = Vec::new();
    let mut sampled = Instant::now();
    until("there are many samples", || {
        if sampled.elapsed() >= Duration::from_millis(400) {
            sampled = Instant::now();
            let before = writer.acknowledged();
            let time = as_time(SystemTime::now());
            samples.push((before, time, writer.acknowledged()));
        }
        writer.acknowledged() > 4000 && samples.len() > 20
    });
    let acknowledged = writer.acknowledged();
    // Time of a step of the shipping, and the pause between two.
    until("the last rows are shipped", || {
        let all = spans(&url);
        let last = all.last().map_or(0, |span| span[3].parse().unwrap_or(0));
        last >= acknowledged
    });
    server.kill();
    drop(writer);

    let spans = with_rows(&url);
    assert!(!spans.is_empty(), "no backup is of a table with rows");
    let target = dir.path().join("restored");
    let number = |text: &String| text.parse::<u64>().expect("a position");
    let first = number(&spans[0][1]);
    let last = spans.iter().map(|span| number(&span[3])).max().expect("a span");
    // Rows are one for each position, from a position on that the first restore shows.
    let base = first - rows_at(&url, &first.to_string(), &target);
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..RESTORES {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let position = first + (seed >> 33) % (last - first + 1);
        let found = rows_at(&url, &position.to_string(), &target);
        assert_eq!(found, position - base, "position {position}");
    }
    assert!(
        refused(&[
            "restore",
            "--from",
            &url,
            "--at",
            &(last + 1000).to_string(),
            "--data-dir",
            "/nonexistent/x",
        ])
        .contains("--list")
    );

    // Times are text of equal length, which sorts as they do.
    let end = spans.iter().map(|span| &span[2]).max().expect("a span");
    samples.retain(|(_, time, _)| spans[0][0] < *time && time < end);
    assert!(samples.len() >= 6, "{} samples", samples.len());
    for (before, time, after) in samples.iter().step_by(samples.len() / 6) {
        let found = rows_at(&url, time, &target);
        // One write may have been on its way.
        assert!(
            (*before..=after + 1).contains(&found),
            "{time}: {found} of {before} to {after}"
        );
    }
    assert!(done(&["backups", "verify", "--at", &url]).contains(" 0 problems"));
}

/// RFC 3339 in UTC, by the shell: the standard library has no calendar.
pub(super) fn as_time(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let stamp = format!("@{}.{:03}", since.as_secs(), since.subsec_millis());
    let output = std::process::Command::new("date")
        .args(["-u", "-d", &stamp, "+%Y-%m-%dT%H:%M:%S.%3NZ"])
        .output()
        .expect("date is everywhere");
    super::text(&output.stdout).trim().to_owned()
}

/// Goal: a store that goes away and comes back loses nothing; a table that was made meanwhile is in the next
/// backup; a restart goes on.
#[test]
fn a_store_that_was_away_is_caught_up() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let (server, url) = shipping(dir.path(), &[]);
    let writer = Writer::start(&server);
    writer.wait_for(300);
    until("the log is shipped", || lag(&server) < 3.0);
    let (there, away) = (dir.path().join("backups"), dir.path().join("away"));
    std::fs::rename(&there, &away).expect("renamed");
    // A file in its place: nothing can be written below it.
    std::fs::write(&there, "").expect("written");
    until("the shipping fails", || {
        server.metric("basalt_backup_log_failures_total") > 0
    });
    writer.wait_for(writer.acknowledged() + 1500);
    std::fs::remove_file(&there).expect("removed");
    std::fs::rename(&away, &there).expect("renamed");
    until("it is caught up", || lag(&server) < 3.0);
    let acknowledged = writer.acknowledged();
    drop(writer);
    // At a clean stop the rest is shipped.
    server.stop();
    let target = dir.path().join("restored");
    let end = spans(&url)
        .iter()
        .map(|span| span[3].parse::<u64>().expect("a position"))
        .max();
    let found = rows_at(&url, &end.expect("a span").to_string(), &target);
    assert!(found >= acknowledged, "{acknowledged} {found}");

    let (server, url) = shipping(dir.path(), &[]);
    until("it goes on after a restart", || lag(&server) < 3.0);
    server.kill();
    let last = spans(&url);
    let last = last.last().expect("a span");
    assert!(rows_at(&url, &last[3], &target) >= acknowledged);
}

/// Goal: a log that waits for a store beyond its limit has the consequence that the setting says: writes are
/// refused until the store has it.
#[test]
fn a_full_log_refuses_writes_if_set_so() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let more = ["backup.when_log_full=\"refuse\"", "backup.max_log_bytes=67108864"];
    let (server, _) = shipping(dir.path(), &more);
    let writer = Writer::start(&server);
    writer.wait_for(300);
    until("the log is shipped", || lag(&server) < 3.0);
    let (there, away) = (dir.path().join("backups"), dir.path().join("away"));
    std::fs::rename(&there, &away).expect("renamed");
    std::fs::write(&there, "").expect("written");
    drop(writer);
    let table = Fill::new(&server);
    until("writes are refused", || {
        table.put_mebibytes(4);
        server.http_get("/readyz").contains("backup.when_log_full")
    });
    std::fs::remove_file(&there).expect("removed");
    std::fs::rename(&away, &there).expect("renamed");
    until("writes are accepted", || {
        !server.http_get("/readyz").contains("backup.when_log_full")
    });
    until("it is caught up", || lag(&server) < 3.0);
    assert!(table.put_mebibytes(1), "writes are accepted again");
    server.kill();
}

/// Writes much.
struct Fill {
    runtime: tokio::runtime::Runtime,
    client: basalt_client::Client,
}

impl Fill {
    fn new(server: &Server) -> Self {
        let runtime = super::runtime();
        let client = runtime.block_on(basalt_client::Client::connect(&server.thrift.to_string()));
        Self {
            client: client.expect("a connection"),
            runtime,
        }
    }

    /// Whether the writes were accepted.
    fn put_mebibytes(&self, count: usize) -> bool {
        let table = self.client.table("numbers").expect("a name");
        (0..count).all(|number| {
            let put = basalt_client::Put::new(format!("fill-{number}")).cell("f", "q", "v".repeat(1 << 20));
            self.runtime.block_on(table.put(put)).is_ok()
        })
    }
}
