//! Servers that cannot be what they are told to be, and commands that cannot be done.

use std::process::Command;

use basalt_test_support::binary;

use super::*;

fn try_follow(dir: &TempDir, leader: &Node) -> String {
    let follow = format!("standby.follow=\"{}\"", leader.http);
    match Server::try_start(&dir.path().join("data"), &[&follow]) {
        Ok(_) => panic!("it started"),
        Err(log) => log,
    }
}

/// Goal: data of a primary is never replaced, and each refusal says what to do.
#[test]
fn data_of_a_primary_is_not_replaced() {
    let leader = Node::start(&[]);
    leader.create("t");
    let other = basalt_test_support::tempdir().expect("a temporary folder");
    Server::start(&other.path().join("data"), &[]).stop();
    let log = try_follow(&other, &leader);
    assert!(
        log.contains("has a database that is no standby's: move it away"),
        "{log}"
    );

    let standby = Node::follow(&leader, &[]);
    standby.promote();
    let mut leader = leader;
    leader.kill();
    let log = try_follow(&leader.dir, &standby);
    assert!(log.contains("may have writes that the primary lacks"), "{log}");
}

/// Goal: a standby of another cluster, a promotion of what is no standby, and a name that cannot be are
/// refused.
#[test]
fn impossible_pairs_are_refused() {
    let leader = Node::start(&[]);
    let (status, text) = leader.server().http_post("/standby/promote", "{}");
    assert_eq!(status, 409);
    assert!(text.contains("is the primary of term 0 already"), "{text}");

    let (status, text) = leader.server().http_post(
        "/standby/copy",
        &json!({ "name": "a b", "url": "http://x" }).to_string(),
    );
    assert_eq!(status, 400);
    assert!(text.contains("1 to 64 letters"), "{text}");

    let question = json!({
        "name": "s", "url": "http://x", "cluster_id": "another", "term": 0,
        "position": 1, "turn": 0, "security": ""
    });
    let (status, text) = leader.server().http_post("/standby/log", &question.to_string());
    assert_eq!(status, 409);
    assert!(text.contains("follows the cluster another"), "{text}");

    let (status, text) = leader.server().http_post("/standby/fence", "{\"term\": 1}");
    assert_eq!(status, 400);
    assert!(text.contains("missing field"), "{text}");
    assert_eq!(leader.status()["role"], json!("primary"));
}

/// Goal: the commands of the shell say what there is.
#[test]
fn commands_show_and_forget_standbys() {
    let leader = Node::start(&[]);
    leader.create("t");
    let mut standby = Node::follow(&leader, &[]);
    await_standby(&leader, &standby);
    let basalt = |node: &Node, arguments: &[&str]| {
        let output = Command::new(binary("basalt"))
            .args(arguments)
            .args(["--http", &node.http.to_string()])
            .output()
            .expect("the binary was built");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (
            output.status.success(),
            text + &String::from_utf8_lossy(&output.stderr),
        )
    };
    until("the standby is connected", || {
        leader.status()["standbys"][0]["connected"] == json!(true)
    });
    let (_, shown) = basalt(&leader, &["standby", "status"]);
    let name = format!("of-{}", leader.http.port());
    assert!(
        shown.contains(&format!("standby {name} (http://{}): connected", standby.http)),
        "{shown}"
    );
    let (_, shown) = basalt(&standby, &["standby", "status"]);
    assert!(shown.starts_with("standby of term 0"), "{shown}");
    assert!(shown.contains(&format!("follows {}", leader.main)), "{shown}");

    standby.kill();
    assert_eq!(
        basalt(&leader, &["standby", "remove", &name]),
        (true, format!("no log is kept for standby {name} any more\n"))
    );
    let (ok, text) = basalt(&leader, &["standby", "remove", &name]);
    assert!(!ok && text.contains("there is no standby"), "{text}");

    // A standby that was forgotten gets another copy.
    leader.fill("t", 0..10, "v");
    standby.restart();
    await_standby(&leader, &standby);
    let (ok, text) = basalt(&standby, &["promote"]);
    assert!(
        ok && text.starts_with("primary of term 1 since position "),
        "{text}"
    );
    assert!(text.contains("the primary before takes no more calls"), "{text}");
    assert_eq!(standby.cells("t").len(), 10);
    let (ok, text) = basalt(&standby, &["promote"]);
    assert!(!ok && text.contains("is the primary of term 1 already"), "{text}");
}

/// Goal: a standby whose primary is away says so, and follows when it is back.
#[test]
fn a_primary_that_is_away_is_awaited() {
    let mut leader = Node::start(&[]);
    leader.create("t");
    let standby = Node::follow(&leader, &[]);
    await_standby(&leader, &standby);
    leader.kill();
    until("the standby says that its primary is away", || {
        standby.status()["problem"]
            .as_str()
            .is_some_and(|problem| problem.contains("no answer from"))
    });
    let ready = standby.server().http_get("/readyz");
    assert!(ready.contains("no answer from"), "{ready}");
    leader.restart();
    leader.fill("t", 0..10, "v");
    await_standby(&leader, &standby);
    assert_eq!(standby.status()["problem"], json!(""));
}
