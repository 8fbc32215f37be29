//! Commands from a person at a terminal.
//!
//! - Ctrl-C clears the line at the prompt and ends a running command, also one that waits for the
//!   answer to a question.
//! - Each command is in the history file before it runs, so that no command is lost when the
//!   terminal is closed or the shell is killed. Only the owner can read the file. It keeps the last
//!   [`HISTORY_ENTRIES`] commands, without those that begin with a blank.
//! - A closed terminal ends the shell like Ctrl-D.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{Error as IoError, ErrorKind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::task::Poll;
use std::time::{Duration, Instant};

use basalt_shell::Backend;
use basalt_shell::complete::complete;
use basalt_shell::session::Next;
use basalt_shell::{Session, ShellError, ShellResult, parse};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, DefaultEditor, Editor, Helper};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::print_error;

/// Maximum age of the table names used for completion, and the timeout for fetching them.
const TABLES_AGE_MAX: Duration = Duration::from_secs(2);
/// Maximum number of commands in the history.
const HISTORY_ENTRIES: usize = 1_000;
/// Maximum size of a command in the history. Longer ones, which were pasted, are not recorded.
const HISTORY_ENTRY_BYTES: usize = 16 << 10;

/// Completion for the line editor.
struct Typing<'r> {
    runtime: &'r Runtime,
    client: Backend,
    /// The table names, and when they were fetched.
    tables: RefCell<Option<(Instant, Vec<String>)>>,
}

impl Typing<'_> {
    /// Returns the names of all tables; none if the server fails or times out, since the command
    /// that is being typed will report the error.
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

fn broken(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ShellError {
    ShellError::Io {
        what: "cannot use the terminal".to_owned(),
        source: IoError::other(error),
    }
}

/// The line editor and its history file.
struct Prompt<'r> {
    editor: Editor<Typing<'r>, DefaultHistory>,
    history: Option<PathBuf>,
}

impl<'r> Prompt<'r> {
    fn open(typing: Typing<'r>) -> ShellResult<Prompt<'r>> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .history_ignore_space(true)
            .max_history_size(HISTORY_ENTRIES)
            .map_err(broken)?;
        let mut editor = Editor::with_config(config.build()).map_err(broken)?;
        editor.set_helper(Some(typing));
        let history = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".basalt_shell_history"));
        if let Some(history) = &history {
            // The first session has no history, and an unreadable history must not stop the shell.
            drop(editor.load_history(history));
        }
        Ok(Prompt { editor, history })
    }

    /// Reads a line; `None` at the end of input.
    fn line(&mut self, prompt: &str) -> ShellResult<Option<String>> {
        match self.editor.readline(prompt) {
            Ok(line) => Ok(Some(line)),
            Err(ReadlineError::Eof) => Ok(None),
            Err(ReadlineError::Interrupted) => Err(ShellError::Interrupted),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(broken(error)),
        }
    }

    /// Records a command in the history and appends it to the file at once. A failed append is
    /// printed once, and the command still runs.
    fn remember(&mut self, command: &str) -> ShellResult<()> {
        if command.len() > HISTORY_ENTRY_BYTES {
            return Ok(());
        }
        self.editor.add_history_entry(command).map_err(broken)?;
        if let Some(history) = &self.history
            && let Err(error) = self.editor.append_history(history)
        {
            print_error(&format_args!(
                "cannot save the history to {}: {error}",
                history.display()
            ));
            self.history = None;
        }
        Ok(())
    }

    fn width(&mut self) -> Option<usize> {
        self.editor.dimensions().map(|(columns, _)| usize::from(columns))
    }
}

/// Whether the terminal is gone, as when its window was closed.
fn is_gone(error: &ReadlineError) -> bool {
    let code = match error {
        ReadlineError::Io(error) => error.raw_os_error(),
        ReadlineError::Errno(error) => Some(*error as i32),
        _ => None,
    };
    // EIO and ENXIO, which have these numbers on every Unix.
    matches!(code, Some(5 | 6))
}

/// Reads commands from the terminal until Ctrl-D or `exit`. Errors do not affect the exit code.
pub(crate) fn interact(
    runtime: &Runtime,
    client: Backend,
    session: &mut Session,
    target: &str,
) -> ShellResult<ExitCode> {
    let mut prompt = Prompt::open(Typing {
        runtime,
        client,
        tables: RefCell::default(),
    })?;
    let mut interrupts = {
        let _within = runtime.enter();
        signal(SignalKind::interrupt()).map_err(broken)?
    };
    session.answer = Some(read_answer);
    session.output.line(&format!(
        "basalt-shell {} on {target}. Type help for commands.",
        env!("CARGO_PKG_VERSION")
    ))?;
    session.output.flush()?;
    let mut pending = String::new();
    loop {
        let shown = if pending.is_empty() {
            "basalt> "
        } else {
            "basalt* "
        };
        let line = match prompt.line(shown) {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(ExitCode::SUCCESS),
            Err(ShellError::Interrupted) => {
                pending.clear();
                continue;
            }
            Err(error) => return Err(error),
        };
        pending.push_str(&line);
        pending.push('\n');
        if matches!(parse(&pending), Err(error) if error.incomplete) {
            continue;
        }
        let text = std::mem::take(&mut pending);
        prompt.remember(text.trim_end())?;
        session.output.set_width(prompt.width());
        match runtime.block_on(run_until(&mut interrupts, session, &text)) {
            Ok(Next::Continue) => {}
            Ok(Next::Exit(code)) => return Ok(ExitCode::from(code.unwrap_or_default())),
            Err(error) if error.is_closed_output() => return Err(error),
            Err(ShellError::Interrupted) => {
                session.output.line("Interrupted")?;
                session.output.flush()?;
            }
            Err(error) => print_error(&error),
        }
    }
}

/// Runs commands until they end or Ctrl-C is pressed. An interrupted call may have been applied.
async fn run_until(interrupts: &mut Signal, session: &mut Session, text: &str) -> ShellResult<Next> {
    // Discards a Ctrl-C that arrived while no command ran.
    poll_fn(|context| {
        while let Poll::Ready(Some(())) = interrupts.poll_recv(context) {}
        Poll::Ready(())
    })
    .await;
    tokio::select! {
        biased;
        _ = interrupts.recv() => Err(ShellError::Interrupted),
        outcome = session.execute(text) => outcome,
    }
}

/// Reads the answer to a question with a separate line editor: a plain read would not notice
/// Ctrl-C.
fn read_answer() -> std::io::Result<String> {
    let mut editor = DefaultEditor::new().map_err(IoError::other)?;
    match editor.readline("") {
        Ok(line) => Ok(line),
        Err(ReadlineError::Interrupted) => Err(ErrorKind::Interrupted.into()),
        Err(ReadlineError::Eof) => Ok(String::new()),
        Err(error) => Err(IoError::other(error)),
    }
}
