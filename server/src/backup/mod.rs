//! Backups of this server: the engine's pins as points that `basalt_backup` copies.
//!
//! | module | has |
//! | --- | --- |
//! | `point` | what a backup of this server consists of: the engine's files, and the server's own |
//! | `job` | a backup on request, with its progress |
//! | `continuous` | the log, shipped as it grows, and backups now and then |
//!
//! A pin is held for as long as its files are copied. All calls but those of the engine run on the runtime.

pub(crate) mod continuous;
pub(crate) mod job;
pub(crate) mod point;
