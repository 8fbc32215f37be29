use std::fs;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use super::*;

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_700_000_000_123)
}

fn text(event: &Event<'_>) -> String {
    String::from_utf8(line(event, now())).unwrap()
}

fn denied(user: &str) -> Event<'_> {
    Event {
        event: Kind::Denied,
        user: Some(user),
        ..Event::default()
    }
}

/// The values of a field in all lines of a file.
fn values(path: &Path, field: &str) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| line[field].clone()).collect()
}

#[test]
fn a_line_has_the_fields_that_are_known() {
    let event = Event {
        event: Kind::Denied,
        address: Some(([10, 0, 0, 1], 4711).into()),
        protocol: "native",
        tls: Some(true),
        user: Some("bob"),
        real_user: Some("gate"),
        authentication: "token",
        client: Some("2.6.4"),
        request: Some("scan"),
        action: "READ",
        namespace: None,
        table: Some("n:t"),
        family: Some(b"f\x00"),
        subject: None,
        reason: Some("Insufficient permissions"),
    };
    let expected = concat!(
        r#"{"time":"2023-11-14T22:13:20.123Z","event":"denied","tls":true,"address":"10.0.0.1:4711","protocol":"native","#,
        r#""user":"bob","real_user":"gate","authentication":"token","client":"2.6.4","request":"scan","action":"READ","#,
        r#""table":"n:t","family":"f\\x00","reason":"Insufficient permissions"}"#,
        "\n"
    );
    assert_eq!(text(&event), expected);
    let least = text(&Event::default());
    assert_eq!(
        least,
        "{\"time\":\"2023-11-14T22:13:20.123Z\",\"event\":\"connection\"}\n"
    );
}

#[test]
fn text_of_clients_is_cut_and_cannot_forge_lines() {
    let forged = "bob\"}\n{\"event\":\"allowed\",\"user\":\"ada\u{1b}[2J\u{202e}\u{85}";
    let line = text(&denied(forged));
    assert_eq!(line.matches('\n').count(), 1);
    assert!(
        line.chars()
            .all(|letter| letter == '\n' || letter.is_ascii_graphic() || letter == ' '),
        "{line}"
    );
    let parsed: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(parsed["event"], "denied");
    let long = "\u{8868}".repeat(TEXT_BYTES_MAX);
    let parsed: Value = serde_json::from_str(&text(&denied(&long))).unwrap();
    let user = parsed["user"].as_str().unwrap();
    assert!(
        user.ends_with("\u{8868}...") && user.len() == TEXT_BYTES_MAX / 3 * 3 + 3,
        "{user}"
    );
    let bytes = vec![0; 1 << 20];
    let event = Event {
        family: Some(&bytes),
        ..Event::default()
    };
    assert!(text(&event).len() < 1000);
}

#[test]
fn events_are_in_the_file_after_a_flush_and_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let log = AuditLog::open(&path, 100).unwrap();
    log.write(&denied("ada"), now());
    log.flush().unwrap();
    assert_eq!(values(&path, "user"), ["ada"]);
    assert_eq!(
        log.status(),
        Status {
            written: 1,
            dropped: 0,
            error: None
        }
    );
    log.write(&denied("bob"), now());
    drop(log);
    let log = AuditLog::open(&path, 100).unwrap();
    log.write(&denied("eve"), now());
    drop(log);
    assert_eq!(values(&path, "user"), ["ada", "bob", "eve"]);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_rotation_begins_a_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let [path, rotated] = ["audit.log", "audit.log.1"].map(|name| dir.path().join(name));
    let log = AuditLog::open(&path, 100).unwrap();
    log.write(&denied("ada"), now());
    fs::rename(&path, &rotated).unwrap_or_else(|error| panic!("{error}"));
    log.reopen().unwrap();
    log.write(&denied("bob"), now());
    log.flush().unwrap();
    assert_eq!(values(&rotated, "user"), ["ada"]);
    assert_eq!(values(&path, "user"), ["bob"]);
    // Where no file can be opened, the log goes on with the one it has.
    fs::rename(&path, &rotated).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(log.reopen().is_err());
    log.write(&denied("eve"), now());
    log.flush().unwrap();
    assert_eq!(values(&rotated, "user"), ["bob", "eve"]);
}

/// Goal: the queue is bounded and no event is lost silently. The file is a pipe without a reader:
/// the thread blocks when it is full.
#[test]
fn a_full_queue_drops_and_says_so() {
    const EVENTS: u64 = 20_000;
    let (mut reader, pipe) = std::io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let log = AuditLog::open(Path::new(&path), 16).unwrap();
    drop(pipe);
    for _ in 0..EVENTS {
        log.write(&denied("ada"), now());
    }
    let dropped = log.status().dropped;
    assert!(dropped > 0);
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    });
    log.flush().unwrap();
    assert_eq!(
        log.status(),
        Status {
            written: EVENTS - dropped,
            dropped,
            error: None
        }
    );
    drop(log);
    let lines: Vec<Value> = reading
        .join()
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let reports: Vec<u64> = lines.iter().filter_map(|line| line["count"].as_u64()).collect();
    assert_eq!(reports.iter().sum::<u64>(), dropped);
    assert_eq!(lines.len() - reports.len(), (EVENTS - dropped) as usize);
}

/// Goal: a disk that takes nothing costs events, which are counted, and neither memory nor the
/// server.
#[test]
fn a_full_disk_is_counted_and_overcome() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let log = AuditLog::open(&path, 100).unwrap();
    for _ in 0..3 {
        log.write(&denied("ada"), now());
    }
    assert!(log.flush().is_err());
    let status = log.status();
    assert_eq!((status.written, status.dropped), (0, 3));
    assert!(status.error.is_some());
    fs::remove_file(&path).unwrap();
    log.reopen()
        .unwrap_or_else(|error| assert_eq!(error.raw_os_error(), Some(28), "{error}"));
    log.write(&denied("bob"), now());
    log.flush().unwrap();
    // The report precedes the event if the thread was idle in between.
    let events = values(&path, "event");
    assert!(
        events == ["denied", "dropped"] || events == ["dropped", "denied"],
        "{events:?}"
    );
    let counts = values(&path, "count");
    assert_eq!(counts.iter().filter_map(Value::as_u64).sum::<u64>(), 3);
    assert_eq!(
        log.status(),
        Status {
            written: 1,
            dropped: 3,
            error: None
        }
    );
}
