//! File descriptors: connections may not take those that the engine needs for its files.
//!
//! Without one, no log segment can begin and no memstore can be flushed, and whoever opens connections and leaves them open could stop
//! all writes. So an eighth of the limit is kept for files, and half of that eighth may also be taken by connections of the HTTP port, so
//! that metrics and pages can be read when clients of Thrift have all the rest.
//!
//! The system gives a new connection the lowest number that is free. One with the number `n` therefore says that `n` others are open,
//! files or connections, without counting them.

use std::os::fd::RawFd;

/// The limit of open files, and how much of it connections may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptors {
    limit: u64,
}

impl Descriptors {
    /// Of a process that may have so many open files.
    pub(crate) fn of(limit: u64) -> Self {
        Self { limit }
    }

    /// The first number that a connection of the Thrift port may not have.
    pub(crate) fn thrift_end(self) -> RawFd {
        self.end(self.limit / 8)
    }

    /// The first number that a connection of the HTTP port may not have.
    pub(crate) fn http_end(self) -> RawFd {
        self.end(self.limit / 16)
    }

    fn end(self, kept: u64) -> RawFd {
        RawFd::try_from(self.limit - kept).unwrap_or(RawFd::MAX)
    }

    /// What is said at the start if so many Thrift connections are allowed as the limit has no room for.
    pub(crate) fn warning(self, max_connections: usize) -> Option<String> {
        let end = self.thrift_end();
        (RawFd::try_from(max_connections).unwrap_or(RawFd::MAX) > end).then(|| {
            format!(
                "thrift.max_connections is {max_connections}, and the limit of open files is {} (LimitNOFILE, ulimit -n): files and connections \
                 can have {end} together",
                self.limit
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_kept_for_files() {
        let few = Descriptors::of(1024);
        assert_eq!((few.thrift_end(), few.http_end()), (896, 960));
        let warning = few.warning(10_000).expect("there is no room");
        for word in ["10000", "1024", "896", "ulimit"] {
            assert!(warning.contains(word), "{warning}");
        }
        assert_eq!(few.warning(896), None);
        let no_limit = Descriptors::of(u64::MAX);
        assert_eq!(
            (no_limit.thrift_end(), no_limit.http_end()),
            (RawFd::MAX, RawFd::MAX)
        );
        assert_eq!(no_limit.warning(10_000), None);
    }
}
