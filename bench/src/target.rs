//! The server under load.

use basalt_client::admin::Admin;
use basalt_client::{Client, PoolOptions};
use clap::ValueEnum;

use crate::error::{During, Result};

/// Where and how to reach the server.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TargetOptions {
    /// Thrift address of the server: Basalt, or HBase's Thrift 2 server.
    #[arg(long, default_value = "127.0.0.1:9090", value_name = "ADDR")]
    pub(crate) target: String,
    /// The interface to call.
    #[arg(long, default_value = "thrift2")]
    pub(crate) api: Api,
}

/// HBase's Thrift interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Api {
    /// `THBaseService`.
    Thrift2,
}

/// A server that answers.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) client: Client,
    pub(crate) admin: Admin,
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
            Ok(status) => (true, format!("Basalt {}", status.version)),
            Err(error) if error.is_unknown_method() => (false, "HBase Thrift 2".to_owned()),
            Err(source) => return Err(source).during(connecting),
        };
        Ok(Target {
            client,
            admin,
            is_basalt,
            name,
        })
    }
}

/// Clients with one connection each. Basalt lets only the connection that opened a scanner use it, and a pool hands out
/// any of its connections, so scans that run at once are spread over these.
pub(crate) fn single_connections(options: &TargetOptions, count: usize) -> Result<Vec<Client>> {
    (0..count).map(|_| client(options, 1)).collect()
}

fn client(options: &TargetOptions, connections: usize) -> Result<Client> {
    let pool = PoolOptions {
        connections_max: connections,
        ..PoolOptions::default()
    };
    Client::new(options.target.as_str(), pool).during(|| format!("connecting to {}", options.target))
}
