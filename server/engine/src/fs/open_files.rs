//! The limit of open files of this process (`RLIMIT_NOFILE`).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit, as far as the process may, and returns it; `u64::MAX`
/// is none.
///
/// The soft limit is low, 1024 as a rule, for programs that use `select(2)`. Ours uses none, so it
/// may raise its limit to the hard limit: the JVM raises it for HBase in the same way
/// (`-XX:+MaxFDLimit`). Where that is refused the limit stays as it was.
pub fn raise_open_files() -> u64 {
    let limits = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limits.maximum,
        maximum: limits.maximum,
    };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limits.maximum,
        Err(_) => limits.current,
    };
    current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The returned limit is the one that the system then reports, and equals the hard limit.
    #[test]
    fn the_limit_is_raised_to_what_is_allowed() {
        let raised = raise_open_files();
        let limits = getrlimit(Resource::Nofile);
        assert_eq!(limits.current.unwrap_or(u64::MAX), raised);
        assert_eq!(limits.current, limits.maximum);
        assert_eq!(raise_open_files(), raised);
    }
}
