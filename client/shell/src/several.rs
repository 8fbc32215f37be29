//! Commands on everything that a regular expression matches, after the user has confirmed the list.

use super::session::{Outcome, Session};
use super::{ShellError, ShellResult};

/// Results of a command on several things. A failure does not stop the others.
#[derive(Debug, Default)]
pub(super) struct Results {
    done: usize,
    /// Names and reasons.
    failures: Vec<String>,
}

impl Results {
    pub(super) fn add<E: std::fmt::Display>(&mut self, name: &str, result: Result<(), E>) {
        match result {
            Ok(()) => self.done += 1,
            Err(error) => self.failures.push(format!("{name}: {error}")),
        }
    }
}

impl Session {
    /// Asks the user to confirm the command for the list above. Without a user it is confirmed.
    pub(super) fn is_agreed_for(&mut self, what: &str, count: usize, things: &str) -> ShellResult<bool> {
        self.is_agreed(&format!("\n{what} the above {count} {things} (y/n)?"))
    }

    /// Prints how many were done, if any. Failures are an error that names each: `failed` names
    /// this number of things.
    pub(super) fn tell(
        &mut self,
        results: &Results,
        done: &str,
        failed: impl FnOnce(usize) -> String,
    ) -> Outcome {
        if results.done > 0 {
            self.output.note(&format!("{} {done}", results.done))?;
        }
        if results.failures.is_empty() {
            return Ok(None);
        }
        let failures = results.failures.join("; ");
        let failed = failed(results.failures.len());
        Err(ShellError::Refused(format!("{failed}: {failures}")))
    }
}
