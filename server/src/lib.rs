//! The parts of the daemon `basalt` that turn what comes from outside into something checked, without I/O: settings from text,
//! messages from received bytes. The binary is built on them; they are a library so that fuzzers can call them too.

/// The commit that was built, in hexadecimal digits, or `unknown`.
pub const COMMIT: &str = env!("BASALT_COMMIT");

/// Version and commit, as `--version` prints them.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BASALT_COMMIT"), ")");

pub mod config;
pub mod messages;
#[path = "native/decode/mod.rs"]
pub mod native_decode;
pub mod selection;
