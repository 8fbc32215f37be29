//! Tables and namespaces.

use std::collections::BTreeMap;

use basalt_client::{Compression, Error, FamilySchema, Get, Namespace, Put, Scan, TableSchema};

use super::{Rig, create, fill};

fn class(error: &Error) -> &str {
    error.remote().expect("an exception").class_name()
}

#[test]
fn tables_are_created_described_altered_and_dropped() {
    let rig = Rig::start();
    let cluster = &rig.cluster;
    rig.runtime.block_on(async {
        let family = FamilySchema::new("f")
            .versions(4)
            .compression(Compression::SNAPPY);
        let schema = TableSchema::new("one").expect("a name").family(family);
        cluster.create_table(schema.clone()).await.expect("created");
        let error = cluster.create_table(schema).await.expect_err("it exists");
        assert_eq!(class(&error), "TableExistsException");
        create(cluster, "two", &["m"]).await;
        let names =
            |names: Vec<basalt_client::TableName>| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            names(cluster.list_tables(None).await.expect("names")),
            ["one", "two"]
        );
        assert_eq!(
            names(cluster.list_tables(Some("t.*")).await.expect("names")),
            ["two"]
        );
        assert!(cluster.table_exists("one").await.expect("asked"));
        assert!(!cluster.table_exists("three").await.expect("asked"));

        let described = cluster.describe_table("one").await.expect("a schema");
        let family = &described.families()[0];
        assert_eq!(
            (family.max_versions, family.compression_type),
            (Some(4), Some(Compression::SNAPPY))
        );
        cluster
            .add_family("one", FamilySchema::new("g").ttl_seconds(60))
            .await
            .expect("added");
        cluster
            .alter_family("one", FamilySchema::new("f").versions(9))
            .await
            .expect("altered");
        let families = cluster.describe_table("one").await.expect("a schema");
        let shown: Vec<_> = families
            .families()
            .iter()
            .map(|family| (family.max_versions, family.time_to_live))
            .collect();
        assert_eq!((shown[0].0, shown[1].1), (Some(9), Some(60)));
        cluster.drop_family("one", "g").await.expect("dropped");
        assert_eq!(
            cluster
                .describe_table("one")
                .await
                .expect("a schema")
                .families()
                .len(),
            1
        );

        let error = cluster.drop_table("one").await.expect_err("it is enabled");
        assert_eq!(class(&error), "TableNotDisabledException");
        cluster.disable_table("one").await.expect("disabled");
        assert!(cluster.is_table_disabled("one").await.expect("asked"));
        cluster.drop_table("one").await.expect("dropped");
        let error = cluster.describe_table("one").await.expect_err("it is gone");
        assert_eq!(class(&error), "TableNotFoundException");
        let error = cluster.disable_table("one").await.expect_err("it is gone");
        assert_eq!(class(&error), "TableNotFoundException");
    });
    rig.server.stop();
}

#[test]
fn a_disabled_table_serves_again_when_it_is_enabled() {
    let rig = Rig::start();
    let (cluster, table) = (&rig.cluster, rig.table(&["m"]));
    rig.runtime.block_on(async {
        table
            .put(Put::new("r").cell("f", "q", "v"))
            .await
            .expect("written");
        cluster.disable_table("t").await.expect("disabled");
        assert!(!cluster.is_table_enabled("t").await.expect("asked"));
        assert!(!cluster.is_table_available("t").await.expect("asked"));
        let error = table.get(Get::new("r")).await.expect_err("it is disabled");
        assert_eq!(class(&error), "TableNotEnabledException");
        let error = table
            .first_rows(Scan::new(), 1)
            .await
            .expect_err("it is disabled");
        assert_eq!(class(&error), "TableNotEnabledException");
        let error = table
            .put_multiple([Put::new("r").cell("f", "q", "w")])
            .await
            .expect_err("it is disabled");
        assert_eq!(class(&error), "TableNotEnabledException");
        cluster.enable_table("t").await.expect("enabled");
        assert!(cluster.is_table_available("t").await.expect("asked"));
        assert!(table.exists(Get::new("r")).await.expect("read"));
    });
    rig.server.stop();
}

#[test]
fn a_table_is_flushed_and_truncated() {
    let rig = Rig::start();
    let (cluster, table) = (&rig.cluster, rig.table(&["m"]));
    rig.runtime.block_on(async {
        fill(&table, ["a", "z"].map(str::to_owned)).await;
        cluster.flush_table("t").await.expect("flushed");
        let error = cluster
            .flush_table("missing")
            .await
            .expect_err("there is no table");
        assert_eq!(class(&error), "TableNotFoundException");
        for (preserve, regions) in [(true, 2), (false, 1)] {
            cluster.disable_table("t").await.expect("disabled");
            cluster.truncate_table("t", preserve).await.expect("truncated");
            assert_eq!(table.regions().await.expect("regions").len(), regions);
            assert_eq!(table.get(Get::new("a")).await.expect("read"), None);
            fill(&table, ["a"].map(str::to_owned)).await;
        }
    });
    assert!(rig.server.metric("basalt_flushes_total") > 0);
    rig.server.stop();
}

#[test]
fn namespaces_have_tables_and_settings() {
    let rig = Rig::start();
    let cluster = &rig.cluster;
    rig.runtime.block_on(async {
        let namespace = Namespace {
            name: "ns".to_owned(),
            configuration: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
        };
        cluster
            .create_namespace(namespace.clone())
            .await
            .expect("created");
        assert_eq!(
            cluster
                .describe_namespace("ns")
                .await
                .expect("a namespace")
                .configuration["k"],
            "v"
        );
        let error = cluster
            .create_namespace(namespace.clone())
            .await
            .expect_err("it exists");
        assert_eq!(class(&error), "NamespaceExistException");
        let changed = Namespace {
            configuration: BTreeMap::from([("k".to_owned(), "w".to_owned())]),
            ..namespace
        };
        cluster.alter_namespace(changed).await.expect("altered");
        assert_eq!(
            cluster
                .describe_namespace("ns")
                .await
                .expect("a namespace")
                .configuration["k"],
            "w"
        );
        create(cluster, "ns:t", &[]).await;
        let names = cluster.list_tables_of_namespace("ns").await.expect("names");
        assert_eq!(
            names.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["ns:t"]
        );
        let table = cluster.table("ns:t").expect("a name");
        table
            .put(Put::new("r").cell("f", "q", "v"))
            .await
            .expect("written");
        assert!(table.exists(Get::new("r")).await.expect("read"));
        let error = cluster.drop_namespace("ns").await.expect_err("it has a table");
        assert_eq!(class(&error), "ConstraintException");
        cluster.disable_table("ns:t").await.expect("disabled");
        cluster.drop_table("ns:t").await.expect("dropped");
        cluster.drop_namespace("ns").await.expect("dropped");
        let names = cluster.list_namespaces().await.expect("names");
        assert!(
            names.contains(&"default".to_owned()) && !names.contains(&"ns".to_owned()),
            "{names:?}"
        );
    });
    rig.server.stop();
}

/// A move to the region's own server succeeds; one to a server that does not exist names it.
#[test]
fn a_region_is_moved_by_its_name() {
    let rig = Rig::start();
    let (cluster, table) = (&rig.cluster, rig.table(&[]));
    rig.runtime.block_on(async {
        let region = table.region_with(b"r").await.expect("a region");
        cluster
            .move_region(&region, Some(&region.server))
            .await
            .expect("moved");
        cluster.move_region(&region, None).await.expect("moved");
        let mut elsewhere = region.server.clone();
        elsewhere.host = "elsewhere.example".to_owned();
        let error = cluster
            .move_region(&region, Some(&elsewhere))
            .await
            .expect_err("there is no such server");
        assert!(error.to_string().contains("elsewhere.example"), "{error}");
    });
    rig.server.stop();
}
