//! The server under load.

use basalt_client::admin::{Admin, TServerStatus};
use basalt_client::{Client, PoolOptions};
use clap::ValueEnum;

use crate::error::{During, Error, Result};

/// Where and how to reach the server.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TargetOptions {
    /// Thrift address of the server: Basalt, or HBase's Thrift server of the interface chosen.
    #[arg(long, default_value = "127.0.0.1:9090", value_name = "ADDR")]
    pub(crate) target: String,
    /// The interface to call.
    #[arg(long, default_value = "thrift2")]
    pub(crate) api: Api,
}

/// HBase's Thrift interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Api {
    /// `Hbase`, the older one.
    Thrift1,
    /// `THBaseService`.
    Thrift2,
}

impl Api {
    /// The name for reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Api::Thrift1 => "Thrift 1",
            Api::Thrift2 => "Thrift 2",
        }
    }
}

impl TargetOptions {
    /// Fails unless Thrift 2 is to be used, for a workload whose messages are made before the run.
    pub(crate) fn need_thrift2(&self, workload: &str) -> Result<()> {
        match self.api {
            Api::Thrift2 => Ok(()),
            Api::Thrift1 => Err(Error::Usage(format!(
                "{workload} sends ready-made messages of Thrift 2: use --api thrift2"
            ))),
        }
    }
}

/// A server that answers.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) client: Client,
    pub(crate) admin: Admin,
    pub(crate) api: Api,
    /// Whether it is Basalt: HBase does not have Basalt's own calls.
    pub(crate) is_basalt: bool,
    /// What it is, for the report.
    pub(crate) name: String,
}

impl Target {
    /// Connects, with room for so many connections, and finds out what the server is.
    pub(crate) async fn connect(options: &TargetOptions, connections: usize) -> Result<Target> {
        let connecting = || format!("connecting to {}", options.target);
        let client = client(options, connections)?;
        let admin = Admin::new(&client);
        let (is_basalt, name) = match admin.status().await {
            Ok(status) => (true, basalt_name(&status)),
            Err(error) if error.is_unknown_method() => (false, format!("HBase {}", options.api.name())),
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
            admin,
            api: options.api,
            is_basalt,
            name,
        })
    }
}

/// A client with room for so many connections.
pub(crate) fn client(options: &TargetOptions, connections: usize) -> Result<Client> {
    let pool = PoolOptions {
        connections_max: connections,
        ..PoolOptions::default()
    };
    Client::new(options.target.as_str(), pool).during(|| format!("connecting to {}", options.target))
}

/// What reports call a Basalt server. One that only looks like several is never taken for a cluster.
fn basalt_name(status: &TServerStatus) -> String {
    let version = &status.version;
    match &status.rehearsal_servers {
        None => format!("Basalt {version}"),
        Some(servers) => format!("Basalt {version} (a rehearsal of {} servers)", servers.len()),
    }
}
