//! The one place where failures become Thrift exceptions.
//!
//! Thrift 1 clients search `IOError.message` for HBase's Java class names. Where HBase answers bad
//! input with TApplicationException INTERNAL_ERROR, the method's declared exception is returned,
//! with a text that names the problem (docs/compatibility.md lists these).

use basalt_idl::admin::BasaltException;
use basalt_idl::thrift1::HbaseException;
use basalt_idl::thrift2::THBaseException;
use basalt_idl::{admin, thrift1, thrift2};

use crate::service::{Failure, Kind};

/// An interface's exceptions, made from failures.
pub(super) trait FromFailure: Sized {
    /// The exception. `declared` tells whether the method declares an exception with that field id.
    fn from_failure(failure: &Failure, declared: impl Fn(i16) -> bool) -> Self;
}

impl FromFailure for HbaseException {
    fn from_failure(failure: &Failure, declared: impl Fn(i16) -> bool) -> Self {
        let illegal = |text: String| Self::IllegalArgument(thrift1::IllegalArgument { message: Some(text) });
        match failure.kind() {
            Kind::IllegalArgument if declared(2) => illegal(failure.with_class()),
            Kind::InvalidScanner => illegal("scanner ID is invalid".into()),
            Kind::AlreadyExists if declared(3) => Self::AlreadyExists(thrift1::AlreadyExists {
                message: Some("table name already in use".into()),
            }),
            _ => Self::Io(thrift1::IOError {
                message: Some(failure.with_class()),
                can_retry: Some(failure.can_retry()),
            }),
        }
    }
}

impl FromFailure for THBaseException {
    fn from_failure(failure: &Failure, _declared: impl Fn(i16) -> bool) -> Self {
        if failure.kind() == Kind::InvalidScanner {
            return thrift2::TIllegalArgument {
                message: Some("Invalid scanner Id".into()),
            }
            .into();
        }
        thrift2::TIOError {
            message: Some(for_thrift2(failure)),
            can_retry: Some(failure.can_retry()),
        }
        .into()
    }
}

impl FromFailure for BasaltException {
    fn from_failure(failure: &Failure, _declared: impl Fn(i16) -> bool) -> Self {
        admin::TIOError {
            message: Some(for_thrift2(failure)),
            can_retry: Some(failure.can_retry()),
        }
        .into()
    }
}

/// The text as Thrift 2 clients expect it: without the class, except for a busy server and a region
/// that is not served. HBase's gateway reports these when its own client has used up its retries,
/// and its text then lists the exceptions with their classes.
fn for_thrift2(failure: &Failure) -> String {
    if ["RegionTooBusyException", "NotServingRegionException"].contains(&failure.label()) {
        failure.with_class()
    } else {
        failure.message().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use basalt_engine::Error;

    use super::*;

    /// Goal: a client that is refused for want of disk space can see that in both interfaces, and
    /// the error asks for a retry.
    #[test]
    fn a_full_disk_is_told_as_a_busy_region() {
        let failure = Failure::from(Error::DiskSpace("writes suspended: 5 bytes free".into()));
        let HbaseException::Io(one) = HbaseException::from_failure(&failure, |_| true) else {
            panic!("not an IOError");
        };
        let text = "disk space: writes suspended: 5 bytes free";
        let with_class = format!("org.apache.hadoop.hbase.RegionTooBusyException: {text}");
        assert_eq!(
            (one.message.as_ref(), one.can_retry),
            (Some(&with_class), Some(true))
        );
        let THBaseException::Io(two) = THBaseException::from_failure(&failure, |_| true) else {
            panic!("not a TIOError");
        };
        assert_eq!((two.message, two.can_retry), (Some(with_class), Some(true)));
    }
}
