//! `basalt check` and `basalt dump`: reading the files of a stopped server.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use basalt_engine::fs::{RealFs, Vfs};

use super::Outcome;

/// Verifies a data directory; a line for each finding, exit 0 only when nothing is wrong.
pub(crate) fn check(dir: &Path) -> Outcome {
    let vfs: Arc<dyn Vfs> = Arc::new(RealFs);
    let mut out = std::io::stdout().lock();
    let mut unread = false;
    let summary = basalt_engine::engine::check(&vfs, dir, &mut |finding| {
        unread |= writeln!(out, "{finding}").is_err();
    })?;
    unread |= writeln!(out, "{summary}").is_err();
    Ok(if summary.is_sound() && !unread {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints a file for people.
pub(crate) fn dump(file: &Path, cells: bool) -> Outcome {
    let vfs: Arc<dyn Vfs> = Arc::new(RealFs);
    basalt_engine::engine::dump(&vfs, file, cells, &mut std::io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}
