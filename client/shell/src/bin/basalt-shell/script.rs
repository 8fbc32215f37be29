//! Commands from a file or from standard input.
//!
//! Commands run as their lines arrive, so that a program that pipes commands to the shell gets
//! answers in between. After an error the next line is read, as in HBase's shell: scripts that set
//! up tables begin with drops that may fail.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use basalt_shell::session::Next;
use basalt_shell::{Session, ShellError, ShellResult, parse};
use tokio::runtime::Runtime;

use crate::print_error;

/// Runs the script in `file`, or standard input, and returns the exit code of the shell.
pub(crate) fn run(
    runtime: &Runtime,
    session: &mut Session,
    file: Option<&Path>,
    stop_at_error: bool,
) -> ShellResult<ExitCode> {
    let Some(path) = file.filter(|path| *path != Path::new("-")) else {
        return Script::new(runtime, session, None, stop_at_error).run(std::io::stdin().lock());
    };
    let opened = File::open(path).map_err(|source| ShellError::Io {
        what: format!("cannot open the script {}", path.display()),
        source,
    })?;
    Script::new(runtime, session, Some(path), stop_at_error).run(BufReader::new(opened))
}

struct Script<'s> {
    runtime: &'s Runtime,
    session: &'s mut Session,
    /// The file, for messages.
    path: Option<&'s Path>,
    stop_at_error: bool,
    has_failed: bool,
}

impl<'s> Script<'s> {
    fn new(
        runtime: &'s Runtime,
        session: &'s mut Session,
        path: Option<&'s Path>,
        stop_at_error: bool,
    ) -> Script<'s> {
        Script {
            runtime,
            session,
            path,
            stop_at_error,
            has_failed: false,
        }
    }

    fn run(mut self, input: impl BufRead) -> ShellResult<ExitCode> {
        let mut pending = String::new();
        let mut first_line = 1;
        for (index, line) in input.lines().enumerate() {
            let line = line.map_err(|source| ShellError::Io {
                what: format!("cannot read line {} of the commands", index + 1),
                source,
            })?;
            if pending.is_empty() {
                first_line = index + 1;
            }
            // Editors of some systems put a byte order mark in front of the first line.
            pending.push_str(if index == 0 {
                line.trim_start_matches('\u{feff}')
            } else {
                &line
            });
            pending.push('\n');
            if matches!(parse(&pending), Err(error) if error.incomplete) {
                continue;
            }
            if let Some(code) = self.commands(&std::mem::take(&mut pending), first_line)? {
                return Ok(code);
            }
        }
        if let Some(code) = self.commands(&pending, first_line)? {
            return Ok(code);
        }
        Ok(self.code())
    }

    /// Runs the commands of `text`, which begins on line `first_line`. Returns the exit code if the
    /// shell must end.
    fn commands(&mut self, text: &str, first_line: usize) -> ShellResult<Option<ExitCode>> {
        let error = match self.runtime.block_on(self.session.execute(text)) {
            Ok(Next::Continue) => return Ok(None),
            Ok(Next::Exit(None)) => return Ok(Some(self.code())),
            Ok(Next::Exit(Some(code))) => return Ok(Some(ExitCode::from(code))),
            Err(error) => error,
        };
        if error.is_closed_output() {
            return Err(error);
        }
        self.has_failed = true;
        self.print(error, first_line);
        Ok(self.stop_at_error.then_some(ExitCode::FAILURE))
    }

    /// Prints an error, with file and line if the commands come from a file. The line of a syntax
    /// error counts from the beginning of its text, so the lines before the text are added.
    fn print(&self, error: ShellError, first_line: usize) {
        let (error, line) = match error {
            ShellError::Syntax(mut error) => {
                error.line += first_line - 1;
                (ShellError::Syntax(error), String::new())
            }
            other => (other, format!(", line {first_line}")),
        };
        match self.path {
            Some(path) => print_error(&format_args!("{error} ({}{line})", path.display())),
            None => print_error(&error),
        }
    }

    fn code(&self) -> ExitCode {
        ExitCode::from(u8::from(self.has_failed))
    }
}
