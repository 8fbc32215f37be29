//! Options of families and tables: which are kept and returned, and their effects on tables.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_idl::admin::args as own;
use basalt_idl::thrift2::{self, args as two};
use basalt_test_support::workspace;
use bytes::Bytes;

use crate::client::{Wire, bytes, name, put, shut_down, start, text};

type Attributes = BTreeMap<Bytes, Bytes>;

fn attributes(options: &[(&str, &str)]) -> Attributes {
    let option = |(name, value): &(&str, &str)| (bytes(name), bytes(value));
    options.iter().map(option).collect()
}

fn family(family: &str, options: &[(&str, &str)]) -> thrift2::TColumnFamilyDescriptor {
    thrift2::TColumnFamilyDescriptor {
        name: bytes(family),
        attributes: Some(attributes(options)),
        ..Default::default()
    }
}

fn table(
    table: &str,
    options: &[(&str, &str)],
    columns: Vec<thrift2::TColumnFamilyDescriptor>,
) -> thrift2::TTableDescriptor {
    thrift2::TTableDescriptor {
        table_name: name(table),
        columns: Some(columns),
        attributes: Some(attributes(options)),
        ..Default::default()
    }
}

/// The options in the table below a heading of docs/compatibility.md, without those that are refused.
fn documented(heading: &str) -> Vec<String> {
    let path = workspace().join("docs/compatibility.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let (_, below) = page.split_once(heading).expect("the page has that chapter");
    let chapter = below.split("\n## ").next().unwrap_or_default();
    let rows = chapter.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows = rows.filter(|row| row.split(" | ").nth(1) != Some("absent"));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let names: Vec<String> = cells
        .flat_map(|cell| cell.split('`').step_by(2))
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    assert!(names.len() > 10, "{heading} has a table: {names:?}");
    names
}

/// A value that is not the default, and that HBase takes.
fn sample(option: &str) -> &'static str {
    match option {
        "VERSIONS" | "MIN_VERSIONS" => "2",
        "TTL" => "86400",
        "BLOCKSIZE" => "8192",
        "BLOOMFILTER" => "ROWCOL",
        "COMPRESSION" => "ZSTD",
        "DATA_BLOCK_ENCODING" => "FAST_DIFF",
        "KEEP_DELETED_CELLS" => "TTL",
        "MAX_FILESIZE"
        | "MEMSTORE_FLUSHSIZE"
        | "hbase.hregion.max.filesize"
        | "hbase.increasing.policy.initial.size" => "268435456",
        "hbase.hregion.max.filesize.jitter" | "hbase.busy.policy.blockedRequests" => "0.5",
        "DURABILITY" => "ASYNC_WAL",
        "DFS_REPLICATION" | "REGION_REPLICATION" | "REPLICATION_SCOPE" => "1",
        "BLOCKCACHE" | "COMPRESS_TAGS" | "COMPACTION_ENABLED" | "SPLIT_ENABLED" | "MERGE_ENABLED" => "false",
        "IN_MEMORY"
        | "READONLY"
        | "EVICT_BLOCKS_ON_CLOSE"
        | "CACHE_DATA_ON_WRITE"
        | "CACHE_INDEX_ON_WRITE"
        | "CACHE_BLOOMS_ON_WRITE"
        | "hbase.table.sanity.checks" => "true",
        "IN_MEMORY_COMPACTION" => "BASIC",
        "PRIORITY"
        | "NORMALIZER_TARGET_REGION_COUNT"
        | "NORMALIZER_TARGET_REGION_SIZE_MB"
        | "hbase.server.keyvalue.maxsize"
        | "hbase.hregion.memstore.block.multiplier"
        | "hbase.hstore.blockingStoreFiles"
        | "hbase.hregion.majorcompaction"
        | "hbase.hstore.compaction.min"
        | "hbase.hstore.compaction.max"
        | "hbase.hstore.compaction.min.size"
        | "hbase.hstore.compaction.ratio" => "1000",
        "coprocessor$1" => "|org.apache.hadoop.hbase.coprocessor.AggregateImplementation|1001|",
        "hbase.coprocessor.region.classes" | "hbase.coprocessor.user.region.classes" => {
            "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint"
        }
        "SPLIT_POLICY" => "org.apache.hadoop.hbase.regionserver.DisabledRegionSplitPolicy",
        _ => "any text",
    }
}

/// Every option that docs/compatibility.md lists is returned as it was set, also after the
/// descriptor was sent back as it came.
#[test]
fn every_option_is_kept_and_given_back() {
    let mut wire = Wire::connect();
    let of_family: Vec<(String, &str)> = documented("## Family options")
        .into_iter()
        .map(|option| (option.clone(), sample(&option)))
        .collect();
    let of_table: Vec<(String, &str)> = documented("## Table options")
        .into_iter()
        .map(|option| (option.clone(), sample(&option)))
        .collect();
    let set = |options: &[(String, &str)]| -> Attributes {
        let option = |(name, value): &(String, &str)| (bytes(name), bytes(value));
        options.iter().map(option).collect()
    };
    let mut column = family("f", &[]);
    column.attributes = Some(set(&of_family));
    column.configuration = Some([("a.setting".to_owned(), "of a family".to_owned())].into());
    let mut desc = table("options", &[], vec![column]);
    desc.attributes = Some(set(&of_table));
    wire.ok(&two::CreateTable {
        desc,
        split_keys: None,
    });
    let get = || two::GetTableDescriptor {
        table: name("options"),
    };
    for _ in 0..2 {
        let found = wire.ok(&get());
        let column = &found.columns.as_ref().expect("always set")[0];
        let of = |attributes: &Option<Attributes>, option: &str| {
            let value = attributes.as_ref().and_then(|all| all.get(option.as_bytes()));
            text(value.map(|value| &value[..]).unwrap_or_default())
        };
        for (option, value) in &of_family {
            assert_eq!(of(&column.attributes, option), *value, "{option}");
        }
        for (option, value) in &of_table {
            assert_eq!(of(&found.attributes, option), *value, "{option}");
        }
        assert_eq!(
            column.configuration,
            Some([("a.setting".to_owned(), "of a family".to_owned())].into())
        );
        wire.ok(&two::ModifyTable { desc: found });
    }
}

#[test]
fn the_log_names_options_without_effect() {
    let shared = start(&[]);
    let mut wire = Wire::to(Arc::clone(&shared));
    let mut create = |named: &str, of_table: &[(&str, &str)], of_family: &[(&str, &str)]| {
        let desc = table(named, of_table, vec![family("f", of_family)]);
        wire.ok(&two::CreateTable {
            desc,
            split_keys: None,
        });
    };
    create("replicas", &[("REGION_REPLICATION", "2")], &[("IS_MOB", "true")]);
    let idle = [("REGION_REPLICATION", "1"), ("MAX_FILESIZE", "1073741824")];
    create("plain", &idle, &[("IS_MOB", "FALSE"), ("VERSIONS", "2")]);
    wire.ok(&two::AddColumnFamily {
        table_name: name("plain"),
        column: family("g", &[("hbase.hstore.checksum.algorithm", "NULL")]),
    });
    drop(wire);
    let log = shut_down(shared);
    let told: Vec<_> = log
        .lines()
        .filter(|line| line.contains("kept and have no effect"))
        .collect();
    let expected = [
        (
            "replicas",
            "(docs/compatibility.md): REGION_REPLICATION => 2, f: IS_MOB => true",
        ),
        (
            "plain",
            "(docs/compatibility.md): g: hbase.hstore.checksum.algorithm => NULL",
        ),
    ];
    assert_eq!(told.len(), expected.len(), "{log}");
    for (line, (table, options)) in told.iter().zip(expected) {
        assert!(line.contains(table) && line.contains(options), "{line}");
    }
}

/// Descriptors carry an option twice, as an attribute and as a field of its own; the field wins.
#[test]
fn every_field_of_a_family() {
    let mut wire = Wire::connect();
    let column = thrift2::TColumnFamilyDescriptor {
        name: bytes("f"),
        attributes: Some(attributes(&[("VERSIONS", "9"), ("TTL", "9"), ("OTHER", "kept")])),
        configuration: None,
        block_size: Some(4096),
        bloomn_filter_type: Some(thrift2::TBloomFilterType::ROWCOL),
        compression_type: Some(thrift2::TCompressionAlgorithm::LZ4),
        dfs_replication: Some(2),
        data_block_encoding: Some(thrift2::TDataBlockEncoding::DIFF),
        keep_deleted_cells: Some(thrift2::TKeepDeletedCells::TRUE),
        max_versions: Some(3),
        min_versions: Some(1),
        scope: Some(1),
        time_to_live: Some(60),
        block_cache_enabled: Some(false),
        cache_blooms_on_write: Some(true),
        cache_data_on_write: Some(true),
        cache_indexes_on_write: Some(true),
        compress_tags: Some(false),
        evict_blocks_on_close: Some(true),
        in_memory: Some(true),
    };
    wire.ok(&two::CreateTable {
        desc: table("fields", &[], vec![column.clone(), family("defaults", &[])]),
        split_keys: None,
    });
    let found = wire.ok(&two::GetTableDescriptor {
        table: name("fields"),
    });
    let columns = found.columns.expect("always set");
    let attributes_of = |column: &thrift2::TColumnFamilyDescriptor| {
        let all = column.attributes.clone().expect("always set");
        all.into_iter()
            .map(|(name, value)| (text(&name), text(&value)))
            .collect::<BTreeMap<_, _>>()
    };
    let set = attributes_of(&columns[1]);
    assert_eq!(
        (&set["VERSIONS"][..], &set["TTL"][..], &set["OTHER"][..]),
        ("3", "60", "kept")
    );
    assert_eq!(
        thrift2::TColumnFamilyDescriptor {
            attributes: None,
            ..columns[1].clone()
        },
        thrift2::TColumnFamilyDescriptor {
            attributes: None,
            ..column
        }
    );
    // HBase's defaults, each spelled out.
    assert_eq!(
        thrift2::TColumnFamilyDescriptor {
            attributes: None,
            ..columns[0].clone()
        },
        thrift2::TColumnFamilyDescriptor {
            name: bytes("defaults"),
            attributes: None,
            configuration: None,
            block_size: Some(65_536),
            bloomn_filter_type: Some(thrift2::TBloomFilterType::ROW),
            compression_type: Some(thrift2::TCompressionAlgorithm::NONE),
            dfs_replication: Some(0),
            data_block_encoding: Some(thrift2::TDataBlockEncoding::NONE),
            keep_deleted_cells: Some(thrift2::TKeepDeletedCells::FALSE),
            max_versions: Some(1),
            min_versions: Some(0),
            scope: Some(0),
            time_to_live: Some(i32::MAX),
            block_cache_enabled: Some(true),
            cache_blooms_on_write: Some(false),
            cache_data_on_write: Some(false),
            cache_indexes_on_write: Some(false),
            compress_tags: Some(true),
            evict_blocks_on_close: Some(false),
            in_memory: Some(false),
        }
    );
    for (option, value, words) in [
        (
            "BLOOMFILTER",
            "ROWPREFIX_FIXED_LENGTH",
            "needs RowPrefixBloomFilter.prefix_length",
        ),
        ("COMPRESSION", "LZO", "LZO"),
        ("COMPRESSION", "BZIP2", "BZIP2"),
        ("VERSIONS", "0", "Max versions"),
        ("TTL", "0", "TTL"),
        ("BLOCKSIZE", "1023", "Block size"),
        ("MIN_VERSIONS", "2", "Min versions"),
        ("KEEP_DELETED_CELLS", "PERHAPS", "KEEP_DELETED_CELLS"),
    ] {
        let create = two::CreateTable {
            desc: table("refused", &[], vec![family("f", &[(option, value)])]),
            split_keys: None,
        };
        wire.refused(&create, &[words, "can_retry: Some(false)"]);
    }
}

fn delete_column(wire: &mut Wire, table: &str, row: &str, timestamp: i64) {
    let tdelete = thrift2::TDelete {
        row: bytes(row),
        columns: Some(vec![thrift2::TColumn {
            family: bytes("f"),
            qualifier: Some(bytes("q")),
            timestamp: Some(timestamp),
        }]),
        ..Default::default()
    };
    wire.ok(&two::DeleteSingle {
        table: bytes(table),
        tdelete,
    });
}

#[test]
fn families_keep_what_their_options_say() {
    let mut wire = Wire::connect();
    let columns = vec![
        family("f", &[("VERSIONS", "2"), ("KEEP_DELETED_CELLS", "TRUE")]),
        family("t", &[("VERSIONS", "3"), ("TTL", "1"), ("MIN_VERSIONS", "1")]),
    ];
    wire.ok(&two::CreateTable {
        desc: table("keeps", &[], columns),
        split_keys: None,
    });
    for stamp in 1..=3 {
        wire.put("keeps", "r", "f:q", "v", Some(stamp));
        wire.put("keeps", "r", "t:q", "v", Some(stamp));
    }
    assert_eq!(wire.row("keeps", "r"), ["f:q@3=v", "f:q@2=v", "t:q@3=v"]);
    delete_column(&mut wire, "keeps", "r", 3);
    assert_eq!(wire.row("keeps", "r"), ["t:q@3=v"]);
    let before_the_delete = wire.ok(&two::Get {
        table: bytes("keeps"),
        tget: thrift2::TGet {
            row: bytes("r"),
            time_range: Some(thrift2::TTimeRange {
                min_stamp: 0,
                max_stamp: 3,
            }),
            ..Default::default()
        },
    });
    let family = &before_the_delete.column_values[0].family;
    assert_eq!(text(family), "f", "KEEP_DELETED_CELLS: the past is readable");
}

#[test]
fn tables_do_what_their_options_say() {
    let mut wire = Wire::connect();
    let create = |wire: &mut Wire, table_name: &str, options: &[(&str, &str)]| {
        wire.ok(&two::CreateTable {
            desc: table(table_name, options, vec![family("f", &[])]),
            split_keys: None,
        });
    };
    create(&mut wire, "readonly", &[("READONLY", "true")]);
    let write = two::Put {
        table: bytes("readonly"),
        tput: put("r", "f:q", "v", None),
    };
    wire.refused(&write, &["read only", "can_retry: Some(false)"]);

    // A region is flushed at the table's own size, long before the server's.
    create(
        &mut wire,
        "flushes",
        &[("MEMSTORE_FLUSHSIZE", "1048576"), ("SPLIT_ENABLED", "false")],
    );
    let flushes = |wire: &mut Wire| {
        let regions = wire.ok(&own::BasaltRegionMetrics {
            table: Some(bytes("flushes")),
        });
        regions.iter().map(|region| region.flushes).sum::<i64>()
    };
    let began = Instant::now();
    let mut row = 0;
    while flushes(&mut wire) == 0 {
        row += 1;
        wire.put("flushes", &format!("{row:05}"), "f:q", &"v".repeat(100_000), None);
        assert!(
            began.elapsed() < Duration::from_mins(1),
            "{row} rows are in memory"
        );
    }
    assert!(row > 5, "flushed after {row} rows");

    let small = table("small", &[("MAX_FILESIZE", "1000")], vec![family("f", &[])]);
    let refused = two::CreateTable {
        desc: small.clone(),
        split_keys: None,
    };
    wire.refused(&refused, &["MAX_FILESIZE", "too small"]);
    create(
        &mut wire,
        "unchecked",
        &[("MAX_FILESIZE", "1000"), ("hbase.table.sanity.checks", "false")],
    );
    let durable = thrift2::TTableDescriptor {
        durability: Some(thrift2::TDurability::SKIP_WAL),
        ..table("durable", &[], vec![family("f", &[])])
    };
    wire.ok(&two::CreateTable {
        desc: durable,
        split_keys: None,
    });
    let found = wire.ok(&two::GetTableDescriptor {
        table: name("durable"),
    });
    let raw = found
        .attributes
        .as_ref()
        .and_then(|all| all.get(&b"DURABILITY"[..]));
    assert_eq!(
        (found.durability, raw),
        (Some(thrift2::TDurability::SKIP_WAL), Some(&bytes("SKIP_WAL")))
    );
}

/// A family that should be encrypted is refused: its files would not be.
#[test]
fn encryption_is_refused() {
    let mut wire = Wire::connect();
    let desc = table("secret", &[], vec![family("f", &[("ENCRYPTION", "AES")])]);
    wire.refused(
        &two::CreateTable {
            desc,
            split_keys: None,
        },
        &["Cipher AES failed test: encryption is disabled"],
    );
}

/// Each interface refuses a coprocessor that the server does not have, in a new and in an altered table.
#[test]
fn a_coprocessor_is_refused_over_thrift() {
    let mut wire = Wire::connect();
    let observed = || {
        let options = [("coprocessor$1", "|org.example.Observer|1001|")];
        table("observed", &options, vec![family("f", &[])])
    };
    let text = &["Class org.example.Observer cannot be loaded Set hbase.table.sanity.checks to false"];
    let create = |desc| two::CreateTable {
        desc,
        split_keys: None,
    };
    wire.refused(&create(observed()), text);
    wire.ok(&create(table("observed", &[], vec![family("f", &[])])));
    wire.refused(&two::ModifyTable { desc: observed() }, text);
}
