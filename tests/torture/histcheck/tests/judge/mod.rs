//! Runs a checker on a table of histories: it accepts every good one and rejects every bad one.

use basalt_histcheck::Violation;

/// Histories, each with its subject.
pub(crate) type Histories = [(&'static str, &'static str)];

/// Fewest histories of each kind.
const HISTORIES_MIN: usize = 20;

/// All are accepted.
pub(crate) fn accepts<T>(good: &Histories, check: impl Fn(&str) -> Result<T, Violation>) {
    for (why, text) in good {
        check(text).unwrap_or_else(|violation| panic!("{why}: {text}\n{violation}"));
    }
    assert!(good.len() >= HISTORIES_MIN);
}

/// All are rejected.
pub(crate) fn rejects<T>(bad: &Histories, check: impl Fn(&str) -> Result<T, Violation>) {
    for (why, text) in bad {
        assert!(check(text).is_err(), "{why}: {text}");
    }
    assert!(bad.len() >= HISTORIES_MIN);
}
