//! `basalt-shell`: HBase's shell for Basalt, and for HBase through its Thrift 2 server.
//!
//! Commands come from `-e`, else from the terminal, else from standard input. Without a person at the terminal the
//! first error ends the program with exit code 1, like `hbase shell -n`, so that scripts stop where they fail.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use basalt_client::shell::output::Output;
use basalt_client::shell::session::Next;
use basalt_client::shell::{Session, ShellError, ShellResult, parse};
use basalt_client::{Client, Codec, ConnectionOptions, PoolOptions};
use clap::{Parser, ValueEnum};
use rustyline::error::ReadlineError;

/// A shell for Basalt that reads what HBase's shell reads.
#[derive(Debug, Parser)]
#[command(name = "basalt-shell", version)]
struct Options {
    /// Where the server listens.
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:9090",
        env = "BASALT_TARGET"
    )]
    target: String,
    /// Run this command and leave. May be given several times.
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
    /// Stop at the first error, with exit code 1, also at a terminal.
    #[arg(short = 'n', long)]
    noninteractive: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Protocol {
    Binary,
    Compact,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough, as with `| head`.
        Err(ShellError::Io { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::FAILURE
        }
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> ShellResult<()> {
    let what = "cannot start the runtime".to_owned();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|source| ShellError::Io { what, source })?;
    let pool = PoolOptions {
        connections_max: 4,
        connection: ConnectionOptions {
            codec: match options.protocol {
                Protocol::Binary => Codec::Binary,
                Protocol::Compact => Codec::Compact,
            },
            framed: options.framed,
            call_timeout: Duration::from_secs(options.timeout),
            ..ConnectionOptions::default()
        },
        ..PoolOptions::default()
    };
    let client = Client::new(options.target.clone(), pool)?;
    let at_terminal = options.execute.is_empty() && !options.noninteractive && std::io::stdin().is_terminal();
    // Standard output flushes at every line on a terminal; scripts get their output in larger pieces.
    let output = Output::new(Box::new(std::io::BufWriter::new(std::io::stdout())));
    let mut session = Session::new(client, output, at_terminal);
    if at_terminal {
        return interact(&runtime, &mut session, &options.target);
    }
    if options.execute.is_empty() {
        return run_script(&runtime, &mut session, std::io::stdin().lock());
    }
    for text in &options.execute {
        if run_text(&runtime, &mut session, text)? == Next::Exit {
            break;
        }
    }
    Ok(())
}

/// Runs the commands of a text up to the first error.
fn run_text(runtime: &tokio::runtime::Runtime, session: &mut Session, text: &str) -> ShellResult<Next> {
    for command in parse(text)? {
        let outcome = runtime.block_on(session.run(command));
        session.output.flush()?;
        if outcome? == Next::Exit {
            return Ok(Next::Exit);
        }
    }
    Ok(Next::Continue)
}

/// Runs commands as their lines arrive, so that a program that talks to the shell gets answers in between.
fn run_script(
    runtime: &tokio::runtime::Runtime,
    session: &mut Session,
    input: impl BufRead,
) -> ShellResult<()> {
    let mut pending = String::new();
    for line in input.lines() {
        let line = line.map_err(|source| ShellError::Io {
            what: "cannot read commands".to_owned(),
            source,
        })?;
        pending.push_str(&line);
        pending.push('\n');
        if matches!(parse(&pending), Err(error) if error.incomplete) {
            continue;
        }
        if run_text(runtime, session, &std::mem::take(&mut pending))? == Next::Exit {
            return Ok(());
        }
    }
    run_text(runtime, session, &pending)?;
    Ok(())
}

/// Reads commands from a person until Ctrl-D or exit. Errors are printed and forgotten.
fn interact(runtime: &tokio::runtime::Runtime, session: &mut Session, target: &str) -> ShellResult<()> {
    let broken = |error: ReadlineError| ShellError::Io {
        what: "cannot read from the terminal".to_owned(),
        source: std::io::Error::other(error),
    };
    let mut editor = rustyline::DefaultEditor::new().map_err(broken)?;
    let history = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".basalt_shell_history"));
    if let Some(history) = &history {
        // The first session has no history, and a history that cannot be read is not worth an error.
        drop(editor.load_history(history));
    }
    println!(
        "basalt-shell {} on {target}. Type help for commands.",
        env!("CARGO_PKG_VERSION")
    );
    let mut pending = String::new();
    loop {
        let prompt = if pending.is_empty() {
            "basalt> "
        } else {
            "basalt* "
        };
        let line = match editor.readline(prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                pending.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(broken(error)),
        };
        pending.push_str(&line);
        pending.push('\n');
        if matches!(parse(&pending), Err(error) if error.incomplete) {
            continue;
        }
        let text = std::mem::take(&mut pending);
        editor.add_history_entry(text.trim_end()).map_err(broken)?;
        session
            .output
            .set_width(editor.dimensions().map(|(columns, _)| usize::from(columns)));
        match run_text(runtime, session, &text) {
            Ok(Next::Continue) => {}
            Ok(Next::Exit) => break,
            Err(error) => print_error(&error),
        }
    }
    if let Some(history) = &history
        && let Err(error) = editor.save_history(history)
    {
        eprintln!("cannot save the history to {}: {error}", history.display());
    }
    Ok(())
}

fn print_error(error: &ShellError) {
    // Nobody is left to tell if standard error is closed.
    drop(writeln!(std::io::stderr(), "ERROR: {error}"));
}
