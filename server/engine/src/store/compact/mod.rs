//! Compaction: many store files become one.
//!
//! [`choose`] decides, without side effects; [`run`] does it, and decides nothing.

mod choose;
mod limiter;
mod run;

pub use choose::{Choice, CompactionState, FileView, choose, is_major_due, needs_compaction};
pub use limiter::RateLimiter;
pub use run::{Compacted, CompactionJob, run};
