//! `basalt move` to a real HBase, and back, while a client writes.

use basalt_client::native::{BASE_ZNODE, Cluster, ClusterOptions, Registry};
use basalt_client::{FamilySchema, TableSchema};
use tokio::runtime::Runtime;

use basalt_test_support::until;

use crate::checker::Checker;
use crate::rig::Rig;

/// Creates table `t` in Basalt, with two regions and no scope.
fn create(basalt: Registry) {
    let runtime = Runtime::new().expect("a runtime");
    let created = runtime.block_on(async {
        let schema = TableSchema::new("t")?
            .family(FamilySchema::new("f").versions(3))
            .family(FamilySchema::new("g"));
        let cluster = Cluster::new(ClusterOptions::new(basalt));
        cluster
            .create_table_split(schema, vec![b"row-00001000".to_vec()])
            .await
    });
    created.expect("a table");
}

/// Check 30: the steps of a live move under a checking client, and the way back. No acknowledged write is
/// missing; the read only time is printed.
#[test]
fn check_30_a_table_moves_to_hbase_and_back_while_it_is_written_to() {
    let Some(mut rig) = Rig::start(&[], &[]) else {
        return;
    };
    let zookeeper = rig.hbase.zookeeper_port().expect("it runs");
    let basalt = Registry::bootstrap(&rig.address.to_string()).expect("an address");
    let hbase = Registry::zookeeper("127.0.0.1", zookeeper, BASE_ZNODE).expect("an address");
    create(basalt.clone());
    rig.steps.run("variety b t");
    rig.steps.run("fill b t 0 2000 100");
    let checker = Checker::start("t", vec![basalt, hbase]);

    let (from, http) = (rig.address.to_string(), rig.server().http.to_string());
    let state = rig.folder("move.json");
    let step = |options: &[&str]| {
        let places = ["move", "t", "--from", &from, "--http", &http, "--state", &state];
        let printed = Rig::basalt(&[&places, options].concat());
        let seconds = printed.lines().find(|line| line.starts_with("read only for "));
        println!("{}", seconds.unwrap_or_default());
        printed
    };
    let to = format!("127.0.0.1:{zookeeper}:{BASE_ZNODE}");
    step(&["--to", &to, "--until", "copy"]);
    step(&["--undo"]);
    std::fs::remove_file(&state).expect("it was there");
    let ready = step(&["--to", &to]);
    assert!(ready.contains("equal: "), "{ready}");

    step(&["--switch"]);
    checker.check(1);
    checker.go_to(1);
    let before = checker.writes();
    until("writes go on in HBase", || checker.writes() > before + 100);
    step(&["--undo"]);
    checker.check(0);
    checker.go_to(0);
    let before = checker.writes();
    until("writes go on in Basalt", || checker.writes() > before + 100);
    step(&["--switch"]);
    checker.go_to(1);
    let before = checker.writes();
    until("writes go on in HBase", || checker.writes() > before);
    step(&["--finish"]);
    checker.check(1);
    assert_eq!(rig.steps.run("peers b") + &rig.steps.run("peers h"), "");
}
