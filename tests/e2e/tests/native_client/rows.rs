//! Calls about rows.

use basalt_client::native::{Action, Cluster, ClusterOptions, Registry};
use basalt_client::{
    Append, Check, CompareOperator, Delete, Error, Get, Increment, Put, RowMutations, counter_from_value,
};
use bytes::Bytes;

use super::{Rig, create, fill, keys};

/// Both ways to find the server lead to the same cluster.
#[test]
fn both_registries_find_the_server() {
    let rig = Rig::start();
    rig.table(&[]);
    let address = rig.server.thrift.to_string();
    rig.runtime.block_on(async {
        let registry = Registry::bootstrap(&address).expect("an address");
        let cluster = Cluster::connect(ClusterOptions::new(registry))
            .await
            .expect("a cluster");
        let ids = (
            cluster.cluster_id().await.expect("an id"),
            rig.cluster.cluster_id().await.expect("an id"),
        );
        assert_eq!(ids.0, ids.1);
        assert_eq!(ids.0.len(), 36, "a UUID");
        let table = cluster.table("t").expect("a name");
        table
            .put(Put::new("r").cell("f", "q", "v"))
            .await
            .expect("written");
        let read = rig
            .cluster
            .table("t")
            .expect("a name")
            .get(Get::new("r"))
            .await
            .expect("read");
        assert_eq!(read.expect("a row").value("f", "q").expect("a value"), "v");
    });
    rig.server.stop();
}

/// The error names a base node that the server does not have.
#[test]
fn a_wrong_base_node_is_named() {
    let rig = Rig::start();
    let registry =
        Registry::zookeeper("127.0.0.1", rig.server.thrift.port(), "/elsewhere").expect("an address");
    let mut options = ClusterOptions::new(registry);
    options.retries = 1;
    let error = rig
        .runtime
        .block_on(Cluster::connect(options))
        .expect_err("there is no such node");
    assert!(
        error
            .to_string()
            .contains("has no node /elsewhere/meta-region-server"),
        "{error}"
    );
    rig.server.stop();
}

#[test]
fn rows_are_written_read_and_deleted() {
    let rig = Rig::start();
    let table = rig.table(&["m"]);
    rig.runtime.block_on(async {
        for row in ["a", "z"] {
            let put = Put::new(row)
                .cell("f", "x", "1")
                .cell_at("f", "x", 5, "old")
                .cell("f", "y", "2");
            table.put(put).await.expect("written");
            let read = table
                .get(Get::new(row).versions(3))
                .await
                .expect("read")
                .expect("a row");
            assert_eq!((&read.key[..], read.cells.len()), (row.as_bytes(), 3));
            assert_eq!(
                read.versions("f", "x")
                    .map(|cell| cell.value.clone())
                    .collect::<Vec<_>>(),
                ["1", "old"]
            );
            assert!(table.exists(Get::new(row).column("f", "y")).await.expect("read"));
            table
                .delete(Delete::columns(row).column("f", "y"))
                .await
                .expect("deleted");
            assert!(!table.exists(Get::new(row).column("f", "y")).await.expect("read"));
            table.delete(Delete::row(row)).await.expect("deleted");
            assert_eq!(table.get(Get::new(row)).await.expect("read"), None);
        }
        let region = table.region_of("z").await.expect("a region");
        assert_eq!(
            (&region.start_key[..], &region.end_key[..]),
            (&b"m"[..], &b""[..])
        );
    });
    rig.server.stop();
}

#[test]
fn counters_and_appends_return_the_new_values() {
    let rig = Rig::start();
    let table = rig.table(&[]);
    rig.runtime.block_on(async {
        assert_eq!(
            table.increment_column("r", "f", "n", 5).await.expect("counted"),
            5
        );
        let row = table
            .increment(Increment::new("r").column("f", "n", -7).column("f", "m", 1))
            .await;
        let row = row.expect("counted");
        let sum = |qualifier| counter_from_value(row.value("f", qualifier).expect("a sum")).expect("8 bytes");
        assert_eq!((sum("n"), sum("m")), (-2, 1));
        table
            .append(Append::new("r").column("f", "text", "ab"))
            .await
            .expect("appended");
        let row = table
            .append(Append::new("r").column("f", "text", "c"))
            .await
            .expect("appended");
        assert_eq!(row.value("f", "text").expect("a value"), "abc");
        table
            .put(Put::new("r").cell("f", "short", "x"))
            .await
            .expect("written");
        let error = table
            .increment_column("r", "f", "short", 1)
            .await
            .expect_err("not a counter");
        assert_eq!(error.kind(), basalt_client::ErrorKind::Request, "{error}");
    });
    rig.server.stop();
}

#[test]
fn checks_decide_about_puts_deletes_and_groups() {
    let rig = Rig::start();
    let table = rig.table(&[]);
    let put = |value: &str| Put::new("r").cell("f", "q", value);
    rig.runtime.block_on(async {
        assert!(
            table
                .check_and_put(Check::absent("f", "q"), put("1"))
                .await
                .expect("checked")
        );
        assert!(
            !table
                .check_and_put(Check::absent("f", "q"), put("2"))
                .await
                .expect("checked")
        );
        assert!(
            table
                .check_and_put(Check::equal("f", "q", "1"), put("5"))
                .await
                .expect("checked")
        );
        // The given value is on the left: 3 is less than the stored 5.
        let less = Check::compare("f", "q", CompareOperator::LESS, "3");
        assert!(
            table
                .check_and_put(less.clone(), put("2"))
                .await
                .expect("checked")
        );
        assert!(!table.check_and_put(less, put("9")).await.expect("checked"));
        let group = || {
            RowMutations::new("r")
                .put(put("7").cell("f", "p", "8"))
                .delete(Delete::columns("r").column("f", "o"))
        };
        assert!(
            !table
                .check_and_mutate(Check::equal("f", "q", "1"), group())
                .await
                .expect("checked")
        );
        assert!(
            table
                .check_and_mutate(Check::equal("f", "q", "2"), group())
                .await
                .expect("checked")
        );
        let read = table.get(Get::new("r")).await.expect("read").expect("a row");
        assert_eq!(
            (read.value("f", "q"), read.value("f", "p")),
            (Some(&Bytes::from("7")), Some(&Bytes::from("8")))
        );
        assert!(
            !table
                .check_and_delete(Check::equal("f", "q", "1"), Delete::row("r"))
                .await
                .expect("checked")
        );
        assert!(
            table
                .check_and_delete(Check::equal("f", "q", "7"), Delete::row("r"))
                .await
                .expect("checked")
        );
        assert_eq!(table.get(Get::new("r")).await.expect("read"), None);

        let group = RowMutations::new("r")
            .put(put("1"))
            .put(Put::new("r").cell("nofamily", "q", "v"));
        let error = table.mutate_row(group).await.expect_err("a family is missing");
        assert_eq!(
            error.remote().expect("an exception").class_name(),
            "NoSuchColumnFamilyException"
        );
        assert_eq!(
            table.get(Get::new("r")).await.expect("read"),
            None,
            "nothing of the group is applied"
        );
        table
            .mutate_row(RowMutations::new("r").put(put("1")))
            .await
            .expect("applied");
        assert!(table.exists(Get::new("r")).await.expect("read"));
    });
    rig.server.stop();
}

/// All kinds of actions over several regions, with outcomes in the order of the actions and failures by
/// themselves.
#[test]
fn a_batch_mixes_actions_of_many_regions() {
    let rig = Rig::start();
    let table = rig.table(&["d", "m", "t"]);
    rig.runtime.block_on(async {
        fill(&table, ["a", "e", "n", "z"].map(str::to_owned)).await;
        let actions = vec![
            Action::Get(Get::new("z")),
            Action::Put(Put::new("b").cell("f", "q", "new")),
            Action::Put(Put::new("c").cell("nofamily", "q", "v")),
            Action::Increment(Increment::new("n").column("f", "n", 3)),
            Action::Append(Append::new("e").column("f", "q", "!")),
            Action::Exists(Get::new("a")),
            Action::Exists(Get::new("missing")),
            Action::Delete(Delete::row("z")),
            Action::RowMutations(
                RowMutations::new("u")
                    .put(Put::new("u").cell("f", "q", "1"))
                    .put(Put::new("u").cell("f", "p", "2")),
            ),
            Action::Get(Get::new("missing")),
        ];
        let outcomes = table.batch(actions).await.expect("valid actions");
        let value = |at: usize, qualifier: &str| {
            let row = outcomes[at].as_ref().expect("done").as_ref().expect("a row");
            row.value("f", qualifier).cloned().expect("a value")
        };
        assert_eq!(value(0, "q"), "z");
        assert_eq!(counter_from_value(&value(3, "n")).expect("a counter"), 3);
        assert_eq!(value(4, "q"), "e!");
        let failure = outcomes[2].as_ref().expect_err("a family is missing");
        assert_eq!(
            failure.remote().expect("an exception").class_name(),
            "NoSuchColumnFamilyException"
        );
        let found = |at: usize| outcomes[at].as_ref().expect("done").is_some();
        assert_eq!([5, 6, 9].map(found), [true, false, false]);
        let read = table
            .get_multiple(["b", "c", "u", "z"].map(Get::new))
            .await
            .expect("read");
        let cells: Vec<_> = read
            .iter()
            .map(|row| row.as_ref().map_or(0, |row| row.cells.len()))
            .collect();
        assert_eq!(cells, [1, 0, 2, 0]);

        let puts = ["x", "y"].map(|row| Put::new(row).cell(if row == "x" { "f" } else { "g" }, "q", "v"));
        let error = table.put_multiple(puts).await.expect_err("a family is missing");
        assert!(matches!(error, Error::Batch { failed: 1, of: 2, .. }), "{error}");
        assert!(table.exists(Get::new("x")).await.expect("read"));
    });
    rig.server.stop();
}

/// A batch of more actions and bytes than one call takes.
#[test]
fn a_large_batch_is_several_calls() {
    let rig = Rig::start_with(|options| options.batch_bytes = 100_000);
    let table = rig.table(&["3", "7"]);
    rig.runtime.block_on(async {
        let row = |number: usize| format!("{}-{number:05}", number % 10);
        let put = |number| Put::new(row(number)).cell("f", "q", vec![b'v'; 100]);
        table.put_multiple((0..5_000).map(put)).await.expect("written");
        let read = table
            .get_multiple((0..5_000).map(|number| Get::new(row(number))))
            .await
            .expect("read");
        for (number, found) in read.iter().enumerate() {
            assert_eq!(found.as_ref().expect("a row").key, row(number));
        }
        let found = table
            .exists_multiple(["0-00000", "0-00001"].map(Get::new))
            .await
            .expect("read");
        assert_eq!(found, [true, false]);
    });
    rig.server.stop();
}

/// Cell blocks compressed in both directions.
#[test]
fn cell_blocks_can_be_compressed() {
    for class in ["GzipCodec", "SnappyCodec", "ZStandardCodec"] {
        let rig = Rig::start_with(|options| {
            options.compressor = Some(format!("org.apache.hadoop.io.compress.{class}"));
        });
        let table = rig.table(&[]);
        rig.runtime.block_on(async {
            fill(&table, (0..500).map(|number| format!("row-{number:03}"))).await;
            let rows = table
                .scan(basalt_client::Scan::new())
                .expect("a scan")
                .collect()
                .await
                .expect("read");
            assert_eq!(
                keys(&rows),
                (0..500)
                    .map(|number| format!("row-{number:03}"))
                    .collect::<Vec<_>>()
            );
        });
        rig.server.stop();
    }
}

#[test]
fn missing_tables_and_families_are_named() {
    let rig = Rig::start();
    rig.runtime.block_on(async {
        let missing = rig.cluster.table("missing").expect("a name");
        let error = missing.get(Get::new("r")).await.expect_err("there is no table");
        assert_eq!(
            error.remote().expect("an exception").class_name(),
            "TableNotFoundException"
        );
        create(&rig.cluster, "t", &[]).await;
        let table = rig.cluster.table("t").expect("a name");
        let error = table
            .get(Get::new("r").family("g"))
            .await
            .expect_err("there is no family")
            .to_string();
        for part in [
            "NoSuchColumnFamilyException",
            "region t,,",
            &rig.server.thrift.to_string(),
        ] {
            assert!(error.contains(part), "{error} lacks {part}");
        }
    });
    rig.server.stop();
}
