//! Failures as answers: a status and one line of text.

use axum::http::StatusCode;
use basalt_rest::Malformed;

use crate::http::NotReceived;
use crate::limits::admission::Busy;
use crate::service::{Failure, Kind};

/// Why a request has no other answer. `class` is for metrics and logs.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) text: String,
    pub(super) class: &'static str,
    /// Whether the same request may succeed later.
    pub(super) can_retry: bool,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            class: "BadRequest",
            can_retry: false,
        }
    }

    /// Something that does not exist.
    pub(super) fn not_found(text: impl Into<String>) -> Self {
        Self {
            class: "NotFound",
            ..Self::new(StatusCode::NOT_FOUND, text)
        }
    }

    /// Input that makes no sense.
    pub(super) fn malformed(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        Self::malformed(malformed.0)
    }
}

impl From<NotReceived> for Refusal {
    fn from(why: NotReceived) -> Self {
        Self {
            can_retry: why.status() == StatusCode::SERVICE_UNAVAILABLE,
            ..Self::new(why.status(), why.to_string())
        }
    }
}

impl From<Busy> for Refusal {
    fn from(busy: Busy) -> Self {
        Failure::from(busy).into()
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let (status, can_retry) = status(&failure);
        let text = match failure.message() {
            "" => failure.label().to_owned(),
            text => text.split_ascii_whitespace().collect::<Vec<_>>().join(" "),
        };
        Self {
            status,
            text,
            class: failure.label(),
            can_retry,
        }
    }
}

/// The status of a failure, and whether its client should try again.
fn status(failure: &Failure) -> (StatusCode, bool) {
    let status = match failure.label() {
        "TableNotFoundException"
        | "NoSuchColumnFamilyException"
        | "NamespaceNotFoundException"
        | "UnknownScannerException" => StatusCode::NOT_FOUND,
        "AccessDeniedException" | "NamespaceExistException" | "QuotaExceededException" => {
            StatusCode::FORBIDDEN
        }
        // Another client has created the table meanwhile.
        "TableExistsException" => StatusCode::NOT_MODIFIED,
        "TableNotEnabledException" => return (StatusCode::SERVICE_UNAVAILABLE, true),
        "CorruptHFileException" => StatusCode::INTERNAL_SERVER_ERROR,
        _ if failure.can_retry() => return (StatusCode::SERVICE_UNAVAILABLE, true),
        _ if failure.kind() == Kind::IllegalArgument => StatusCode::BAD_REQUEST,
        "DoNotRetryIOException"
        | "InvalidFamilyOperationException"
        | "ConstraintException"
        | "RowTooBigException"
        | "TableNotDisabledException" => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, false)
}

#[cfg(test)]
mod tests {
    use basalt_engine::Error;
    use basalt_engine::schema::TableName;

    use super::*;

    #[test]
    fn failures_have_a_status_and_one_line() {
        let table = || TableName::parse(b"t").unwrap();
        for (error, status, can_retry) in [
            (Error::NoSuchTable(table()), StatusCode::NOT_FOUND, false),
            (
                Error::InvalidArgument("a\n b".into()),
                StatusCode::BAD_REQUEST,
                false,
            ),
            (Error::DoNotRetry("x".into()), StatusCode::BAD_REQUEST, false),
            (
                Error::RegionTooBusy("x".into()),
                StatusCode::SERVICE_UNAVAILABLE,
                true,
            ),
            (Error::ShuttingDown, StatusCode::SERVICE_UNAVAILABLE, true),
            (
                Error::corrupt("f", 1, "bad"),
                StatusCode::INTERNAL_SERVER_ERROR,
                false,
            ),
        ] {
            let refusal = Refusal::from(Failure::from(error));
            assert_eq!(
                (refusal.status, refusal.can_retry),
                (status, can_retry),
                "{refusal:?}"
            );
            assert!(!refusal.text.contains('\n') && !refusal.text.is_empty());
        }
        let denied = Refusal::from(Failure::access_denied("no"));
        assert_eq!(denied.status, StatusCode::FORBIDDEN);
    }
}
