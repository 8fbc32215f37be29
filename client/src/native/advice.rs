//! The client's next step after a failed attempt of any kind. `crate::remote` has that for exceptions.

use crate::error::{Error, ErrorKind};
use crate::remote::Advice;

/// The advice for any error of an attempt.
pub(super) fn advice(error: &Error) -> Advice {
    match error {
        Error::Remote(exception) => exception.advice(),
        Error::Connect { .. } | Error::Io { .. } => Advice::ServerGone,
        Error::Timeout { .. } => Advice::Relocate,
        Error::Registry { .. } => Advice::Wait,
        _ => Advice::Final,
    }
}

/// Whether a failed attempt may have been carried out.
pub(super) fn is_outcome_unknown(error: &Error) -> bool {
    error.kind() == ErrorKind::Unknown
}
