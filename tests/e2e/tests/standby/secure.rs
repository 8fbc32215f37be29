//! A pair of servers with users: both log in at each other, inside TLS, and users follow.

use std::path::{Path, PathBuf};
use std::process::Command;

use basalt_test_support::{administer, binary};

use super::*;

/// A data directory with a certificate and a superuser; returns the file with the superuser's token.
fn secured(dir: &TempDir) -> PathBuf {
    let data = dir.path().join("data");
    administer(
        &data,
        &["certificate", "create", "--name", "127.0.0.1,localhost"],
        "",
    );
    administer(&data, &["user", "create", "ada", "--superuser"], "open sesame\n");
    let token = dir.path().join("ada.token");
    let text = administer(&data, &["token", "create", "ada", "--text"], "");
    std::fs::write(&token, text).expect("there is space");
    token
}

/// Runs a command about standbys at a server, with the token of a superuser.
fn basalt(node: &Node, token: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(binary("basalt"))
        .args(arguments)
        .args(["--http", &node.http.to_string()])
        .arg("--token")
        .arg(token)
        .arg("--ca")
        .arg(node.data().join("security/ca.crt"))
        .output()
        .expect("the binary was built");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

/// Goal: a standby logs in with a token, gets users, rights and the certificate, takes over a user that is
/// created later, and is promoted. Without the token it gets nothing.
#[test]
fn a_standby_with_users_follows_inside_tls() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let token = secured(&dir);
    let credentials = [
        format!("standby.token_file=\"{}\"", token.display()),
        format!(
            "standby.ca=\"{}\"",
            dir.path().join("data/security/ca.crt").display()
        ),
    ];
    let settings: Vec<&str> = credentials.iter().map(String::as_str).collect();
    let leader = Node::start_in(dir, &settings);

    let follow = format!("standby.follow=\"https://{}\"", leader.http);
    let empty = basalt_test_support::tempdir().expect("a temporary folder");
    let stranger = Server::try_start(&empty.path().join("data"), &[&follow, settings[1]]);
    let log = stranger.map(drop).expect_err("it has no login");
    assert!(log.contains("answers 401"), "{log}");

    let standby = Node::follow_as(&leader, "s", "https", &settings);
    until("the standby is connected", || {
        basalt(&leader, &token, &["standby", "status"]).is_ok_and(|shown| shown.contains(": connected,"))
    });
    administer(&leader.data(), &["user", "create", "bob"], "swordfish\n");
    let users = |node: &Node| std::fs::read_to_string(node.data().join("security/users.json"));
    until("the standby has the new user", || {
        users(&standby).is_ok_and(|text| text == users(&leader).expect("it is there"))
    });
    let refused = basalt(&standby, Path::new("/dev/null"), &["promote"]);
    assert!(refused.is_err(), "{refused:?}");
    let promoted = basalt(&standby, &token, &["promote"]).expect("a promotion");
    assert!(
        promoted.contains("the primary before takes no more calls"),
        "{promoted}"
    );
    let status = basalt(&leader, &token, &["standby", "status"]).expect("a status");
    assert!(status.starts_with("fenced of term 1"), "{status}");
}
