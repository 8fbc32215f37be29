//! The parts of the daemon `basalt` that turn what comes from outside into something checked, without I/O: settings from text,
//! messages from received bytes. The binary is built on them; they are a library so that fuzzers can call them too.

pub mod config;
pub mod messages;
