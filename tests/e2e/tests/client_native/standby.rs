//! A client that knows both servers of a pair goes on when the standby takes the primary's place.

use basalt_test_support::{JavaProgram, Server, free_address, until};

use super::security::Commands;

/// A primary and a standby that has everything.
fn pair(dir: &tempfile::TempDir) -> (Server, Server) {
    let leader = Server::start(&dir.path().join("leader"), &["standby.sync=\"standby\""]);
    let follow = format!("standby.follow=\"{}\"", leader.http);
    let listen = format!("server.listen=\"{}\"", free_address());
    let http = format!("http.listen=\"{}\"", free_address());
    let standby = Server::start_as_set(&dir.path().join("standby"), &[&follow, &listen, &http]);
    until("the standby has everything", || {
        leader.metric("basalt_standby_alone") == 0
    });
    (leader, standby)
}

/// Goal: neither its connection nor its configuration changes: the primary is killed, the standby promoted, and the
/// same connection reads what was acknowledged, writes, and creates a table.
#[test]
fn a_client_goes_on_with_the_new_primary() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    for registry in ["zookeeper", "rpc"] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (leader, standby) = pair(&dir);
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
        let (status, text) = standby.http_post("/standby/promote", "{}");
        assert_eq!(status, 200, "{text}");
        assert_eq!(commands.ask_until("get t r", "f:q"), "r f:q=v");
        for request in ["put t s f:q w", "create u f", "put u r f:q x"] {
            assert_eq!(commands.ask(request), "done", "{registry}: {request}");
        }
        assert_eq!(commands.ask("get t s"), "s f:q=w");
        standby.stop();
    }
}
