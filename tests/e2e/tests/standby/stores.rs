//! Standbys that follow the backups of a primary, which is asked for nothing: copies, the shipped log, gaps
//! of it, restarts of both sides, promotions beside a living and a dead primary, refusals.

use std::time::{Duration, SystemTime};

use basalt_client::Client;
use basalt_client::admin::Admin;

use super::histories::{Writer, rows};
use super::*;

/// A primary that ships to a directory of its own, which outlives it.
struct Shipping {
    node: Node,
    url: String,
    /// Has the backups, and the key.
    dir: TempDir,
}

impl Shipping {
    fn start(settings: &[&str]) -> Self {
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let url = format!("file:{}/backups", dir.path().display());
        let ship = format!("backup.url=\"{url}\"");
        let settings: Vec<&str> = SMALL
            .into_iter()
            .chain([ship.as_str()])
            .chain(settings.iter().copied())
            .collect();
        let node = Node::start(&settings);
        let backups = format!("{}/backups/catalogues", dir.path().display());
        until("there is a backup", || {
            std::fs::read_dir(&backups).is_ok_and(|mut entries| entries.next().is_some())
        });
        Self { node, url, dir }
    }

    /// A standby of the backups.
    fn follow(&self, settings: &[&str]) -> Node {
        let follow = format!("standby.follow=\"{}\"", self.url);
        let (listen, http) = (free_address(), free_address());
        let listen = format!("server.listen=\"{listen}\"");
        let http = format!("http.listen=\"{http}\"");
        let own = [follow.as_str(), listen.as_str(), http.as_str()];
        let settings: Vec<&str> = own.into_iter().chain(settings.iter().copied()).collect();
        Node::start(&settings)
    }
}

/// Why it does not follow.
fn problem(node: &Node) -> String {
    node.try_status()
        .and_then(|status| status["problem"].as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn promote(node: &Node) -> String {
    let output = std::process::Command::new(basalt_test_support::binary("basalt"))
        .args(["promote", "--http", &node.http.to_string()])
        .output()
        .expect("the binary was built");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Goal: a standby of encrypted backups has what was there before, and what is written, created and split
/// later, over restarts of itself and of the primary, and over a change that the shipped log cannot show; it
/// says how far behind it is; and it takes the place of a primary that is gone.
#[test]
fn a_standby_of_backups_takes_the_place_of_a_dead_primary() {
    let keys = basalt_test_support::tempdir().expect("a temporary folder");
    let key = keys.path().join("key");
    std::fs::write(&key, "5a".repeat(32)).expect("there is space");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
    let key = format!("backup.key_file=\"{}\"", key.display());
    let mut leader = Shipping::start(&[&key]);
    leader.node.create("before");
    leader.node.fill("before", 0..2_000, &"v".repeat(300));
    let settings = [SMALL[0], SMALL[1], key.as_str()];
    let mut standby = leader.follow(&settings);
    leader.node.create("t");
    leader.node.fill("t", 0..500, "first");
    leader.node.fill("t", 100..200, "second");
    leader.node.add("t", "counter", 5);
    await_standby(&leader.node, &standby);
    let status = standby.status();
    assert_eq!(status["store"], json!(leader.url), "{status}");
    assert_eq!(
        status["leader"]["port"],
        json!(leader.node.main.port()),
        "{status}"
    );
    assert_eq!(
        leader.node.status()["standbys"],
        json!([]),
        "the primary knows nothing of it"
    );
    let ready = standby.server().http_get("/readyz");
    assert!(ready.contains(&format!("by way of {}, ", leader.url)), "{ready}");
    let metrics = standby.server().http_get("/metrics");
    assert!(metrics.contains("\nbasalt_standby_lag_seconds "), "{metrics}");

    // It goes on where it was.
    standby.kill();
    leader.node.fill("t", 500..900, "while the standby was away");
    leader.node.create("u");
    standby.restart();
    leader.node.fill("u", 0..10, "v");
    await_standby(&leader.node, &standby);

    // A clone of a snapshot has files that no log has.
    leader.node.run(async {
        let client = Client::connect(&leader.node.main.to_string()).await?;
        let admin = Admin::new(&client);
        admin.snapshot("t", "s", true, 0).await?;
        admin.clone_snapshot("s", "c").await
    });
    leader.node.fill("c", 900..910, "in the clone");
    await_standby(&leader.node, &standby);

    // A primary that has started again has another log.
    leader.node.kill();
    leader.node.restart();
    leader.node.fill("c", 910..920, "after a restart");
    await_standby(&leader.node, &standby);
    assert_eq!(problem(&standby), "");

    let tables = ["before", "t", "u", "c"];
    let before: Vec<_> = tables.iter().map(|table| leader.node.cells(table)).collect();
    leader.node.kill();
    let text = promote(&standby);
    assert!(text.contains("backups do not fence it: stop it"), "{text}");
    assert!(text.contains("were not shipped, and are lost"), "{text}");
    let after: Vec<_> = tables.iter().map(|table| standby.cells(table)).collect();
    assert_eq!(after, before);
    standby.fill("t", 0..10, "at the new primary");
    standby.add("t", "counter", 1);

    // The new primary fences the old one when that is back.
    leader.node.restart();
    until("the primary before is fenced", || {
        leader.node.status()["role"] == json!("fenced")
    });
    drop(leader.dir);
}

/// Goal: beside a living primary nothing is lost: it is fenced, and ships the rest.
#[test]
fn a_living_primary_is_fenced_and_ships_the_rest() {
    let leader = Shipping::start(&[]);
    leader.node.create("t");
    let standby = leader.follow(&SMALL);
    let writer = Writer::start(leader.node.main, 0);
    writer.await_writes(300);
    let promoted = standby.promote();
    assert_eq!(promoted["fenced"], json!(true));
    let acknowledged = writer.end();
    let found = rows(&standby);
    assert!(
        found == acknowledged || found == acknowledged + 1,
        "{found} rows, {acknowledged} acknowledged"
    );
    assert_eq!(leader.node.status()["role"], json!("fenced"));
}

/// Goal: of a primary that is killed while it writes, the next one has a prefix, with everything that was
/// acknowledged before the lag that the promotion states.
#[test]
fn the_loss_is_the_lag_that_the_promotion_states() {
    let mut leader = Shipping::start(&[]);
    leader.node.create("t");
    let standby = leader.follow(&SMALL);
    let writer = Writer::start(leader.node.main, 0);
    let mut samples = Vec::new();
    until("there are many samples", || {
        samples.push((SystemTime::now(), writer.acknowledged()));
        let first = samples[0].0.elapsed().unwrap_or_default();
        first > Duration::from_secs(4) && writer.acknowledged() > 500
    });
    leader.node.kill();
    let acknowledged = writer.end();
    let asked = SystemTime::now();
    let promoted = standby.promote();
    assert_eq!(promoted["fenced"], json!(false));
    assert_eq!(promoted["problem"], json!(""));
    let lag = promoted["lag_ms"].as_u64().expect("a number");
    let covered = asked - Duration::from_millis(lag);
    let found = rows(&standby);
    let due = samples.iter().rev().find(|(time, _)| *time <= covered);
    let due = due.map_or(0, |(_, acknowledged)| *acknowledged);
    println!("{acknowledged} acknowledged, {due} before the lag of {lag} ms, {found} found");
    assert!((due..=acknowledged + 1).contains(&found));
    assert!(due > 0, "the lag is that of seconds: {lag} ms");
}

/// Goal: what cannot be followed is refused, and the text says why.
#[test]
fn backups_that_cannot_be_followed_are_refused() {
    let leader = Shipping::start(&[]);
    let try_follow =
        |dir: &TempDir, settings: &[&str]| match Server::try_start(&dir.path().join("data"), settings) {
            Ok(_) => panic!("it started"),
            Err(log) => log,
        };
    let empty = basalt_test_support::tempdir().expect("a temporary folder");
    let nothing = format!("standby.follow=\"file:{}\"", leader.dir.path().display());
    let log = try_follow(&empty, &[&nothing]);
    assert!(
        log.contains("has no backups: basalt-backup.json is missing"),
        "{log}"
    );

    let key = empty.path().join("key");
    std::fs::write(&key, "5a".repeat(32)).expect("there is space");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
    let follow = format!("standby.follow=\"{}\"", leader.url);
    let key = format!("backup.key_file=\"{}\"", key.display());
    let log = try_follow(&empty, &[&follow, &key]);
    assert!(log.contains("are not encrypted: leave the key file out"), "{log}");

    let log = try_follow(&empty, &[&follow, "standby.name=\"a\""]);
    assert!(
        log.contains("standby.name") && log.contains("the primary does not know such a standby"),
        "{log}"
    );

    let mut standby = leader.follow(&[]);
    standby.stop();
    let other = Shipping::start(&[]);
    let follow = format!("standby.follow=\"{}\"", other.url);
    let log = try_follow(&standby.dir, &[&follow]);
    assert!(log.contains("has backups of the cluster"), "{log}");
    let log = try_follow(&standby.dir, &[]);
    assert!(
        log.contains("this standby follows backups: set standby.follow"),
        "{log}"
    );
}
