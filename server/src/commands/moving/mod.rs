//! `basalt move`: moves a table of a running Basalt to another cluster, while clients write to it.
//!
//! | step | module | changes | way back |
//! | --- | --- | --- | --- |
//! | check | `steps` | nothing | none is needed |
//! | peer | `steps` | scope 1 of the families here; a disabled peer here, for this table alone | `--undo` |
//! | table | `steps` | the table there, with this schema and these split keys | `--undo` |
//! | copy | `copy`, `sender` | cells there | `--undo` |
//! | catch up | `steps` | the peer is enabled | `--undo` |
//! | compare | `compare`, `rows` | nothing | `--undo` |
//! | back peer | `steps` | a peer there, back to here | `--undo` |
//! | switch | `switch` | the table is read only here; clients go there | by itself on failure; later `--undo` |
//! | finish | `switch` | peers and scopes are removed | none |
//!
//! `side` has the calls on one cluster, `state` the file with the state, `ranges` the rows that are copied,
//! `progress` a line on standard error.
//!
//! Invariants:
//! - The log is kept from before the first copied cell on, since the peer is there first: what the copy
//!   misses, the peer sends.
//! - At most one side takes writes of clients that this program has asked for: here until the switch, there
//!   from its end on. When the switch fails, the table here is writable again.
//! - The state is durable before a step begins, so that the program can be killed at any moment, and run
//!   again.
//!
//! The program only makes calls: on both clusters by native RPC, and on this one's HTTP port to wait for the
//! peer.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use basalt_client::native::{Cluster, ClusterOptions, Registry};
use basalt_client::security::{Login, Security, Tls};

use super::command_line::{Move, Settings};
use super::replication::{self, Waited};
use super::{Outcome, on_runtime};
use side::Side;
use state::{State, Step};

mod compare;
mod copy;
mod progress;
mod ranges;
mod rows;
mod sender;
mod side;
mod state;
mod steps;
mod switch;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Longest time of an operation on a cluster, with its repetitions.
const OPERATION: Duration = Duration::from_mins(3);

/// Attempts of an operation after the first.
const RETRIES: u32 = 8;

/// Longest time to connect to a server.
const CONNECT: Duration = Duration::from_secs(5);

/// Most milliseconds between the clocks. HBase's servers report their time every three seconds.
const CLOCKS_MS_MAX: u64 = 10_000;

/// A move.
struct Moving {
    wanted: Move,
    here: Arc<Side>,
    there: Arc<Side>,
    /// Address of this cluster's HTTP port.
    http: String,
    path: PathBuf,
    /// Keeps other processes from the state.
    _lock: File,
    state: State,
}

/// Runs the command.
pub(super) fn run(wanted: &Move) -> Outcome {
    on_runtime(drive(wanted))
}

async fn drive(wanted: &Move) -> Result<ExitCode, Failure> {
    let path = wanted.state.clone();
    let path = path.unwrap_or_else(|| State::default_path(&wanted.table));
    let mut moving = match State::load(&path)? {
        Some(_) => resume(wanted, path).await?,
        None if wanted.undo || wanted.finish => {
            return Err(format!(
                "there is no move of table {}: {} does not exist; --state names another file",
                wanted.table,
                path.display()
            )
            .into());
        }
        None => steps::begin(wanted, path).await?,
    };
    if wanted.undo {
        switch::undo(&mut moving).await
    } else if wanted.finish {
        switch::finish(&mut moving).await
    } else {
        steps::go_on(&mut moving).await
    }
}

/// Goes on with a move that has begun.
async fn resume(wanted: &Move, path: PathBuf) -> Result<Moving, Failure> {
    let lock = State::lock(&path)?;
    let state = State::load(&path)?.ok_or_else(|| format!("{} is gone", path.display()))?;
    let is_other = |asked: &Option<String>, known: &str| asked.as_ref().is_some_and(|asked| asked != known);
    if state.table != wanted.table || is_other(&wanted.to, &state.to) {
        return Err(format!(
            "{} is the state of the move of table {} to {}: name that table and cluster, or another file with --state",
            path.display(),
            state.table,
            state.to
        )
        .into());
    }
    let moving = Moving {
        here: Arc::new(here(wanted)?),
        there: Arc::new(there(wanted, &state.to)?),
        http: replication::address(wanted.http.clone())?,
        wanted: wanted.clone(),
        path,
        _lock: lock,
        state,
    };
    let found = moving.here.cluster.cluster_id().await?;
    moving.check_id("this cluster", &found, 0)?;
    Ok(moving)
}

/// This cluster.
fn here(wanted: &Move) -> Result<Side, Failure> {
    let address = match &wanted.from {
        Some(address) => address.clone(),
        None => Settings::default().load()?.config.server.listen.to_string(),
    };
    if wanted.login.user.is_some() {
        return Err(
            "native RPC, by which a table is moved, takes no passwords: give --token instead of --user"
                .into(),
        );
    }
    let mut security = Security::none();
    if let Some(ca) = &wanted.login.ca {
        security = security.tls(Tls::new(ca)?);
    }
    if let Some(token) = &wanted.login.token {
        security = security.login(Login::token_file(token)?);
    }
    let registry = Registry::bootstrap(&address)?;
    side(registry, security, &wanted.table)
}

/// The other cluster. As with a peer, there is no login and no TLS.
fn there(wanted: &Move, key: &str) -> Result<Side, Failure> {
    side(Registry::of_cluster_key(key)?, Security::none(), &wanted.table)
}

fn side(registry: Registry, security: Security, table: &str) -> Result<Side, Failure> {
    let cluster = Cluster::new(ClusterOptions {
        security,
        connect_timeout: CONNECT,
        operation_timeout: OPERATION,
        retries: RETRIES,
        tags: true,
        ..ClusterOptions::new(registry)
    });
    Ok(Side::new(cluster, table)?)
}

impl Moving {
    fn save(&self) -> Result<(), Failure> {
        self.state.save(&self.path)
    }

    /// Notes durably that a step is next.
    fn enter(&mut self, step: Step) -> Result<(), Failure> {
        self.state.step = step;
        self.save()
    }

    /// Fails if a cluster is another one than at the beginning.
    fn check_id(&self, name: &str, found: &str, index: usize) -> Result<(), Failure> {
        let known = &self.state.clusters[index];
        if found == known {
            return Ok(());
        }
        Err(
            format!("{name} has the id {found}, and had {known} when the move began: it is another cluster")
                .into(),
        )
    }

    /// Fails if the other cluster is another one than at the beginning.
    async fn check_there(&self) -> Result<(), Failure> {
        let found = self
            .there
            .cluster
            .cluster_id()
            .await
            .map_err(|error| format!("the other cluster, {}, does not answer: {error}", self.state.to))?;
        self.check_id("the other cluster", &found, 1)
    }

    /// Waits until the peer has everything that was written here before.
    async fn wait(&self, limit: Duration) -> Result<Waited, Failure> {
        replication::wait(&self.http, &self.wanted.login, &self.state.peer, Some(limit)).await
    }

    /// The command that goes on with this move.
    fn command(&self, option: &str) -> String {
        let (wanted, login) = (&self.wanted, &self.wanted.login);
        let addresses = [("--from", &wanted.from), ("--http", &wanted.http)];
        let addresses = addresses
            .into_iter()
            .filter_map(|(name, address)| Some(format!(" {name} {}", address.as_ref()?)));
        let paths = [
            ("--state", &wanted.state),
            ("--ca", &login.ca),
            ("--token", &login.token),
        ];
        let paths = paths
            .into_iter()
            .filter_map(|(name, path)| Some(format!(" {name} {}", path.as_ref()?.display())));
        let given: String = addresses.chain(paths).collect();
        format!("basalt move {}{given} {option}", self.state.table)
            .trim_end()
            .to_owned()
    }
}
