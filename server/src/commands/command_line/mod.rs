//! The command line: its definition, and its other forms (completions, man pages).
//!
//! | module | options of |
//! | --- | --- |
//! | `login` | commands that reach a server with users |
//! | `moving` | `move` and `replication` |
//! | `rate` | numbers of bytes |

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

use super::Outcome;
use crate::VERSION;
use crate::config::{Address, Config, ConfigError, Format, Inputs, Loaded};
pub(crate) use login::Login;
pub(crate) use moving::{Move, MoveStep, ReplicationCommand};
use rate::rate;
pub(crate) use standby::StandbyCommand;

mod login;
mod moving;
mod rate;
mod standby;

/// A single-node wide-column server for Apache HBase clients.
#[derive(Debug, Parser)]
#[command(name = "basalt", version = VERSION, args_conflicts_with_subcommands = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) serve: Serve,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve (the default).
    Serve(Serve),
    /// Serve the tables of another cluster, an HBase or a Basalt, over Thrift and REST. Native clients go to
    /// the cluster themselves.
    Gateway(Gateway),
    /// Verify every checksum and reference offline; exit 0 only when all is well.
    Check {
        /// The data directory.
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
    },
    /// Print a store file, WAL segment or manifest for people.
    Dump {
        /// The file.
        file: PathBuf,
        /// Print every cell of a store file too.
        #[arg(long)]
        cells: bool,
    },
    /// Write a snapshot as files that HBase, MapReduce and Spark read. The server may run.
    ExportSnapshot {
        /// The snapshot.
        name: String,
        /// The directory: an HBase root directory, which is created.
        #[arg(long, value_name = "ROOT")]
        to: PathBuf,
        #[command(flatten)]
        dir: DataDir,
    },
    /// Take over a snapshot from an HBase root directory, into a stopped server's data directory or a running
    /// server.
    ImportSnapshot(ImportSnapshot),
    /// Move a table to another cluster while it is written to: an HBase, or another Basalt. May be stopped
    /// and run again at any time; stops before the switch of the clients.
    Move(Move),
    /// Wait for a replication peer of a running server.
    Replication {
        #[command(subcommand)]
        command: ReplicationCommand,
    },
    /// Make a standby the primary. The primary takes no more calls first, if it answers, and nothing is lost
    /// then.
    Promote {
        /// Address of the standby's HTTP port [default: that of the settings].
        #[arg(long, value_name = "ADDR")]
        http: Option<String>,
        #[command(flatten)]
        login: Login,
    },
    /// Look at standbys, and remove one.
    Standby {
        #[command(subcommand)]
        command: StandbyCommand,
    },
    /// Print or check the settings that a server would run with.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Ask a running server whether it is ready; exit 0 only when it is.
    Health {
        /// Address of its HTTP port [default: that of the settings].
        #[arg(long, value_name = "ADDR")]
        http: Option<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Create and remove users; works on the data directory, whether the server runs or not.
    User {
        #[command(subcommand)]
        command: UserCommand,
    },
    /// Issue and revoke tokens: files with which HBase's Java clients log in.
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Make certificates by an authority of the data directory's own.
    Certificate {
        #[command(subcommand)]
        command: CertificateCommand,
    },
    /// Back up a running server, or a stopped one's data directory, into a store.
    Backup(Backup),
    /// List, verify and prune backups.
    Backups {
        #[command(subcommand)]
        command: BackupsCommand,
    },
    /// Make a data directory of a backup.
    Restore(Restore),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write man pages.
    Man {
        /// An existing directory.
        dir: PathBuf,
    },
}

/// A snapshot that is to be taken over.
#[derive(Debug, Args)]
pub(crate) struct ImportSnapshot {
    /// The HBase root directory.
    pub(crate) root: PathBuf,
    /// The snapshot.
    pub(crate) name: String,
    /// Into the running server with this HTTP address, which reads the directory itself.
    #[arg(long, value_name = "ADDR")]
    pub(crate) into: Option<String>,
    #[command(flatten)]
    pub(crate) login: Login,
    #[command(flatten)]
    pub(crate) dir: DataDir,
}

/// A backup that is to be made.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// Where to: file:/DIR, s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH. The server opens it.
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// Address of the running server's HTTP port [default: that of the settings].
    #[arg(long, value_name = "ADDR", conflicts_with = "data_dir")]
    pub(crate) from: Option<String>,
    /// Data directory of a stopped server.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// File with the key that encrypts the backup: openssl rand -hex 32. The server reads it.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Most bytes per second: 50MB.
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    pub(crate) max_rate: Option<u64>,
    /// Transfers at a time, 1 to 6.
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=6))]
    pub(crate) parallel: u8,
    /// Copy users, tokens and keys, too, although the backup is not encrypted.
    #[arg(long)]
    pub(crate) secrets_in_clear: bool,
    #[command(flatten)]
    pub(crate) login: Login,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackupsCommand {
    /// List backups.
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Read every byte of all backups, or of some; exit 0 only when all is well.
    Verify {
        /// Ids of backups [default: all].
        ids: Vec<String>,
        /// Most bytes per second: 50MB.
        #[arg(long, value_name = "BYTES", value_parser = rate)]
        max_rate: Option<u64>,
        #[command(flatten)]
        place: Place,
    },
    /// Remove old backups, and what only they need. The newest one always stays.
    Prune {
        /// Keep backups that are younger than this: 7d.
        #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
        keep: std::time::Duration,
        #[command(flatten)]
        place: Place,
    },
}

/// Where backups are.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// URL of the backups.
    #[arg(long, value_name = "URL")]
    pub(crate) at: String,
    /// File with the key of encrypted backups.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

/// A restore.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// URL of the backups.
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,
    /// The data directory to be made: a new or empty one. With --into a directory for the work, which is
    /// removed at the end.
    #[arg(long, value_name = "DIR", required_unless_present = "list")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Put the table of --table into the running server with this HTTP address, on the same machine.
    #[arg(long, value_name = "ADDR", requires_all = ["tables", "new_name"], conflicts_with_all = ["list", "new_cluster_id"])]
    pub(crate) into: Option<String>,
    /// With --into: name of the table there, which must be new.
    #[arg(long = "as", value_name = "TABLE", requires = "into")]
    pub(crate) new_name: Option<String>,
    #[command(flatten)]
    pub(crate) login: Login,
    /// Id of a backup: that state, without the log that follows it.
    #[arg(long, value_name = "ID")]
    pub(crate) backup: Option<String>,
    /// End at this point: a time (2026-11-29T12:00:00Z), or a position (a number) [default: the newest backup
    /// and the log that follows it].
    #[arg(long, value_name = "TIME|POSITION", conflicts_with = "backup", value_parser = target)]
    pub(crate) at: Option<basalt_backup::Target>,
    /// Only this table; may be given many times. Snapshots are left out then.
    #[arg(long = "table", value_name = "TABLE")]
    pub(crate) tables: Vec<String>,
    /// Leave out this family, for a copy without what is personal; may be given many times. Snapshots are
    /// left out then.
    #[arg(long, value_name = "TABLE:FAMILY", value_parser = family)]
    pub(crate) anonymise: Vec<(String, String)>,
    /// Show what can be restored.
    #[arg(long)]
    pub(crate) list: bool,
    /// Give the database a new cluster id: the old server goes on, or its peers must not mix the two.
    #[arg(long)]
    pub(crate) new_cluster_id: bool,
    /// Restore what is whole when store files cannot be: regions that need them are refused.
    #[arg(long)]
    pub(crate) skip_damaged: bool,
    /// Most bytes per second: 50MB.
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    pub(crate) max_rate: Option<u64>,
    /// Transfers at a time, 1 to 6.
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=6))]
    pub(crate) parallel: u8,
    /// File with the key of encrypted backups.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

/// Reads `TABLE:FAMILY`; the table may have a namespace.
fn family(text: &str) -> Result<(String, String), String> {
    let parts = text.rsplit_once(':');
    let parts = parts.filter(|(table, family)| !table.is_empty() && !family.is_empty());
    let (table, family) = parts.ok_or_else(|| format!("{text:?} is not TABLE:FAMILY"))?;
    Ok((table.to_owned(), family.to_owned()))
}

/// Reads a point in time or a position.
fn target(text: &str) -> Result<basalt_backup::Target, String> {
    if let Ok(position) = text.parse() {
        return Ok(basalt_backup::Target::Position(position));
    }
    let time = humantime::parse_rfc3339_weak(text)
        .map_err(|_| format!("{text:?} is no position and no time in UTC like 2026-11-29T12:00:00Z"))?;
    let since = time
        .duration_since(std::time::UNIX_EPOCH)
        .map_err(|error| error.to_string())?;
    u64::try_from(since.as_millis())
        .map(basalt_backup::Target::Time)
        .map_err(|error| error.to_string())
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print each setting with its meaning, its value, and where that comes from.
    Print {
        /// A TOML file, which can be a configuration file, or the page of all settings.
        #[arg(long, value_enum, default_value = "toml")]
        format: PrintFormat,
        #[command(flatten)]
        settings: Settings,
    },
    /// Report errors in the settings; exit 0 only when there are none.
    Check {
        #[command(flatten)]
        settings: Settings,
    },
}

/// The data directory of a command about users.
#[derive(Debug, Args)]
pub(crate) struct DataDir {
    /// The data directory.
    #[arg(
        long,
        value_name = "DIR",
        env = "BASALT_DATA_DIR",
        default_value = "basalt-data"
    )]
    pub(crate) data_dir: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Create a user; asks for a password, or reads it from standard input.
    Create {
        name: String,
        /// May do everything.
        #[arg(long)]
        superuser: bool,
        /// Groups, separated by commas.
        #[arg(long, value_delimiter = ',', value_name = "GROUPS")]
        groups: Vec<String>,
        /// Without a password: tokens and certificates only.
        #[arg(long)]
        no_password: bool,
        #[command(flatten)]
        dir: DataDir,
    },
    /// Change a user's password, groups or state. Changed passwords and disabled users end connections.
    Change {
        name: String,
        /// Ask for a new password.
        #[arg(long)]
        password: bool,
        /// New groups, separated by commas.
        #[arg(long, value_delimiter = ',', value_name = "GROUPS")]
        groups: Option<Vec<String>>,
        /// Whether the user may do everything.
        #[arg(long, value_name = "YES|NO")]
        superuser: Option<YesNo>,
        /// Whether the user is kept out.
        #[arg(long, value_name = "YES|NO")]
        disabled: Option<YesNo>,
        #[command(flatten)]
        dir: DataDir,
    },
    /// Remove a user, its tokens and its rights; ends its connections.
    Remove {
        name: String,
        #[command(flatten)]
        dir: DataDir,
    },
    /// List users.
    List {
        #[command(flatten)]
        dir: DataDir,
    },
    /// Let a user act for others: `--users`, members of `--groups`, from `--hosts`.
    Proxy {
        name: String,
        /// Users, separated by commas; * for all but superusers.
        #[arg(long, value_delimiter = ',')]
        users: Vec<String>,
        /// Groups, separated by commas.
        #[arg(long, value_delimiter = ',')]
        groups: Vec<String>,
        /// Addresses and networks, separated by commas; * for all.
        #[arg(long, value_delimiter = ',')]
        hosts: Vec<String>,
        /// Remove the rule.
        #[arg(long)]
        remove: bool,
        #[command(flatten)]
        dir: DataDir,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum YesNo {
    Yes,
    No,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Issue a token and write its file to standard output, for HADOOP_TOKEN_FILE_LOCATION.
    Create {
        name: String,
        /// How long it is valid: 12h, 30d.
        #[arg(long, default_value = "30d", value_parser = humantime::parse_duration)]
        lifetime: std::time::Duration,
        /// Print it as one line of text instead, for `Authorization: Bearer` and as a password.
        #[arg(long)]
        text: bool,
        #[command(flatten)]
        dir: DataDir,
    },
    /// Revoke a token by its number, or all of a user; ends connections.
    Revoke {
        /// The number of the token.
        number: Option<u64>,
        /// All tokens of this user.
        #[arg(
            long,
            value_name = "NAME",
            conflicts_with = "number",
            required_unless_present = "number"
        )]
        user: Option<String>,
        #[command(flatten)]
        dir: DataDir,
    },
    /// List tokens.
    List {
        #[command(flatten)]
        dir: DataDir,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CertificateCommand {
    /// Make an authority, if there is none, and a certificate of the server.
    Create {
        /// Names and addresses by which clients reach the server, separated by commas.
        #[arg(long, value_delimiter = ',', required = true, value_name = "NAMES")]
        name: Vec<String>,
        /// How long it is valid.
        #[arg(long, default_value = "825d", value_parser = humantime::parse_duration)]
        lifetime: std::time::Duration,
        #[command(flatten)]
        dir: DataDir,
    },
    /// Make a certificate of a user: certificate, authority and key in one PEM file.
    Client {
        name: String,
        /// How long it is valid.
        #[arg(long, default_value = "365d", value_parser = humantime::parse_duration)]
        lifetime: std::time::Duration,
        /// Directory of the file `client-NAME.pem`.
        #[arg(long, default_value = ".", value_name = "DIR")]
        to: PathBuf,
        #[command(flatten)]
        dir: DataDir,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum PrintFormat {
    Toml,
    Markdown,
}

impl From<PrintFormat> for Format {
    fn from(format: PrintFormat) -> Self {
        match format {
            PrintFormat::Toml => Self::Toml,
            PrintFormat::Markdown => Self::Markdown,
        }
    }
}

#[derive(Debug, Default, Args)]
pub(crate) struct Serve {
    /// Serve an empty database that is removed at exit, on free ports; print one line of JSON.
    #[arg(long, env = "BASALT_EPHEMERAL", conflicts_with = "data_dir")]
    pub(crate) ephemeral: bool,
    /// Write the line of JSON that says where the server listens to this file, when calls are accepted;
    /// remove it at a clean stop.
    #[arg(long, value_name = "FILE")]
    pub(crate) listen_file: Option<PathBuf>,
    /// With --ephemeral: a command to run. It finds the server by BASALT_TARGET and BASALT_HTTP; when it
    /// ends, the server ends with its exit code.
    #[arg(last = true, requires = "ephemeral", value_name = "COMMAND")]
    pub(crate) run: Vec<OsString>,
    /// Be a standby of the server with this HTTP address, or of the one whose backups have this URL
    /// (file:/DIR, s3:, gs:, az:): get its data, and follow it. Short for `--set standby.follow=URL`.
    #[arg(long, value_name = "URL", conflicts_with = "ephemeral")]
    pub(crate) follow: Option<String>,
    /// File with the key of encrypted backups. Short for `--set backup.key_file=FILE`.
    #[arg(long, value_name = "FILE", conflicts_with = "ephemeral")]
    pub(crate) key_file: Option<PathBuf>,
    /// Acknowledge a write when a standby has it, too. Short for `--set standby.sync=standby`.
    #[arg(long, value_name = "WHEN", value_parser = ["none", "standby"])]
    pub(crate) sync: Option<String>,
    /// Reads that a standby answers. Short for `--set standby.reads=stale`.
    #[arg(long, value_name = "READS", value_parser = ["none", "stale"])]
    pub(crate) reads: Option<String>,
    #[command(flatten)]
    pub(crate) protection: Protection,
    #[command(flatten)]
    pub(crate) settings: Settings,
}

#[derive(Debug, Args)]
pub(crate) struct Gateway {
    /// The cluster: zk1,zk2:2181:/hbase, hbase+zk://zk1,zk2/hbase or hbase+rpc://host:port,host:port. Short
    /// for `--set gateway.cluster=KEY`.
    #[arg(long, value_name = "KEY")]
    pub(crate) cluster: Option<String>,
    /// Write the line of JSON that says where the gateway listens to this file, when calls are accepted;
    /// remove it at a clean stop.
    #[arg(long, value_name = "FILE")]
    pub(crate) listen_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) protection: Protection,
    #[command(flatten)]
    pub(crate) settings: Settings,
}

/// Protection against clients of other machines.
#[derive(Debug, Default, Args)]
pub(crate) struct Protection {
    /// Accept addresses that other machines can reach without certificate or users.
    #[arg(long, env = "BASALT_INSECURE", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
    pub(crate) insecure: bool,
    /// At the first start make an authority, a certificate, and a superuser `admin` with a token, and say
    /// where they are. --insecure switches it off.
    #[arg(long, env = "BASALT_SECURE", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
    pub(crate) secure: bool,
}

/// Where settings come from.
#[derive(Debug, Default, Args)]
pub(crate) struct Settings {
    /// Settings, in TOML.
    #[arg(long, value_name = "FILE", env = "BASALT_CONFIG")]
    config: Option<PathBuf>,
    /// Where the data lies [default: ./basalt-data].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Address of the port for all binary protocols [default: 127.0.0.1:9090].
    #[arg(long, alias = "thrift-listen", value_name = "ADDR")]
    listen: Option<Address>,
    /// Address of the HTTP port [default: 127.0.0.1:9095].
    #[arg(long, value_name = "ADDR")]
    http_listen: Option<Address>,
    /// One setting; may be given many times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Settings {
    /// The layers of settings that the command line and the environment give.
    /// `of_mode` take the place of defaults.
    pub(crate) fn inputs(self, of_mode: Vec<String>) -> Inputs {
        Inputs {
            ephemeral: of_mode,
            file: self.config,
            variables: Inputs::own_variables(),
            set: self.set,
            data_dir: self.data_dir,
            listen: self.listen,
            http_listen: self.http_listen,
        }
    }

    /// The settings with which `basalt serve` would start.
    pub(crate) fn load(self) -> Result<Loaded, ConfigError> {
        Config::load(&self.inputs(Vec::new()))
    }
}

/// Prints completions for a shell.
pub(crate) fn completions(shell: Shell) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "basalt", &mut text);
    super::print(&text)
}

/// Sections of the program's man page that its command line does not have.
const MAN_SECTIONS: &[u8] = include_bytes!("../man.roff");

/// Writes a man page for the program and each of its commands.
pub(crate) fn man(dir: &Path) -> Outcome {
    let refused = |error: std::io::Error| format!("man pages in {}: {error}", dir.display());
    clap_mangen::generate_to(CommandLine::command(), dir).map_err(refused)?;
    let page = std::fs::OpenOptions::new()
        .append(true)
        .open(dir.join("basalt.1"));
    page.and_then(|mut page| page.write_all(MAN_SECTIONS))
        .map_err(refused)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    /// Goal: words behind `--` are a command, of an ephemeral server only, even if they look like options.
    #[test]
    fn a_command_needs_an_ephemeral_server() {
        let parsed = |words: &[&str]| CommandLine::try_parse_from([&["basalt"], words].concat());
        let run = parsed(&["--ephemeral", "--", "health", "--secure"]).unwrap();
        assert_eq!(run.serve.run, ["health", "--secure"]);
        assert!(run.command.is_none() && !run.serve.protection.secure);
        let Some(Command::Serve(serve)) = parsed(&["serve", "--ephemeral", "--", "make"]).unwrap().command
        else {
            panic!("not serve")
        };
        assert_eq!(serve.run, ["make"]);
        let refused = parsed(&["serve", "--", "make"]).unwrap_err().to_string();
        assert!(refused.contains("--ephemeral"), "{refused}");
    }

    /// Goal: the older option means the same.
    #[test]
    fn listen_has_an_alias() {
        for option in ["--listen", "--thrift-listen"] {
            let parsed = CommandLine::try_parse_from(["basalt", option, "localhost:1"]).unwrap();
            let inputs = parsed.serve.settings.inputs(Vec::new());
            assert_eq!(inputs.listen.unwrap().to_string(), "localhost:1");
        }
    }
}
