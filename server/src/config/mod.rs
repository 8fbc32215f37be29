//! Settings: defaults, a TOML file, then `--set KEY=VALUE`, later ones winning.
//!
//! One flat list of `section.key` names, each with its unit in the name. Unknown keys, wrong types and values that cannot
//! work are refused at start with the key and the reason. The effective configuration is printed at start.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

mod hosts;
mod memory;
mod rehearsal;
mod sections;

pub use sections::{
    BlockCache, Bulkload, Compaction, Data, Disk, Flush, Http, KeyVisualizer, Log, Memory, Memstore, Metrics,
    Quota, Region, Rehearsal, Requests, Row, Scanner, Server, SlowLog, Store, Thrift, ThriftProtocol,
    ThriftTransport, Wal, WalSync,
};

/// Longest text of a configuration file; all settings with their defaults are two thousand bytes. A text takes up to a
/// thousand times its length to parse.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// More connections than any machine has file descriptors for, and few enough for the semaphore that counts them.
const MAX_CONNECTIONS: usize = 1 << 24;

/// Fewest open store files: each thread that reads or writes them may need one.
pub const OPEN_FILES_MIN: usize = 80;

/// Less does not hold a few keys for each of a thousand times.
pub(crate) const KEY_VISUALIZER_BYTES_MIN: usize = 1 << 20;

/// All settings.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the data lies.
    pub data: Data,
    /// Bulk loads.
    pub bulkload: Bulkload,
    /// Address at which clients reach the server.
    pub server: Server,
    /// The Thrift port.
    pub thrift: Thrift,
    /// The HTTP port.
    pub http: Http,
    /// Calls in hand.
    pub requests: Requests,
    /// Quotas.
    pub quota: Quota,
    /// The rehearsal of a cluster.
    pub rehearsal: Rehearsal,
    /// Scanner sessions.
    pub scanner: Scanner,
    /// Write-ahead log.
    pub wal: Wal,
    /// Memory as a whole.
    pub memory: Memory,
    /// Memstores.
    pub memstore: Memstore,
    /// Block cache.
    pub block_cache: BlockCache,
    /// Store files.
    pub store: Store,
    /// Regions.
    pub region: Region,
    /// Rows and cells.
    pub row: Row,
    /// Flushes.
    pub flush: Flush,
    /// Compactions.
    pub compaction: Compaction,
    /// The disk.
    pub disk: Disk,
    /// Metrics.
    pub metrics: Metrics,
    /// The slow log.
    pub slow_log: SlowLog,
    /// The key visualiser.
    pub key_visualizer: KeyVisualizer,
    /// Log lines.
    pub log: Log,
}

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("configuration file {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not TOML, or has an unknown key or a wrong type.
    #[error("configuration file {}: {message}", path.display())]
    Syntax {
        /// Which.
        path: PathBuf,
        /// What the parser said, with the line.
        message: String,
    },
    /// A `--set` that is not `section.key=value`, or names no setting, or has a wrong type.
    #[error("--set {argument}: {message}")]
    Set {
        /// As given.
        argument: String,
        /// What is wrong.
        message: String,
    },
    /// A value that cannot work.
    #[error("{key}: {message}")]
    Value {
        /// Which setting.
        key: &'static str,
        /// Why.
        message: String,
    },
}

impl Config {
    /// Reads the file, if any, and applies the `KEY=VALUE` overrides. Does not [`Self::validate`].
    pub fn load(file: Option<&Path>, overrides: &[String]) -> Result<Self, ConfigError> {
        let Some(path) = file else {
            return Self::parse("", Path::new(""), overrides);
        };
        let mut text = String::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(TEXT_BYTES_MAX as u64 + 1).read_to_string(&mut text))
            .map_err(|source| ConfigError::File {
                path: path.to_path_buf(),
                source,
            })?;
        Self::parse(&text, path, overrides)
    }

    /// The same from the text of a file; `path` is for errors.
    pub fn parse(text: &str, path: &Path, overrides: &[String]) -> Result<Self, ConfigError> {
        let refuse = |message: String| ConfigError::Syntax {
            path: path.to_path_buf(),
            message,
        };
        if text.len() > TEXT_BYTES_MAX {
            return Err(refuse(format!("longer than {TEXT_BYTES_MAX} bytes")));
        }
        // Parsed as a whole first, so that an error names the line of the file.
        toml::from_str::<Self>(text).map_err(|error| refuse(error.to_string()))?;
        let mut table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| refuse(error.to_string()))?;
        for argument in overrides {
            set(&mut table, argument).map_err(|message| ConfigError::Set {
                argument: argument.clone(),
                message,
            })?;
            Self::deserialize(table.clone()).map_err(|error| ConfigError::Set {
                argument: argument.clone(),
                message: error.message().to_owned(),
            })?;
        }
        memory::divide(&mut table);
        Ok(Self::deserialize(table).expect("every step on the way here was checked"))
    }

    /// Checks values against each other and against what can work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let refuse = |key, message: String| Err(ConfigError::Value { key, message });
        memory::check(self)?;
        if self.memstore.flush_bytes < 1 << 20 {
            return refuse("memstore.flush_bytes", "must be at least 1048576".into());
        }
        if self.memstore.total_bytes < self.memstore.flush_bytes {
            return refuse(
                "memstore.total_bytes",
                "must be at least memstore.flush_bytes".into(),
            );
        }
        if self.wal.segment_bytes < 1 << 20 {
            return refuse("wal.segment_bytes", "must be at least 1048576".into());
        }
        if self.wal.stall_ms == 0 {
            return refuse("wal.stall_ms", "must be at least 1".into());
        }
        if self.compaction.min_files < 2 {
            return refuse("compaction.min_files", "must be at least 2".into());
        }
        if self.compaction.max_files < self.compaction.min_files {
            return refuse(
                "compaction.max_files",
                "must be at least compaction.min_files".into(),
            );
        }
        if (1..OPEN_FILES_MIN).contains(&self.store.max_open_files) {
            return refuse(
                "store.max_open_files",
                format!(
                    "must be at least {OPEN_FILES_MIN}, or 0 for what the limit of open files has room for"
                ),
            );
        }
        if !(self.compaction.ratio.is_finite() && self.compaction.ratio > 0.0) {
            return refuse("compaction.ratio", "must be a positive number".into());
        }
        if self.memstore.block_multiplier == 0 {
            return refuse("memstore.block_multiplier", "must be at least 1".into());
        }
        if self.scanner.fetch_max_bytes == 0 {
            return refuse("scanner.fetch_max_bytes", "must be at least 1".into());
        }
        let port = self.server.advertise.rsplit_once(':').map(|(_, port)| port);
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return refuse("server.advertise", "must be HOST or HOST:PORT".into());
        }
        if !matches!(self.thrift.default_api, 1 | 2) {
            return refuse("thrift.default_api", "must be 1 or 2".into());
        }
        for (key, connections) in [
            ("thrift.max_connections", self.thrift.max_connections),
            ("http.max_connections", self.http.max_connections),
        ] {
            if !(1..=MAX_CONNECTIONS).contains(&connections) {
                return refuse(key, format!("must be from 1 to {MAX_CONNECTIONS}"));
            }
        }
        if self.thrift.max_message_bytes < 1 << 10 {
            return refuse("thrift.max_message_bytes", "must be at least 1024".into());
        }
        if self.requests.memory_bytes < self.thrift.max_message_bytes as u64 {
            return refuse(
                "requests.memory_bytes",
                "must be at least thrift.max_message_bytes".into(),
            );
        }
        if self.requests.max_waiting == 0 {
            return refuse("requests.max_waiting", "must be at least 1".into());
        }
        if let Some(path) = self.bulkload.directories.iter().find(|path| !path.is_absolute()) {
            return refuse(
                "bulkload.directories",
                format!("must be absolute paths, and {} is not", path.display()),
            );
        }
        rehearsal::check(&self.rehearsal)?;
        hosts::check(&self.http.allowed_hosts)?;
        if self.slow_log.entries == 0 {
            return refuse(
                "slow_log.entries",
                "must be at least 1; slow_log.enabled = false records nothing".into(),
            );
        }
        if (1..KEY_VISUALIZER_BYTES_MIN).contains(&self.key_visualizer.bytes) {
            return refuse(
                "key_visualizer.bytes",
                format!("must be at least {KEY_VISUALIZER_BYTES_MIN}, or 0"),
            );
        }
        if self.key_visualizer.sample_every == 0 {
            return refuse(
                "key_visualizer.sample_every",
                "must be at least 1; key_visualizer.bytes = 0 records nothing".into(),
            );
        }
        if self.scanner.lease_ms == 0 {
            return refuse("scanner.lease_ms", "must be at least 1".into());
        }
        for (key, listen) in [
            ("thrift.listen", self.thrift.listen),
            ("http.listen", self.http.listen),
        ] {
            if hosts::is_open(listen) && !self.thrift.insecure_no_auth {
                return refuse(
                    key,
                    format!(
                        "{listen} is not a loopback address, and this server has neither authentication nor TLS yet: \
                         anybody who reaches the port could read and delete everything. Set thrift.insecure_no_auth = true \
                         to accept that"
                    ),
                );
            }
        }
        Ok(())
    }

    /// Describes the ports that other machines can reach, and the risk; `None` when there are none.
    pub fn exposure(&self) -> Option<String> {
        hosts::exposure(&[
            ("thrift.listen", self.thrift.listen),
            ("http.listen", self.http.listen),
        ])
    }

    /// The effective settings, each as `section.key` and its value in TOML, sorted by name.
    pub fn settings(&self) -> Vec<(String, String)> {
        let table = toml::Table::try_from(self).expect("settings are plain values");
        let mut settings = Vec::new();
        for (section, values) in &table {
            for (key, value) in values.as_table().into_iter().flatten() {
                settings.push((format!("{section}.{key}"), value.to_string()));
            }
        }
        settings
    }

    /// The same as `section.key = value` lines.
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
            compaction_ratio: self.compaction.ratio,
            compaction_min_bytes: self.compaction.min_bytes,
            compaction_blocking_files: self.compaction.blocking_files,
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
            ..basalt_engine::options::Options::default()
        }
    }
}

/// Puts one `section.key=value` into the table. A value that is not TOML is taken as a string.
fn set(table: &mut toml::Table, argument: &str) -> Result<(), String> {
    let (key, value) = argument
        .split_once('=')
        .ok_or("not of the form section.key=value")?;
    let (section, key) = key
        .trim()
        .split_once('.')
        .ok_or("the name has no section; settings are called section.key")?;
    let value = value.trim();
    let value = format!("v = {value}")
        .parse::<toml::Table>()
        .ok()
        .and_then(|mut table| table.remove("v"))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()));
    table
        .entry(section)
        .or_insert_with(|| toml::Value::Table(toml::Table::new()))
        .as_table_mut()
        .ok_or_else(|| format!("{section} is not a section"))?
        .insert(key.to_owned(), value);
    Ok(())
}

/// What `basalt serve` was given besides the file and `--set`; wins over both.
#[derive(Debug, Default)]
pub struct CommandLine {
    /// `--data-dir`
    pub data_dir: Option<PathBuf>,
    /// `--thrift-listen`
    pub thrift_listen: Option<SocketAddr>,
    /// `--http-listen`
    pub http_listen: Option<SocketAddr>,
}

impl CommandLine {
    /// Puts the given values into `config`.
    pub fn apply(self, config: &mut Config) {
        if let Some(dir) = self.data_dir {
            config.data.dir = dir;
        }
        if let Some(listen) = self.thrift_listen {
            config.thrift.listen = listen;
        }
        if let Some(listen) = self.http_listen {
            config.http.listen = listen;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(overrides: &[&str]) -> Result<Config, ConfigError> {
        Config::load(
            None,
            &overrides
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>(),
        )
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

    #[test]
    fn a_file_with_an_unknown_key_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("basalt.toml");
        std::fs::write(&path, "[wal]\nsegment_bytes = 4194304\n").unwrap();
        assert_eq!(Config::load(Some(&path), &[]).unwrap().wal.segment_bytes, 4 << 20);
        std::fs::write(&path, "[wal]\nsegments = 4\n").unwrap();
        let error = Config::load(Some(&path), &[]).unwrap_err().to_string();
        assert!(error.contains("segments") && error.contains("line 2"), "{error}");
    }

    /// A file of any length is refused without being read to its end.
    #[test]
    fn a_file_that_is_too_long_is_refused() {
        let error = Config::load(Some(Path::new("/dev/zero")), &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("/dev/zero: longer than 65536 bytes"), "{error}");
        Config::parse(&"\n".repeat(TEXT_BYTES_MAX), Path::new("f"), &[]).unwrap();
    }

    #[test]
    fn another_address_than_loopback_needs_the_explicit_setting() {
        let mut config = load(&["thrift.listen=0.0.0.0:9090"]).unwrap();
        assert!(
            config
                .validate()
                .unwrap_err()
                .to_string()
                .contains("thrift.insecure_no_auth")
        );
        config.thrift.insecure_no_auth = true;
        config.validate().unwrap();
    }
}
