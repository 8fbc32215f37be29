//! `basalt gateway`: a server whose tables are in another cluster. Its data directory has users,
//! certificates, quotas and the history of the key visualizer, and no tables.

use super::command_line::Gateway;
use super::{Outcome, Start};
use crate::config::{ConfigError, Loaded, Setting, Source};
use crate::serve::Given;
use crate::service::remote;

/// Settings that differ from the defaults in this mode, as arguments of `--set`. Later ones win.
const SETTINGS: [&str; 4] = [
    "data.dir=basalt-gateway",
    // Few changes of quotas, and no tables.
    "wal.segment_bytes=1MiB",
    "block_cache.bytes=0",
    // Keys of production traffic.
    "key_visualizer.sample_every=64",
];

/// Sections that are about tables in this process.
const OF_TABLES: [&str; 18] = [
    "backup",
    "block_cache",
    "bulkload",
    "changes",
    "compaction",
    "disk",
    "flush",
    "memstore",
    "region",
    "rehearsal",
    "replication",
    "row",
    "standby",
    "store",
    "user_code",
    "wal",
    // Clients do not learn the gateway's address from it.
    "server.advertise",
    "metrics",
];

/// Runs `basalt gateway`.
pub(super) fn run(arguments: Gateway, before_threads: fn() -> bool) -> Outcome {
    let mut inputs = arguments.settings.inputs(SETTINGS.map(str::to_owned).to_vec());
    let cluster = arguments.cluster.map(|key| format!("gateway.cluster={key}"));
    inputs.set.extend(cluster);
    let start = Start {
        inputs,
        is_insecure: arguments.protection.insecure,
        is_secure: arguments.protection.secure,
        is_ephemeral: false,
        check: check_settings,
        given: Given {
            is_gateway: true,
            listen_file: arguments.listen_file,
            ..Given::default()
        },
    };
    start.run(before_threads)
}

/// Whether a setting was given, and is not a default of a mode.
fn is_given(loaded: &Loaded, setting: Setting) -> bool {
    !matches!(
        loaded.source(setting),
        Source::Default | Source::Derived | Source::Ephemeral
    )
}

/// Refuses settings without effect on a gateway, and a cluster that is none.
fn check_settings(loaded: &Loaded) -> Result<(), ConfigError> {
    let is_of_tables = |setting: &Setting| {
        OF_TABLES.contains(&setting.section()) || OF_TABLES.contains(&setting.name().as_str())
    };
    if let Some(setting) = Setting::all().find(|setting| is_of_tables(setting) && is_given(loaded, *setting))
    {
        return Err(ConfigError::new(
            loaded.source(setting).to_string(),
            format!(
                "{} has no effect on a gateway, whose tables are in the cluster: remove it",
                setting.name()
            ),
        ));
    }
    let key = &loaded.config.gateway.cluster;
    if key.is_empty() {
        return Err(ConfigError::new(
            "gateway.cluster",
            "names no cluster: give its key, as in `basalt gateway --cluster zk1,zk2:2181:/hbase`, or \
             hbase+rpc://host:port",
        ));
    }
    match remote::registry(key) {
        Ok(_) => Ok(()),
        Err(error) => Err(ConfigError::new("gateway.cluster", error)),
    }
}

/// Refuses settings of a gateway for a server that is none.
pub(super) fn refuse_settings(loaded: &Loaded) -> Result<(), ConfigError> {
    let given = Setting::all().find(|setting| setting.section() == "gateway" && is_given(loaded, *setting));
    match given {
        None => Ok(()),
        Some(setting) => Err(ConfigError::new(
            loaded.source(setting).to_string(),
            format!(
                "{} is a setting of `basalt gateway`, and this is `basalt serve`",
                setting.name()
            ),
        )),
    }
}
