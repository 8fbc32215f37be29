//! File descriptors: the limit of open files, divided by purpose.
//!
//! The process has a limit of open files (`RLIMIT_NOFILE`). Without a descriptor no log segment
//! begins, no memstore is flushed, no block is read and no client is answered, so each purpose has
//! a share that no other one can take:
//!
//! | purpose | share | kept by |
//! | --- | --- | --- |
//! | log, manifest, directories, runtime | [`HOUSEKEEPING`] | the remainder |
//! | HTTP port | a sixteenth, [`HTTP_MIN`] at least, `http.max_connections` at most | a count of its connections |
//! | REST port, where `rest.listen` is set | as much as the HTTP port | a count of its connections |
//! | main port | three quarters of the rest, `server.max_connections` at most | a count of its connections |
//! | store files | the remainder, [`FILES_MIN`] at least, `store.max_open_files` at most | the
//! engine's handle cache |
//!
//! A limit that does not hold the smallest shares is refused at the start, before anything is
//! written.
//!
//! Housekeeping covers the standard streams, the directory's lock, the manifest and its successor,
//! the log's segment and the next one, the runtime's pollers and signal pipes, two listeners, and
//! briefly a connection to refuse on each port, directories being synced or listed, `/proc` for
//! metrics, the profiler's pipe. A process may also inherit descriptors. To keep descriptors free
//! for all of these, the number of a connection's descriptor is checked, too
//! ([`Descriptors::main_end`]): the system assigns the lowest free number, so a connection with
//! the number `n` means that `n` others are open.

use std::os::fd::RawFd;

use crate::config::{Config, OPEN_FILES_MIN};

/// Descriptors of log, manifest, directories and runtime.
const HOUSEKEEPING: u64 = 64;
/// Fewest descriptors of the HTTP port.
const HTTP_MIN: u64 = 16;
/// Fewest descriptors of the main port.
const MAIN_MIN: u64 = 16;
/// Fewest descriptors of store files: at least one for each thread that reads or writes them, so
/// that the handle cache stays within its limit (`engine::fs::HandleCache`).
const FILES_MIN: u64 = OPEN_FILES_MIN as u64;
/// Smallest limit of open files.
const LIMIT_MIN: u64 = HOUSEKEEPING + HTTP_MIN + MAIN_MIN + FILES_MIN;

/// The limit of open files and its shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptors {
    limit: u64,
    /// Most connections of the main port.
    pub(crate) main: usize,
    /// Most connections of the HTTP port.
    pub(crate) http: usize,
    /// Most connections of the REST port.
    pub(crate) rest: usize,
    /// Most descriptors of store files.
    pub(crate) files: usize,
}

impl Descriptors {
    /// Divides the limit of open files; fails with a text when it is too small.
    pub(crate) fn divide(limit: u64, config: &Config) -> Result<Self, String> {
        if limit < LIMIT_MIN {
            return Err(format!(
                "the limit of open files is {limit}, and {LIMIT_MIN} are needed: {HOUSEKEEPING} for log, manifest and runtime, \
                 {FILES_MIN} for store files, {MAIN_MIN} for the main port and {HTTP_MIN} for the HTTP port. Raise it \
                 (LimitNOFILE= of systemd, ulimit -Hn)"
            ));
        }
        let http = (limit / 16).clamp(HTTP_MIN, (config.http.max_connections as u64).max(HTTP_MIN));
        let has_rest = config.rest.listen.0.is_some();
        // A limit that holds no second share leaves the REST port the smallest one, out of housekeeping's.
        let rest = if has_rest { http.min(limit - LIMIT_MIN) } else { 0 };
        let left = limit - HOUSEKEEPING - http - rest;
        let main = (left / 4 * 3)
            .min(left - FILES_MIN)
            .min(config.server.max_connections as u64);
        let files = match config.store.max_open_files {
            0 => left - main,
            wanted => (left - main).min(wanted as u64),
        };
        let count = |share| usize::try_from(share).unwrap_or(usize::MAX);
        Ok(Self {
            limit,
            main: count(main),
            http: count(http).min(config.http.max_connections),
            rest: count(rest).min(config.http.max_connections),
            files: count(files),
        })
    }

    /// The first number that a descriptor of a connection of the main port may not have: below it, half of
    /// housekeeping's share and the HTTP port's share stay free, whatever else the process has
    /// open.
    pub(crate) fn main_end(self) -> RawFd {
        self.end(HOUSEKEEPING / 2 + self.http as u64 + self.rest as u64)
    }

    /// The first number that a descriptor of an HTTP connection may not have: below it, half of
    /// housekeeping's share stays free.
    pub(crate) fn http_end(self) -> RawFd {
        self.end(HOUSEKEEPING / 2)
    }

    fn end(self, kept: u64) -> RawFd {
        RawFd::try_from(self.limit - kept).unwrap_or(RawFd::MAX)
    }

    /// The name of the limit on connections of the main port, for the log.
    pub(crate) fn main_bound(self, config: &Config) -> &'static str {
        if self.main < config.server.max_connections {
            "the main port's share of the limit of open files"
        } else {
            "server.max_connections"
        }
    }

    /// The name of the limit on connections of the HTTP port, for the log.
    pub(crate) fn http_bound(self, config: &Config) -> &'static str {
        if self.http < config.http.max_connections {
            "the HTTP port's share of the limit of open files"
        } else {
            "http.max_connections"
        }
    }

    /// The shares in one line, for the log.
    pub(crate) fn line(self) -> String {
        format!(
            "limit of open files {}: {HOUSEKEEPING} for log, manifest and runtime, {} for store files, {} for the main port, {} for \
             the HTTP port",
            self.limit, self.files, self.main, self.http
        )
    }

    /// One sentence for each setting that the limit of open files has no room for.
    pub(crate) fn warnings(self, config: &Config) -> Vec<String> {
        [
            ("server.max_connections", config.server.max_connections, self.main),
            ("store.max_open_files", config.store.max_open_files, self.files),
        ]
        .into_iter()
        .filter(|(_, wanted, share)| wanted > share)
        .map(|(setting, wanted, share)| {
            format!(
                "{setting} is {wanted}, and the limit of open files ({}; LimitNOFILE, ulimit -Hn) has room for {share}",
                self.limit
            )
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn config(main: usize, http: usize, files: usize) -> Config {
        let mut config = Config::default();
        config.server.max_connections = main;
        config.http.max_connections = http;
        config.store.max_open_files = files;
        config
    }

    fn shares(limit: u64, config: &Config) -> (usize, usize, usize) {
        let shares = Descriptors::divide(limit, config).unwrap();
        (shares.files, shares.main, shares.http)
    }

    /// The examples of docs/operations/limits.md.
    #[test]
    fn shares_are_those_of_the_page() {
        let default = Config::default();
        assert_eq!(shares(1024, &default), (224, 672, 64));
        assert_eq!(shares(4096, &default), (944, 2832, 256));
        assert_eq!(shares(524_288, &default), (504_224, 10_000, 10_000));
        assert_eq!(shares(176, &default), (80, 16, 16));
        assert_eq!(shares(524_288, &config(100, 100, 5_000)), (5_000, 100, 100));
    }

    #[test]
    fn without_a_limit_the_settings_hold() {
        let shares = Descriptors::divide(u64::MAX, &Config::default()).unwrap();
        assert_eq!((shares.main, shares.http), (10_000, 10_000));
        assert!(shares.files > 1 << 40);
        assert_eq!((shares.main_end(), shares.http_end()), (RawFd::MAX, RawFd::MAX));
        assert!(shares.warnings(&Config::default()).is_empty());
    }

    #[test]
    fn a_limit_that_is_too_small_is_refused_with_numbers_and_remedy() {
        let refusal = Descriptors::divide(LIMIT_MIN - 1, &Config::default()).unwrap_err();
        for word in ["175", "176", "64", "80", "16", "LimitNOFILE"] {
            assert!(refusal.contains(word), "{refusal}");
        }
    }

    #[test]
    fn a_limit_that_is_too_low_is_said() {
        let wants = config(10_000, 50, 5_000);
        let shares = Descriptors::divide(1024, &wants).unwrap();
        let warnings = shares.warnings(&wants).join("\n");
        for word in [
            "10000",
            "1024",
            "server.max_connections",
            "store.max_open_files",
            "5000",
        ] {
            assert!(warnings.contains(word), "{warnings}");
        }
        assert!(shares.main_bound(&wants).contains("share of the limit"));
        assert_eq!(shares.http_bound(&wants), "http.max_connections");
    }

    proptest! {
        /// For any limit and settings, the shares and housekeeping's fit together, and none is
        /// below its minimum.
        #[test]
        fn shares_fit_the_limit(
            limit in prop_oneof![LIMIT_MIN..1_000, LIMIT_MIN..100_000, LIMIT_MIN..=u64::MAX],
            main in 1_usize..20_000, http in 1_usize..20_000, files in prop_oneof![Just(0), 80_usize..50_000],
        ) {
            let config = config(main, http, files);
            let shares = Descriptors::divide(limit, &config).unwrap();
            let sum = [shares.files, shares.main, shares.http].iter().map(|share| *share as u128).sum::<u128>();
            prop_assert!(sum + u128::from(HOUSEKEEPING) <= u128::from(limit), "{shares:?}");
            prop_assert!(shares.files as u64 >= FILES_MIN, "{shares:?}");
            prop_assert!(shares.main >= main.min(MAIN_MIN as usize), "{shares:?}");
            prop_assert!(shares.http >= http.min(HTTP_MIN as usize), "{shares:?}");
            prop_assert!(shares.main <= main && shares.http <= http);
        }
    }
}
