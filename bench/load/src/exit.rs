//! The end of a program: its last message and its exit code.
//!
//! | code | meaning |
//! | --- | --- |
//! | 0 | the work is done |
//! | 1 | an error during the run |
//! | 2 | an invalid request, as clap has it |
//! | 130 | Ctrl-C |

use std::process::ExitCode;

use crate::error::{Error, Result};
use crate::load::interrupt;
use crate::output;

/// Reports the error of a program's work.
pub fn concluded(program: &str, result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Interrupted) => tell_interrupted(program),
        // The reader of the results is gone, as with `| head`: no message.
        Err(error) if error.is_closed_output() => ExitCode::FAILURE,
        Err(error) => {
            note!("{program}: {error}");
            // 2 for invalid requests, as clap's, 1 for errors during the run.
            ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 1 })
        }
    }
}

/// Prints the figures of the phases so far.
fn tell_interrupted(program: &str) -> ExitCode {
    let figures = interrupt::figures();
    for figure in &figures {
        // The reader of the results may be gone.
        drop(output::line(format_args!("{figure}")));
    }
    let what = if figures.is_empty() {
        "nothing has been measured yet"
    } else {
        "the figures above are all; there is no report"
    };
    note!("{program}: interrupted; {what}");
    ExitCode::from(interrupt::EXIT_CODE)
}
