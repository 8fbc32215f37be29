//! Errors for operators, refusals for clients.
//!
//! [`Error`] displays what is wrong, where, and what to do; it goes to logs and terminals.
//! [`Refused`] displays one text for all causes; it goes to clients. Its [`Reason`] goes to the
//! audit log only.

use std::fmt;
use std::path::PathBuf;

/// Result of an operation for operators.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read, understood or written.
    #[error("{}{}: {problem}; {remedy}", path.display(), Line(*line))]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Line of the fault, from 1; 0 if it concerns the whole file.
        line: usize,
        /// The problem. Contains no value of the file.
        problem: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// An argument is not acceptable. The text names it, the rule and the remedy.
    #[error("{0}")]
    Invalid(String),
    /// The thing that the argument names does not exist.
    #[error("{0}")]
    Missing(String),
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes")]
    Random,
}

struct Line(usize);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            line => write!(f, ", line {line}"),
        }
    }
}

/// A failed authentication. Displays the same text for all reasons, so that it does not
/// reveal which users exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("authentication failed")]
pub struct Refused(pub Reason);

/// The cause of a [`Refused`], for the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The message breaks the mechanism's rules or limits.
    Malformed,
    /// The file of users has no such user.
    UnknownUser,
    /// The user is disabled.
    Disabled,
    /// The password is wrong, or the user has none.
    WrongPassword,
    /// The token's key or sequence number is not known.
    UnknownToken,
    /// The token's signature, or the proof of knowing it, is wrong.
    WrongSignature,
    /// The token has expired.
    Expired,
    /// The token was revoked.
    Revoked,
    /// The certificate names no user, or several.
    NoName,
    /// No rule makes a user of the Kerberos principal.
    NoRule,
    /// The Kerberos ticket has expired, or is not valid yet.
    ExpiredTicket,
    /// The Kerberos ticket is not for this server, was used before, or was changed.
    WrongTicket,
    /// The clocks of the client and of this machine differ too much for Kerberos.
    ClockSkew,
    /// No proxy rule lets the user act for the other one.
    Impersonation,
}

impl Reason {
    /// Words for the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed message",
            Self::UnknownUser => "unknown user",
            Self::Disabled => "user is disabled",
            Self::WrongPassword => "wrong password",
            Self::UnknownToken => "unknown token",
            Self::WrongSignature => "wrong signature",
            Self::Expired => "token has expired",
            Self::Revoked => "token was revoked",
            Self::NoName => "certificate names no user",
            Self::NoRule => "no rule of kerberos.auth_to_local names a user",
            Self::ExpiredTicket => "ticket has expired or is not valid yet",
            Self::WrongTicket => "ticket is not accepted",
            Self::ClockSkew => "clocks of client and server differ too much",
            Self::Impersonation => "impersonation is not allowed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_in_a_file_names_line_and_remedy() {
        let error = |line| Error::File {
            path: "a/users.json".into(),
            line,
            problem: "it is broken".into(),
            remedy: "mend it",
        };
        assert_eq!(
            error(7).to_string(),
            "a/users.json, line 7: it is broken; mend it"
        );
        assert_eq!(error(0).to_string(), "a/users.json: it is broken; mend it");
    }

    #[test]
    fn clients_see_one_text() {
        let texts = [Reason::UnknownUser, Reason::WrongPassword, Reason::Expired];
        assert!(
            texts
                .iter()
                .all(|reason| Refused(*reason).to_string() == "authentication failed")
        );
    }
}
