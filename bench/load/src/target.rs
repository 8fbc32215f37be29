//! The server under load.

use std::time::Duration;

use basalt_client::admin::{Admin, ServerStatus};
use basalt_client::native::{BASE_ZNODE, Cluster, ClusterOptions, Registry, ZOOKEEPER_PORT};
use basalt_client::security::SecurityArguments;
use basalt_client::{Client, ConnectionOptions, PoolOptions};
use clap::parser::ValueSource;
use clap::{ArgMatches, ValueEnum};

use crate::error::{During, Error, Result};

/// Longest time of one operation of native RPC with its retries.
const OPERATION_TIMEOUT: Duration = Duration::from_mins(1);

/// Where and how to reach the server.
#[derive(Clone, Debug, clap::Args)]
pub struct TargetOptions {
    /// Address of the server: Basalt, or HBase's Thrift server of the interface chosen. With --api native,
    /// ZooKeeper's address; Basalt answers on one port.
    #[arg(
        long,
        env = "BASALT_TARGET",
        default_value = "127.0.0.1:9090",
        value_name = "ADDR"
    )]
    pub target: String,
    /// The interface to call.
    #[arg(long, default_value = "thrift2")]
    pub api: Api,
    /// TLS and the login.
    #[command(flatten)]
    pub security: SecurityArguments,
}

/// HBase's interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Api {
    /// `Hbase`, the older one.
    Thrift1,
    /// `THBaseService`.
    Thrift2,
    /// The protocol of HBase's Java client.
    Native,
}

/// Where the address of [`TargetOptions::target`] comes from. It has no option of its own; it stands in front
/// of the target's options in a command, because those take the address out of what was parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetSource(Option<ValueSource>);

impl TargetSource {
    /// Checks the address for a command that starts a server of its own. One from the command line is an
    /// error, since a person asked for two servers. One from the environment may be meant for other
    /// commands (`basalt --ephemeral` sets it): it is ignored, and the line that says so is returned.
    pub fn in_rehearsal(self, address: &str) -> Result<Option<String>> {
        match self.0 {
            Some(ValueSource::CommandLine) => Err(Error::Usage(format!(
                "--rehearse starts a server of its own, and --target {address} names another: leave one of them out"
            ))),
            Some(ValueSource::EnvVariable) => Ok(Some(format!(
                "--rehearse starts a server of its own: BASALT_TARGET={address} is ignored"
            ))),
            _ => Ok(None),
        }
    }
}

impl clap::FromArgMatches for TargetSource {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        Ok(TargetSource(matches.value_source("target")))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for TargetSource {
    fn augment_args(command: clap::Command) -> clap::Command {
        command
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        command
    }
}

impl Api {
    /// The name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Api::Thrift1 => "Thrift 1",
            Api::Thrift2 => "Thrift 2",
            Api::Native => "native RPC",
        }
    }

    /// The value of `--api`.
    pub fn option(self) -> &'static str {
        match self {
            Api::Thrift1 => "thrift1",
            Api::Thrift2 => "thrift2",
            Api::Native => "native",
        }
    }
}

impl TargetOptions {
    /// Fails unless Thrift 2 is to be used, for a workload whose messages are made before the run.
    pub(crate) fn need_thrift2(&self, workload: &str) -> Result<()> {
        match self.api {
            Api::Thrift2 => Ok(()),
            Api::Thrift1 | Api::Native => Err(Error::Usage(format!(
                "{workload} sends ready-made messages of Thrift 2: use --api thrift2"
            ))),
        }
    }

    /// Fails with TLS or a login, for a workload that writes ready-made messages to plain sockets.
    pub(crate) fn need_plain(&self, workload: &str) -> Result<()> {
        if self.security.is_none() {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "{workload} sends ready-made messages without TLS and without a login: leave these options out, and \
             measure a server without users"
        )))
    }

    /// Fails with native RPC, for a workload that does not support it.
    pub fn need_thrift(&self, workload: &str) -> Result<()> {
        match self.api {
            Api::Thrift1 | Api::Thrift2 => Ok(()),
            Api::Native => Err(Error::Usage(format!(
                "{workload} does not have native RPC: use --api thrift1 or thrift2"
            ))),
        }
    }
}

/// A server that answers.
#[derive(Debug)]
pub struct Target {
    /// The Thrift client. With native RPC, only for Basalt's own calls.
    pub client: Client,
    /// The client of native RPC.
    pub(crate) cluster: Option<Cluster>,
    /// Basalt's own calls.
    pub admin: Admin,
    /// The interface to call.
    pub api: Api,
    /// Whether it is Basalt: HBase does not have Basalt's own calls.
    pub is_basalt: bool,
    /// Name and version of the server, for the report.
    pub name: String,
}

/// How a gateway refuses Basalt's own calls about tables: those are in its cluster.
const NOT_HERE: &str = "java.lang.UnsupportedOperationException";

impl Target {
    /// Connects, with room for `connections` connections, and detects the server.
    pub async fn connect(options: &TargetOptions, connections: usize) -> Result<Target> {
        let connecting = || format!("connecting to {}", options.target);
        let cluster = match options.api {
            Api::Native => {
                let cluster = cluster(options)?;
                cluster.cluster_id().await.during(connecting)?;
                Some(cluster)
            }
            Api::Thrift1 | Api::Thrift2 => None,
        };
        let client = client(options, connections)?;
        let admin = Admin::new(&client);
        let (is_basalt, name) = match admin.status().await {
            Ok(status) => (true, basalt_name(&status)),
            Err(error) if error.is_unknown_method() => (false, format!("HBase {}", options.api.name())),
            Err(basalt_client::Error::Server { message, .. }) if message.starts_with(NOT_HERE) => {
                (false, format!("Basalt gateway {}", options.api.name()))
            }
            // A cluster's ZooKeeper does not answer Thrift calls.
            Err(error @ basalt_client::Error::Login { .. }) => return Err(error).during(connecting),
            Err(_) if cluster.is_some() => (false, format!("HBase {}", options.api.name())),
            Err(basalt_client::Error::Connect { source, .. }) => {
                return Err(Error::NoServer {
                    target: options.target.clone(),
                    source,
                });
            }
            Err(source) => return Err(source).during(connecting),
        };
        Ok(Target {
            client,
            cluster,
            admin,
            api: options.api,
            is_basalt,
            name,
        })
    }
}

/// A client with room for `connections` connections.
pub(crate) fn client(options: &TargetOptions, connections: usize) -> Result<Client> {
    let during = || format!("connecting to {}", options.target);
    let pool = PoolOptions {
        connections_max: connections,
        connection: ConnectionOptions {
            security: options.security.security().during(during)?,
            ..ConnectionOptions::default()
        },
        ..PoolOptions::default()
    };
    Client::new(options.target.as_str(), pool).during(during)
}

/// A client of the native protocol, with connections of its own.
pub(crate) fn cluster(options: &TargetOptions) -> Result<Cluster> {
    let during = || format!("connecting to {}", options.target);
    let registry = Registry::zookeeper(&options.target, ZOOKEEPER_PORT, BASE_ZNODE).during(during)?;
    let mut cluster = ClusterOptions::new(registry);
    cluster.operation_timeout = OPERATION_TIMEOUT;
    cluster.security = options.security.security().during(during)?;
    Ok(Cluster::new(cluster))
}

/// Name of a Basalt server in reports. One that only looks like several is never taken for a
/// cluster.
fn basalt_name(status: &ServerStatus) -> String {
    let version = &status.version;
    match &status.rehearsal_servers {
        None => format!("Basalt {version}"),
        Some(servers) => format!("Basalt {version} (a rehearsal of {} servers)", servers.len()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        source: TargetSource,
        #[command(flatten)]
        target: TargetOptions,
    }

    /// The address is known as the command line's, and still reaches the options behind.
    #[test]
    fn a_target_of_the_command_line_is_told_from_the_default() {
        let given = Program::try_parse_from(["program", "--target", "h:1"]).unwrap();
        assert_eq!(given.target.target, "h:1");
        assert_eq!(given.source, TargetSource(Some(ValueSource::CommandLine)));
        let refused = given.source.in_rehearsal("h:1").unwrap_err();
        assert!(
            matches!(&refused, Error::Usage(text) if text.contains("--target h:1")),
            "{refused}"
        );
    }

    #[test]
    fn a_target_of_the_environment_is_ignored_with_a_line() {
        let line = TargetSource(Some(ValueSource::EnvVariable)).in_rehearsal("h:1");
        assert_eq!(
            line.unwrap().unwrap(),
            "--rehearse starts a server of its own: BASALT_TARGET=h:1 is ignored"
        );
        for source in [None, Some(ValueSource::DefaultValue)] {
            assert_eq!(TargetSource(source).in_rehearsal("h:1").unwrap(), None);
        }
    }
}
