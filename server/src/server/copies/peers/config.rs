//! Configuration of a replication peer: its address, and the cells that go there.
//!
//! The rules and texts are HBase's (`ReplicationPeerManager`, `ReplicationPeerConfig`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use basalt_engine::schema::TableName;
use serde::{Deserialize, Serialize};

/// The endpoint that sends edits to another cluster: the only one.
const ENDPOINTS: [&str; 2] = [
    "org.apache.hadoop.hbase.replication.regionserver.HBaseInterClusterReplicationEndpoint",
    "org.apache.hadoop.hbase.replication.HBaseReplicationEndpoint",
];

/// Options of a peer's configuration that have an effect.
const OPTIONS: [&str; 7] = [
    SKIP,
    SLEEP_MS,
    MULTIPLIER,
    TIMEOUT_MS,
    BATCH_BYTES,
    DROP_TABLE,
    DROP_FAMILY,
];

const SKIP: &str = "basalt.replication.skip";
const SLEEP_MS: &str = "replication.source.sleepforretries";
const MULTIPLIER: &str = "replication.source.maxretriesmultiplier";
const TIMEOUT_MS: &str = "replication.source.shipedits.timeout";
const BATCH_BYTES: &str = "replication.source.size.capacity";
const DROP_TABLE: &str = "hbase.replication.drop.on.deleted.table";
const DROP_FAMILY: &str = "hbase.replication.drop.on.deleted.columnfamily";

/// Tables with their families; no family: all of them.
pub(crate) type TableFamilies = BTreeMap<String, Vec<String>>;

/// The configuration of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PeerConfig {
    pub(crate) cluster_key: String,
    /// Java class of the endpoint; empty: the default one.
    pub(crate) endpoint: String,
    /// Data for endpoints of users. Kept and returned.
    pub(crate) data: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) table_families: TableFamilies,
    pub(crate) namespaces: BTreeSet<String>,
    /// Bytes per second; 0: no limit.
    pub(crate) bandwidth: i64,
    /// Whether all user tables are replicated but those that are excluded.
    pub(crate) replicate_all: bool,
    pub(crate) excluded_table_families: TableFamilies,
    pub(crate) excluded_namespaces: BTreeSet<String>,
    /// Edits of a row arrive in their order also without it: kept and returned.
    pub(crate) serial: bool,
}

impl PeerConfig {
    /// Whether cells of a family go to the peer, if the family's scope is global.
    pub(crate) fn wants(&self, table: &TableName, family: &[u8]) -> bool {
        let name = table.to_string();
        let names = |families: &[String]| families.iter().any(|named| named.as_bytes() == family);
        if self.replicate_all {
            return !self.excluded_namespaces.contains(table.namespace())
                && match self.excluded_table_families.get(&name) {
                    None => true,
                    Some(families) => !families.is_empty() && !names(families),
                };
        }
        self.namespaces.contains(table.namespace())
            || self
                .table_families
                .get(&name)
                .is_some_and(|families| families.is_empty() || names(families))
    }

    /// The reason to refuse it.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !self.endpoint.is_empty() && !ENDPOINTS.contains(&self.endpoint.as_str()) {
            return Err(format!(
                "Can not instantiate configured replication endpoint class={}: this server runs no endpoint classes; a peer is an HBase cluster or a Basalt",
                self.endpoint
            ));
        }
        if self.replicate_all {
            if !self.namespaces.is_empty() || !self.table_families.is_empty() {
                return Err(
                    "Need clean namespaces or table-cfs config firstly when you want replicate all cluster"
                        .to_owned(),
                );
            }
            check_conflict(&self.excluded_namespaces, &self.excluded_table_families)?;
        } else {
            if !self.excluded_namespaces.is_empty() || !self.excluded_table_families.is_empty() {
                return Err(
                    "Need clean exclude-namespaces or exclude-table-cfs config firstly when replicate_all flag is false"
                        .to_owned(),
                );
            }
            check_conflict(&self.namespaces, &self.table_families)?;
        }
        if self.bandwidth < 0 {
            return Err(format!(
                "bandwidth {} is less than 0, which means no limit",
                self.bandwidth
            ));
        }
        self.options
            .iter()
            .try_for_each(|(key, value)| check_option(key, value))
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.options.get(key)?.trim().parse().ok()
    }

    /// The sequence id of the edit that an operator has given up.
    pub(crate) fn skipped(&self) -> Option<u64> {
        self.number(SKIP)
    }

    /// The pause after that many failures in a row.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        let sleep = self.number(SLEEP_MS).unwrap_or(1_000);
        let factor = u64::from(failures).clamp(1, self.number(MULTIPLIER).unwrap_or(10).max(1));
        Duration::from_millis(sleep.saturating_mul(factor))
    }

    /// How long a batch may take at the peer, before it has timed out.
    pub(crate) fn time_limit(&self) -> Duration {
        Duration::from_millis(self.number(TIMEOUT_MS).unwrap_or(60_000).max(1))
    }

    /// Bytes of the log after which a batch ends.
    pub(crate) fn batch_bytes(&self) -> u64 {
        self.number(BATCH_BYTES).unwrap_or(8 << 20).clamp(1, 64 << 20)
    }
}

/// A table whose whole namespace is named already is a contradiction.
fn check_conflict(namespaces: &BTreeSet<String>, tables: &TableFamilies) -> Result<(), String> {
    for table in tables.keys() {
        let namespace = table
            .split_once(':')
            .map_or("default", |(namespace, _)| namespace);
        if namespaces.contains(namespace) {
            return Err(format!(
                "Table-cfs {table} is conflict with namespaces {namespace} in peer config"
            ));
        }
    }
    Ok(())
}

fn check_option(key: &str, value: &str) -> Result<(), String> {
    let wrong = |text: &str| Err(format!("CONFIG {key} is '{value}', and {text}"));
    match key {
        DROP_TABLE | DROP_FAMILY if value != "true" => {
            wrong("edits of what was dropped here are always skipped: leave it out")
        }
        DROP_TABLE | DROP_FAMILY => Ok(()),
        SKIP | SLEEP_MS | MULTIPLIER | TIMEOUT_MS | BATCH_BYTES if value.trim().parse::<u64>().is_ok() => {
            Ok(())
        }
        SKIP | SLEEP_MS | MULTIPLIER | TIMEOUT_MS | BATCH_BYTES => wrong("has to be a whole number"),
        _ => Err(format!(
            "CONFIG {key} has no effect in this server; these have: {}",
            OPTIONS.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families(entries: &[(&str, &[&str])]) -> TableFamilies {
        let owned = |families: &&[&str]| families.iter().map(|family| (*family).to_owned()).collect();
        entries
            .iter()
            .map(|(table, families)| ((*table).to_owned(), owned(families)))
            .collect()
    }

    fn wants(config: &PeerConfig, table: &str, family: &str) -> bool {
        config.wants(&TableName::parse(table.as_bytes()).unwrap(), family.as_bytes())
    }

    #[test]
    fn a_peer_gets_what_its_lists_say() {
        let all = PeerConfig {
            replicate_all: true,
            excluded_namespaces: BTreeSet::from(["n".to_owned()]),
            excluded_table_families: families(&[("t", &[]), ("u", &["f"])]),
            ..PeerConfig::default()
        };
        assert_eq!(all.check(), Ok(()));
        for (table, family, expected) in [
            ("s", "f", true),
            ("n:s", "f", false),
            ("t", "f", false),
            ("u", "f", false),
            ("u", "g", true),
        ] {
            assert_eq!(wants(&all, table, family), expected, "{table} {family}");
        }
        let some = PeerConfig {
            namespaces: BTreeSet::from(["n".to_owned()]),
            table_families: families(&[("t", &[]), ("u", &["f"])]),
            ..PeerConfig::default()
        };
        assert_eq!(some.check(), Ok(()));
        for (table, family, expected) in [
            ("s", "f", false),
            ("n:s", "f", true),
            ("t", "g", true),
            ("u", "f", true),
            ("u", "g", false),
        ] {
            assert_eq!(wants(&some, table, family), expected, "{table} {family}");
        }
        assert!(!wants(&PeerConfig::default(), "t", "f"), "no list: nothing");
    }

    #[test]
    fn contradictions_and_options_without_effect_are_refused() {
        let refusal = |change: &dyn Fn(&mut PeerConfig)| {
            let mut config = PeerConfig::default();
            change(&mut config);
            config.check().unwrap_err()
        };
        let named = |text: String, part: &str| assert!(text.contains(part), "{text}");
        named(
            refusal(&|config| {
                config.replicate_all = true;
                config.namespaces.insert("n".to_owned());
            }),
            "when you want replicate all cluster",
        );
        named(
            refusal(&|config| {
                config.excluded_namespaces.insert("n".to_owned());
            }),
            "when replicate_all flag is false",
        );
        named(
            refusal(&|config| {
                config.namespaces.insert("n".to_owned());
                config.table_families = families(&[("n:t", &[])]);
            }),
            "Table-cfs n:t is conflict with namespaces n",
        );
        named(refusal(&|config| config.endpoint = "x.Y".to_owned()), "class=x.Y");
        for (key, value, part) in [
            ("hbase.x", "1", "hbase.x has no effect"),
            (SLEEP_MS, "soon", "whole number"),
            (DROP_TABLE, "false", "always skipped"),
        ] {
            named(
                refusal(&|config| drop(config.options.insert(key.to_owned(), value.to_owned()))),
                part,
            );
        }
    }

    #[test]
    fn pauses_grow_up_to_the_multiplier() {
        let mut config = PeerConfig::default();
        assert_eq!(
            [1, 3, 99].map(|failures| config.pause(failures).as_secs()),
            [1, 3, 10]
        );
        config.options.insert(MULTIPLIER.to_owned(), "2".to_owned());
        config.options.insert(SLEEP_MS.to_owned(), "100".to_owned());
        assert_eq!(
            [1, 9].map(|failures| config.pause(failures).as_millis()),
            [100, 200]
        );
    }
}
