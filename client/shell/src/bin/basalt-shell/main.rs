//! `basalt-shell`: HBase's shell for Basalt, and for HBase through its Thrift 2 server.
//!
//! Commands come from the first of these that there is: `-e`, a script file, the terminal, standard
//! input.
//!
//! - `-e` stops at the first error, with exit code 1.
//! - A script, from a file or from standard input, continues after errors, as in `hbase shell`. The
//!   exit code is 1 if a command failed. With `-n` it stops at the first error.
//! - At a terminal, errors are printed, and Ctrl-C ends the running command ([`terminal`]).
//! - Standard output gets results only; errors, times and echoed commands go to standard error.
//! - When the reader of the output is gone, as with `| head`, the shell ends without a message,
//!   with exit code 1.

mod keyboard;
mod script;
mod terminal;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use basalt_client::native::{BASE_ZNODE, Cluster, ClusterOptions, Registry, ZOOKEEPER_PORT};
use basalt_client::security::SecurityArguments;
use basalt_client::{Client, Codec, ConnectionOptions, PoolOptions};
use basalt_shell::backend::{self, Backend};
use basalt_shell::output::{Output, Style};
use basalt_shell::progress::Progress;
use basalt_shell::session::Next;
use basalt_shell::{Session, ShellError, ShellResult};
use clap::{CommandFactory as _, Parser, ValueEnum};
use clap_complete::Shell;

/// A shell for Basalt that accepts the input of HBase's shell.
#[derive(Debug, Parser)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
#[command(name = "basalt-shell", version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BASALT_COMMIT"), ")"))]
struct Options {
    /// Where the server listens. With --api native, ZooKeeper's address; Basalt answers on one port.
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:9090",
        env = "BASALT_TARGET"
    )]
    target: String,
    #[command(flatten)]
    security: SecurityArguments,
    /// Interface to call. Commands that only Basalt has use Thrift with either.
    #[arg(long, value_enum, default_value_t = Api::Thrift2)]
    api: Api,
    /// Where the HTTP port listens, for top 'methods', if not where the server says.
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// Run this command and leave. May be given several times; the first error ends the shell.
    #[arg(short = 'e', long = "execute", value_name = "COMMAND")]
    execute: Vec<String>,
    /// Thrift protocol, for an HBase server that is set to compact.
    #[arg(long, value_enum, default_value_t = Protocol::Binary)]
    protocol: Protocol,
    /// Use framed transport, for an HBase server that is set to it.
    #[arg(long)]
    framed: bool,
    /// Longest time a call may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// Stop at the first error, with exit code 1, also in a script or at a terminal.
    #[arg(short = 'n', long)]
    noninteractive: bool,
    /// Print rows and values as tables, as a JSON object in each line, or as CSV.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Print results only: no headers, counts and times.
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Print each command to standard error before it runs, with the values of its variables.
    #[arg(long)]
    echo: bool,
    /// Run the commands of this file and leave; - is standard input. Errors are printed and the
    /// next command runs, unless -n is given.
    #[arg(value_name = "SCRIPT", conflicts_with = "execute")]
    script: Option<PathBuf>,
    /// Print completions for a shell and leave.
    #[arg(long, value_name = "SHELL", conflicts_with_all = ["execute", "script"])]
    completions: Option<Shell>,
    /// Write the man page into an existing directory and leave.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["execute", "script", "completions"])]
    man: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Api {
    /// HBase's Thrift 2.
    Thrift2,
    /// The protocol of HBase's Java client.
    Native,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Table,
    Json,
    Csv,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Protocol {
    Binary,
    Compact,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match (options.completions, &options.man) {
        (Some(shell), _) => print_completions(shell),
        (None, Some(dir)) => write_man_page(dir),
        (None, None) => run(&options),
    };
    match outcome {
        Ok(code) => code,
        Err(error) if error.is_closed_output() => ExitCode::FAILURE,
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
}

fn print_completions(shell: Shell) -> ShellResult<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Options::command(), "basalt-shell", &mut text);
    std::io::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Sections of the man page that the command line does not have.
const MAN_SECTIONS: &[u8] = include_bytes!("man.roff");

fn write_man_page(dir: &Path) -> ShellResult<ExitCode> {
    let what = format!("man page in {}", dir.display());
    let written = clap_mangen::generate_to(Options::command(), dir).and_then(|()| {
        let page = std::fs::OpenOptions::new()
            .append(true)
            .open(dir.join("basalt-shell.1"));
        page?.write_all(MAN_SECTIONS)
    });
    written.map_err(|source| ShellError::Io { what, source })?;
    Ok(ExitCode::SUCCESS)
}

fn run(options: &Options) -> ShellResult<ExitCode> {
    let what = "cannot start the runtime".to_owned();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|source| ShellError::Io { what, source })?;
    let client = backend(options)?;
    let at_terminal = options.execute.is_empty()
        && options.script.is_none()
        && !options.noninteractive
        && std::io::stdin().is_terminal();
    // Buffered, and flushed at the end of each command.
    let style = match options.format {
        Format::Table => Style::Table,
        Format::Json => Style::Json,
        Format::Csv => Style::Csv,
    };
    let output = Output::new(Box::new(std::io::BufWriter::new(std::io::stdout())))
        .with_beside(Box::new(std::io::stderr()))
        .with_style(style, options.quiet);
    let mut session = Session::new(client.clone(), output, at_terminal);
    session.echo = options.echo;
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        session.keys = Some(keyboard::open);
    }
    if std::io::stderr().is_terminal() && !std::io::stdout().is_terminal() {
        session.progress = Some(Progress::new(Box::new(std::io::stderr())));
    }
    if at_terminal {
        return terminal::interact(&runtime, client, &mut session, &options.target);
    }
    if options.execute.is_empty() {
        let stop_at_error = options.noninteractive;
        return script::run(&runtime, &mut session, options.script.as_deref(), stop_at_error);
    }
    for text in &options.execute {
        if let Next::Exit(code) = runtime.block_on(session.execute(text))? {
            return Ok(ExitCode::from(code.unwrap_or_default()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn backend(options: &Options) -> ShellResult<Backend> {
    let client = Client::new(options.target.clone(), pool(options)?)?;
    let registry = Registry::zookeeper(&options.target, ZOOKEEPER_PORT, BASE_ZNODE)?;
    let mut cluster = ClusterOptions::new(registry);
    cluster.call_timeout = Duration::from_secs(options.timeout);
    cluster.operation_timeout = cluster.call_timeout;
    cluster.security = options.security.security()?;
    let cluster = Cluster::new(cluster);
    let api = match options.api {
        Api::Thrift2 => backend::Api::Thrift,
        Api::Native => backend::Api::Native,
    };
    let http = options.http.clone();
    Ok(Backend {
        api,
        client,
        cluster,
        http,
    })
}

fn pool(options: &Options) -> ShellResult<PoolOptions> {
    Ok(PoolOptions {
        connections_max: 4,
        connection: ConnectionOptions {
            codec: match options.protocol {
                Protocol::Binary => Codec::Binary,
                Protocol::Compact => Codec::Compact,
            },
            framed: options.framed,
            call_timeout: Duration::from_secs(options.timeout),
            security: options.security.security()?,
            ..ConnectionOptions::default()
        },
        ..PoolOptions::default()
    })
}

fn print_error(error: &dyn std::fmt::Display) {
    // Standard error may be closed; the error cannot be reported elsewhere.
    drop(writeln!(std::io::stderr(), "ERROR: {error}"));
}
