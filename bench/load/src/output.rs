//! Output: results on standard output, messages on standard error.
//!
//! The reader of either stream may be gone, as with `| head`. A result that cannot be printed is an
//! error that ends the run. A message that cannot be printed is dropped.

use std::fmt::Arguments;
use std::io::Write;

use crate::error::{Error, Result};

/// Prints a line of results; returns from the calling function if that fails.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::line(format_args!($($text)*))?
    };
}

/// Prints a message for the person at the terminal.
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => {
        $crate::output::message(format_args!($($text)*))
    };
}

/// Writes a line of results to standard output and flushes it.
pub fn line(text: Arguments<'_>) -> Result<()> {
    write_line(&mut std::io::stdout().lock(), text)
}

/// Writes a text that is a result as a whole to standard output.
pub fn bytes(text: &[u8]) -> Result<()> {
    let mut output = std::io::stdout().lock();
    output
        .write_all(text)
        .and_then(|()| output.flush())
        .map_err(Error::Output)
}

fn write_line(to: &mut impl Write, text: Arguments<'_>) -> Result<()> {
    writeln!(to, "{text}")
        .and_then(|()| to.flush())
        .map_err(Error::Output)
}

/// Writes a message to standard error.
pub fn message(text: Arguments<'_>) {
    // An error cannot be reported: standard error is where it would go.
    drop(writeln!(std::io::stderr(), "{text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_without_a_reader_is_an_error() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        write_line(&mut writer, format_args!("read")).unwrap();
        drop(reader);
        let error = write_line(&mut writer, format_args!("not read")).unwrap_err();
        assert!(error.is_closed_output(), "{error:?}");
    }
}
