//! Settings: defaults, a TOML file, `BASALT_*` environment variables, then the command line, later
//! ones winning (`layers`).
//!
//! One flat list of `section.key` names, each with its unit in the name; sizes and durations may be
//! given as people write them (`units`). Unknown names, wrong types and unworkable values are
//! refused at start with the place, the name and the reason. A setting is described once, where it
//! is declared (`sections`, `describe`), and printed from there (`print`).

use std::fmt::Display;
use std::path::Path;

mod address;
mod declaration;
mod describe;
mod hosts;
mod layers;
mod memory;
mod print;
mod rehearsal;
mod sections;
mod secure;
mod units;

pub use address::{Address, OptionalAddress};
pub use describe::Setting;
pub(crate) use hosts::AllowedHosts;
pub use layers::{Inputs, Loaded, Source};
pub use print::{Format, print};
pub use sections::{
    Authenticate, Backup, BlockCache, Bulkload, Changes, ClientCertificates, Compaction, Config, Data, Disk,
    Flush, Gateway, Http, KeyVisualizer, Log, LogFull, Memory, Memstore, Metrics, Plaintext, Quota, Region,
    Rehearsal, Replication, Requests, Rest, Row, Scanner, Security, Server, SlowLog, Standby, StandbyReads,
    StandbySync, Store, Thrift, ThriftProtocol, ThriftTransport, Tls, UnknownUserCode, UserCode, UserFrom,
    Wal, WalSync,
};
pub use secure::security_dir;

/// Least `memory.total_bytes`: less does not hold a few flushes, messages and blocks of largest cells.
const TOTAL_BYTES_MIN: u64 = 64 << 20;

/// Longest text of a configuration file; all settings with their meaning are some twenty thousand
/// bytes. A text takes up to a thousand times its length to parse.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// Above the descriptor limit of any machine, and low enough for the semaphore that counts
/// connections.
const CONNECTIONS_MAX: u64 = 1 << 24;

/// Fewest open store files: each thread that reads or writes them may need one.
pub const OPEN_FILES_MIN: usize = 80;

/// Less does not hold a few keys for each of a thousand times.
pub(crate) const KEY_VISUALIZER_BYTES_MIN: usize = 1 << 20;

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {message}")]
pub struct ConfigError {
    /// The configuration file, environment variable, argument or setting that is wrong.
    place: String,
    message: String,
}

impl ConfigError {
    pub(crate) fn new(place: impl Into<String>, message: impl Display) -> Self {
        Self {
            place: place.into(),
            message: message.to_string(),
        }
    }

    fn of_file(path: &Path, message: impl Display) -> Self {
        Self::new(format!("configuration file {}", path.display()), message)
    }
}

impl Config {
    /// Checks values against their ranges, against each other and for feasibility. Returns the
    /// first problem.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.problems().into_iter().next().map_or(Ok(()), Err)
    }

    /// Everything that is wrong with the values.
    pub fn problems(&self) -> Vec<ConfigError> {
        let table = self.table();
        let value = |setting: Setting| &table[setting.section][setting.key()];
        let ranges = Setting::all().filter_map(|setting| setting.check(value(setting)).err());
        let checks = [
            memory::check(self),
            rehearsal::check(&self.rehearsal),
            hosts::check(&self.http.allowed_hosts),
            secure::check_kerberos(self),
        ];
        ranges
            .chain(checks.into_iter().filter_map(Result::err))
            .chain(self.wrong_relations())
            .chain(self.refused_addresses())
            .collect()
    }

    /// Values that do not fit to each other, or to anything.
    fn wrong_relations(&self) -> Vec<ConfigError> {
        let port = self.server.advertise.rsplit_once(':').map(|(_, port)| port);
        let is_advertise_wrong = port.is_some_and(|port| port.parse::<u16>().is_err());
        let is_share_wrong = !(0.0..=1.0).contains(&self.compaction.overwritten);
        let percentile = self.slow_log.percentile;
        let is_percentile_wrong = percentile != 0.0 && !(50.0..100.0).contains(&percentile);
        let is_ratio_wrong = !(self.compaction.ratio.is_finite() && self.compaction.ratio > 0.0);
        [
            (
                self.memstore.total_bytes < self.memstore.flush_bytes,
                "memstore.total_bytes",
                "must be at least memstore.flush_bytes",
            ),
            (
                self.compaction.max_files < self.compaction.min_files,
                "compaction.max_files",
                "must be at least compaction.min_files",
            ),
            (
                is_share_wrong,
                "compaction.overwritten",
                "must be a share from 0 to 1",
            ),
            (is_ratio_wrong, "compaction.ratio", "must be a positive number"),
            (
                is_percentile_wrong,
                "slow_log.percentile",
                "must be 0 (no such threshold), or from 50 to below 100, as 99.9",
            ),
            (
                is_advertise_wrong,
                "server.advertise",
                "must be HOST or HOST:PORT",
            ),
            (
                self.requests.memory_bytes < self.server.max_message_bytes as u64,
                "requests.memory_bytes",
                "must be at least server.max_message_bytes",
            ),
            (
                !self.rest.enabled && self.rest.listen.0.is_some(),
                "rest.listen",
                "must be off where rest.enabled is false",
            ),
            (
                self.followed_store().is_some() && !self.standby.name.is_empty(),
                "standby.name",
                "must be empty where standby.follow is the URL of backups: the primary does not know such a standby",
            ),
            (
                self.bulkload.directories.iter().any(|path| !path.is_absolute()),
                "bulkload.directories",
                "must be absolute paths",
            ),
        ]
        .into_iter()
        .filter(|(is_wrong, ..)| *is_wrong)
        .map(|(_, key, message)| ConfigError::new(key, message))
        .collect()
    }

    /// Addresses that other machines can reach, unless that is accepted.
    fn refused_addresses(&self) -> Vec<ConfigError> {
        // A standby without data gets both from its primary, and is checked again before it serves.
        if !self.standby.follow.is_empty() && !self.data.dir.join("CURRENT").exists() {
            return Vec::new();
        }
        let open = self.ports().into_iter().filter(|(_, listen)| listen.is_open());
        open.filter(|_| !self.server.insecure && !self.is_secured())
            .map(|(key, listen)| {
                ConfigError::new(
                    key,
                    format!(
                        "{listen} is not a loopback address, and this server has {}: anybody who reaches the port \
                         could read and delete everything. Make them with `basalt certificate create` and `basalt \
                         user create`, or set server.insecure = true (--insecure) to accept that",
                        self.missing()
                    ),
                )
            })
            .collect()
    }

    /// URL of the backups that this server follows as a standby, if it follows those.
    pub fn followed_store(&self) -> Option<&str> {
        Some(self.standby.follow.as_str()).filter(|follow| basalt_backup::Store::is_url(follow))
    }

    /// The missing part of the protection against strangers.
    fn missing(&self) -> &'static str {
        match (self.tls_files().is_some(), self.authenticates()) {
            (false, false) => "neither a certificate nor users",
            (false, true) => "no certificate",
            _ => "no users",
        }
    }

    fn ports(&self) -> Vec<(&'static str, &Address)> {
        let rest = self.rest.listen.0.as_ref();
        [
            ("server.listen", &self.server.listen),
            ("http.listen", &self.http.listen),
        ]
        .into_iter()
        .chain(rest.map(|listen| ("rest.listen", listen)))
        .collect()
    }

    /// Describes the ports that other machines can reach, and the risk; `None` when there are none.
    pub fn exposure(&self) -> Option<String> {
        if self.is_secured() {
            None
        } else {
            address::exposure(&self.ports(), self.missing())
        }
    }

    fn table(&self) -> toml::Table {
        toml::Table::try_from(self).expect("settings are plain values")
    }

    /// The effective settings, each as `section.key` and its value in TOML, sorted by name.
    pub fn settings(&self) -> Vec<(String, String)> {
        let table = self.table();
        let mut settings = Vec::new();
        for (section, values) in &table {
            for (key, value) in values.as_table().into_iter().flatten() {
                settings.push((format!("{section}.{key}"), value.to_string()));
            }
        }
        settings
    }

    /// The settings as `section.key = value` lines.
    pub fn lines(&self) -> Vec<String> {
        let settings = self.settings().into_iter();
        settings
            .map(|(name, value)| format!("{name} = {value}"))
            .collect()
    }

    /// The engine's share of the settings.
    pub fn engine_options(&self) -> basalt_engine::options::Options {
        use std::time::Duration;
        basalt_engine::options::Options {
            wal_sync: match self.wal.sync {
                WalSync::Fsync => basalt_engine::options::WalSync::Fsync,
                WalSync::Os => basalt_engine::options::WalSync::Os,
            },
            wal_segment_bytes: self.wal.segment_bytes,
            wal_stall: Duration::from_millis(self.wal.stall_ms),
            memstore_flush_bytes: self.memstore.flush_bytes,
            memstore_block_multiplier: self.memstore.block_multiplier,
            memstore_total_bytes: self.memstore.total_bytes,
            block_cache_bytes: self.block_cache.bytes,
            direct_reads: self.block_cache.direct_reads,
            region_max_bytes: self.region.max_bytes,
            compaction_enabled: self.compaction.enabled,
            compaction_min_files: self.compaction.min_files,
            compaction_max_files: self.compaction.max_files,
            compaction_overwritten: self.compaction.overwritten,
            compaction_ratio: self.compaction.ratio,
            compaction_min_bytes: self.compaction.min_bytes,
            compaction_blocking_files: self.compaction.blocking_files,
            compaction_stripe_bytes: self.compaction.stripe_bytes,
            compaction_stripes_max: self.compaction.stripes_max,
            compaction_max_bytes_per_second: self.compaction.max_bytes_per_second,
            compaction_major_period: Duration::from_secs(self.compaction.major_period_seconds),
            flush_threads: self.flush.threads,
            compaction_threads: self.compaction.threads,
            compaction_long_threads: self.compaction.long_threads,
            compaction_long_bytes: self.compaction.long_bytes,
            disk_reserve_bytes: self.disk.reserve_bytes,
            row_lock_wait: Duration::from_millis(self.row.lock_wait_ms),
            cell_max_bytes: self.row.cell_max_bytes,
            row_max_bytes: self.row.max_bytes,
            unknown_user_code: match self.user_code.unknown {
                UnknownUserCode::Refuse => basalt_engine::options::UnknownUserCode::Refuse,
                UnknownUserCode::Ignore => basalt_engine::options::UnknownUserCode::Ignore,
            },
            nonces_max: memory::nonces_max(self.memory.total_bytes),
            ..basalt_engine::options::Options::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(overrides: &[&str]) -> Result<Config, ConfigError> {
        let set: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        Config::parse("", std::path::Path::new("f"), &set)
    }

    #[test]
    fn defaults_are_valid() {
        let config = load(&[]).unwrap();
        assert_eq!(config, Config::default());
        config.validate().unwrap();
        assert!(
            config.lines().contains(&"wal.sync = \"fsync\"".to_owned()),
            "{:?}",
            config.lines()
        );
    }

    #[test]
    fn overrides_are_typed() {
        let config = load(&[
            "wal.sync=os",
            "memstore.flush_bytes=2097152",
            "thrift.listen=127.0.0.1:0",
        ])
        .unwrap();
        assert_eq!(
            (config.wal.sync, config.memstore.flush_bytes),
            (WalSync::Os, 2_097_152)
        );
        for bad in [
            "wal",
            "wal.sync",
            "wal.sink=os",
            "wall.sync=os",
            "wal.sync=perhaps",
            "memstore.flush_bytes=-1",
        ] {
            let error = load(&[bad]).unwrap_err().to_string();
            assert!(error.contains(bad), "{error}");
        }
    }

    /// Goal: a value that no server can run with is refused by `config check`, with the limit. Method: each
    /// number at the largest value that TOML has, and known absurdities.
    #[test]
    fn absurd_values_are_refused() {
        for setting in Setting::all().filter(|setting| setting.kind() == declaration::Kind::Number) {
            let name = setting.name();
            let refused = match load(&[&format!("{name}={}", i64::MAX)]) {
                // The type of the setting holds less.
                Err(error) => error.to_string(),
                // A large total makes its parts large, too.
                Ok(config) => {
                    let problems = config.problems();
                    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
                    texts.join("\n")
                }
            };
            assert!(refused.contains(&name), "{name}: {refused}");
        }
        for (set, limit) in [
            (
                "wal.segment_bytes=2TB",
                "wal.segment_bytes: is 2000000000000, and must be 1MiB to 4GiB",
            ),
            ("server.max_message_bytes=3GiB", "must be 1KiB to 2147483647"),
            ("server.message_timeout_ms=0", "must be at least 1ms"),
            ("wal.stall_ms=200000d", "must be at most 36500d"),
            ("block_cache.bytes=1000TiB", "must be at most 64TiB"),
            ("compaction.threads=0", "must be 1 to 256"),
            ("flush.threads=100000", "must be 1 to 256"),
        ] {
            let refused = load(&[set]).unwrap().validate().unwrap_err().to_string();
            assert!(refused.contains(limit), "{set}: {refused}");
        }
    }

    #[test]
    fn kerberos_needs_its_settings_and_a_build_that_has_it() {
        load(&["kerberos.protection=[\"privacy\"]"])
            .unwrap()
            .validate()
            .unwrap();
        let both = ["kerberos.keytab=/k", "kerberos.principal=hbase/db@R"];
        let refused = |set: &[&str]| load(set).unwrap().validate().unwrap_err().to_string();
        if !basalt_security::kerberos::IS_BUILT_IN {
            for set in [&both[..], &both[..1], &both[1..]] {
                let text = refused(set);
                assert!(
                    text.contains("kerberos.keytab") && text.contains("--features kerberos"),
                    "{text}"
                );
            }
            return;
        }
        load(&both).unwrap().validate().unwrap();
        for (set, words) in [
            (&both[..1], "kerberos.principal: is empty"),
            (&both[1..], "kerberos.keytab: is empty"),
            (&[both[0], "kerberos.principal=hbase@R"], "principal of a service"),
            (
                &[both[0], both[1], "kerberos.auth_to_local=[\"x\"]"],
                "\"x\" is no rule",
            ),
            (
                &[both[0], both[1], "kerberos.protection=[\"auth\"]"],
                "\"auth\" is no protection",
            ),
            (
                &[both[0], both[1], "kerberos.http_principal=HTTP"],
                "kerberos.http_principal",
            ),
        ] {
            let text = refused(set);
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn another_address_than_loopback_needs_the_explicit_setting() {
        let mut config = load(&["thrift.listen=0.0.0.0:9090"]).unwrap();
        assert!(
            config
                .validate()
                .unwrap_err()
                .to_string()
                .contains("server.insecure")
        );
        config.server.insecure = true;
        config.validate().unwrap();
    }
}
