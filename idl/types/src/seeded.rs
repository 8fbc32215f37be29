//! Known bugs, switched on by name to prove that the tests catch them.
//!
//! A bug stands at its line as `seeded::is_on("seal-not-synced")`. Without the feature
//! `seeded-bugs`, which released programs do not have, that is `false` at compile time. With it,
//! the environment variable [`VARIABLE`] selects the one bug of the process.
//!
//! Callers: any code of the engine and the server. `basalt-sim seeded` has the list of bugs with the commands
//! that must catch them, and a test compares the list with the sources.

/// The environment variable that names the bug. Not `BASALT_...`: those are settings, and a server refuses to
/// start with one that does not exist.
pub const VARIABLE: &str = "SEEDED_BUG";

/// Whether this process has the bug `name`.
#[cfg(not(feature = "seeded-bugs"))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the branch goes away in debug builds, too")]
pub const fn is_on(_name: &str) -> bool {
    false
}

/// Whether this process has the bug `name`.
#[cfg(feature = "seeded-bugs")]
pub fn is_on(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var(VARIABLE).unwrap_or_default()) == name
}
