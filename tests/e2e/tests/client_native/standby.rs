//! A client that knows both servers of a pair goes on when the standby takes the primary's place.

use std::time::{Duration, Instant};

use basalt_test_support::{JavaProgram, Server, free_address, until};

use super::security::Commands;

/// A primary and a standby that has everything.
fn pair(dir: &tempfile::TempDir, of_standby: &[&str]) -> (Server, Server) {
    let leader = Server::start(&dir.path().join("leader"), &["standby.sync=\"standby\""]);
    let follow = format!("standby.follow=\"{}\"", leader.http);
    let listen = format!("server.listen=\"{}\"", free_address());
    let http = format!("http.listen=\"{}\"", free_address());
    let settings = [&[follow.as_str(), &listen, &http], of_standby].concat();
    let standby = Server::start_as_set(&dir.path().join("standby"), &settings);
    until("the standby has everything", || {
        leader.metric("basalt_standby_alone") == 0
    });
    (leader, standby)
}

/// Goal: neither its connection nor its configuration changes: the primary is killed, the standby promoted,
/// and the same connection reads what was acknowledged, writes, and creates a table.
#[test]
fn a_client_goes_on_with_the_new_primary() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    for registry in ["zookeeper", "rpc"] {
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let (leader, standby) = pair(&dir, &[]);
        let site = dir.path().join("site");
        std::fs::create_dir(&site).expect("there is space");
        let (first, second) = (leader.thrift.to_string(), standby.thrift.port().to_string());
        let hosts = match registry {
            // Each host of the quorum has its port.
            "zookeeper" => format!("{first},{}", standby.thrift),
            _ => format!("{first},{}", standby.thrift.ip()),
        };
        let mut commands = Commands::start_at(&client, &site, None, [registry, &hosts, &second]);
        for request in ["create t f", "put t r f:q v"] {
            assert_eq!(commands.ask(request), "done", "{registry}: {request}");
        }
        leader.kill();
        promote(&standby);
        assert_eq!(commands.ask_until("get t r", "f:q"), "r f:q=v");
        for request in ["put t s f:q w", "create u f", "put u r f:q x"] {
            assert_eq!(commands.ask(request), "done", "{registry}: {request}");
        }
        assert_eq!(commands.ask("get t s"), "s f:q=w");
        standby.stop();
    }
}

/// Goal: a get with `Consistency.TIMELINE` is answered by the standby while the primary is gone, within
/// seconds and marked as stale, of a client that knew the primary and of one that comes later; and by the
/// primary otherwise. A strong get is not, until the standby is the primary.
#[test]
fn a_timeline_get_goes_to_the_standby() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    for registry in ["zookeeper", "rpc"] {
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let (leader, standby) = pair(&dir, &["standby.reads=\"stale\""]);
        let site = dir.path().join("site");
        std::fs::create_dir(&site).expect("there is space");
        let (first, second) = (leader.thrift.to_string(), standby.thrift.port().to_string());
        let hosts = match registry {
            "zookeeper" => format!("{first},{}", standby.thrift),
            _ => format!("{first},{}", standby.thrift.ip()),
        };
        let start = || Commands::start_at(&client, &site, None, [registry, &hosts, &second]);
        let mut commands = start();
        for request in ["replicate t f", "create plain f", "put t r f:q v"] {
            assert_eq!(commands.ask(request), "done", "{registry}: {request}");
        }
        // A client asks a replica, too, if the primary has not answered within 10 ms.
        commands.ask_until("timeline t r", "current r f:q=v");
        assert_eq!(commands.ask("timeline plain r"), "current nothing");
        // The standby has everything that was acknowledged.
        leader.kill();
        let killed = Instant::now();
        for _ in 0..3 {
            assert_eq!(commands.ask("timeline t r"), "stale r f:q=v", "{registry}");
        }
        let took = killed.elapsed();
        let mut later = start();
        let begun = Instant::now();
        assert_eq!(later.ask("timeline t r"), "stale r f:q=v", "{registry}");
        println!(
            "{registry}: three stale answers {took:?} after the kill, one {:?} after a start",
            begun.elapsed()
        );
        assert!(took < Duration::from_secs(20) && begun.elapsed() < Duration::from_secs(20));
        let strong = std::thread::spawn(move || later.ask("get t r"));
        assert_eq!(commands.ask("timeline t r"), "stale r f:q=v");
        if strong.is_finished() {
            let answer = strong.join().expect("it does not panic");
            assert!(!answer.contains("f:q"), "{answer}");
            promote(&standby);
        } else {
            promote(&standby);
            strong.join().expect("it does not panic");
        }
        assert_eq!(commands.ask_until("get t r", "f:q"), "r f:q=v");
        commands.ask_until("timeline t r", "current r f:q=v");
        standby.stop();
    }
}

fn promote(standby: &Server) {
    let (status, text) = standby.http_post("/standby/promote", "{}");
    assert_eq!(status, 200, "{text}");
}
