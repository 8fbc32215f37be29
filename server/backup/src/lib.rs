//! Basalt's backups: objects in a store, and the catalogues that make backups of them.
//!
//! A [`Vault`] is the backups of one server at a URL. [`Vault::back_up`] copies a [`Point`], which the server
//! makes of the engine's pin; [`Vault::plan`] and [`Plan::fetch`] bring the files back, and the engine makes
//! a database of them. Files are cut into chunks that are named by the digest of their content, so content
//! that is there already is not copied again, and work that was cut short goes on where it ended.
//!
//! ```text
//! row 0  error pool digest limit progress point words, work that blocks
//! row 1  key object store catalogue             bytes of objects and catalogues; where they are
//! row 2  marks vault                            work that excludes other work; the objects of a server
//! row 3  copy fetch                             making, bringing back
//! row 4  log                                    the log between backups
//! row 5  followed upkeep                        the log for a standby; listing, verifying, pruning
//! ```
//!
//! Invariants:
//! - A backup exists when its catalogue does, and the catalogue is written after everything it names.
//! - An object is never changed; it is removed only when no catalogue names it.
//! - Every byte that is read is compared with a digest.
//! - The crate knows no sockets and no engine.

mod catalogue;
mod copy;
mod digest;
mod error;
mod fetch;
mod followed;
mod key;
mod limit;
mod log;
mod marks;
mod object;
mod point;
mod pool;
mod progress;
mod store;
mod turns;
mod upkeep;
mod vault;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use catalogue::{Class, LogPlace, Primary};
pub use copy::{CHUNK_BYTES, CopyOptions, Made, PARALLEL_MAX};
pub use error::{Error, Result};
pub use fetch::{DONE, Lost, Plan};
pub use followed::LogAhead;
pub use key::Key;
pub use log::{Fetched, PIECE_BYTES, Piece, Sample, Span, Tail, Target, Until};
pub use point::{Point, PointFile};
pub use progress::{Figures, Progress};
pub use store::{RETRY_TIME, Store};
pub use turns::Turn;
pub use upkeep::{Listed, Pruned, Verified};
pub use vault::Vault;
