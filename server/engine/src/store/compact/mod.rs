//! Compaction: many store files of a stripe become one, or a few that do not overlap.
//!
//! [`choose`] decides, without side effects; [`run`] does it, and decides nothing.

mod choose;
mod limiter;
mod run;

pub(crate) use choose::{CompactionState, FileView, Pick, choose, precedence};
pub(crate) use choose::{is_major_due, needs_compaction};
pub(crate) use limiter::RateLimiter;
pub(crate) use run::{Compacted, CompactionJob, run};
