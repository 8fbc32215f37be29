//! `basalt-shell`: HBase's shell for Basalt, and for HBase through its Thrift 2 server.
//!
//! Commands come from `-e`, else from the terminal, else from standard input. Without a person at the terminal the
//! first error ends the program with exit code 1, like `hbase shell -n`, so that scripts stop where they fail.

use std::cell::RefCell;
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use basalt_client::shell::complete::complete;
use basalt_client::shell::output::Output;
use basalt_client::shell::progress::Progress;
use basalt_client::shell::session::Next;
use basalt_client::shell::{Session, ShellError, ShellResult, parse};
use basalt_client::{Client, Codec, ConnectionOptions, PoolOptions};
use clap::{Parser, ValueEnum};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Context, Editor, Helper};

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
    // Written in larger pieces, and flushed at the end of each command.
    let output = Output::new(Box::new(std::io::BufWriter::new(std::io::stdout())));
    let mut session = Session::new(client.clone(), output, at_terminal);
    if std::io::stderr().is_terminal() && !std::io::stdout().is_terminal() {
        session.progress = Some(Progress::new(Box::new(std::io::stderr())));
    }
    if at_terminal {
        session.answer = Some(read_answer);
        return interact(&runtime, client, &mut session, &options.target);
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

/// How long the names of tables are good for completion, and how long the server may take to tell them.
const TABLES_AGE_MAX: Duration = Duration::from_secs(2);

/// What the line editor asks while a person types.
struct Typing<'r> {
    runtime: &'r tokio::runtime::Runtime,
    client: Client,
    /// The names of tables, and when they were asked for.
    tables: RefCell<Option<(Instant, Vec<String>)>>,
}

impl Typing<'_> {
    /// The names of all tables; none when the server does not tell them in time. The command itself will say what is wrong.
    fn tables(&self) -> Vec<String> {
        let mut known = self.tables.borrow_mut();
        if let Some((asked, names)) = &*known
            && asked.elapsed() < TABLES_AGE_MAX
        {
            return names.clone();
        }
        let asking = async {
            let tables = self.client.list_tables(None);
            tokio::time::timeout(TABLES_AGE_MAX, tables).await
        };
        let names = match self.runtime.block_on(asking) {
            Ok(Ok(tables)) => tables.iter().map(ToString::to_string).collect(),
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        known.insert((Instant::now(), names)).1.clone()
    }
}

impl Completer for Typing<'_> {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete(line.get(..at).unwrap_or(line), || self.tables()))
    }
}

impl Hinter for Typing<'_> {
    type Hint = String;
}

impl Highlighter for Typing<'_> {}

impl Validator for Typing<'_> {}

impl Helper for Typing<'_> {}

/// Reads commands from a person until Ctrl-D or exit. Errors are printed and forgotten.
fn interact(
    runtime: &tokio::runtime::Runtime,
    client: Client,
    session: &mut Session,
    target: &str,
) -> ShellResult<()> {
    let broken = |error: ReadlineError| ShellError::Io {
        what: "cannot read from the terminal".to_owned(),
        source: std::io::Error::other(error),
    };
    let config = rustyline::Config::builder().completion_type(CompletionType::List);
    let mut editor: Editor<Typing<'_>, DefaultHistory> =
        Editor::with_config(config.build()).map_err(broken)?;
    editor.set_helper(Some(Typing {
        runtime,
        client,
        tables: RefCell::default(),
    }));
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

/// A line from the person at the terminal.
fn read_answer() -> std::io::Result<String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line)
}

fn print_error(error: &ShellError) {
    // Nobody is left to tell if standard error is closed.
    drop(writeln!(std::io::stderr(), "ERROR: {error}"));
}
