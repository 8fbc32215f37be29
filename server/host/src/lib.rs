//! The Java host of user code: a process of its own, in which the classes of Basalt's users run.
//!
//! ```text
//! caller -> Host::enter (permit, process, socket) -> Seat::exchange (a frame there, a frame back) -> dropped: socket back
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | `frame` | frames and their kinds |
//! | `body` | numbers, bytes and texts in the body of a frame |
//! | `filter` | calls about filters, and the checks of their answers |
//! | `process` | one process: start, output, end |
//! | `supervision` | when a process is started, and which classes are given up |
//! | `settings` | settings of a host |
//! | `exchange` | one call on a socket |
//! | `host` | permits, sockets, deadlines |
//!
//! Invariants:
//! - A [`Host`] without a call has no process, no thread and no file.
//! - A call ends within the deadline and the time of a start. It is made by the thread that waits for it; no
//!   more threads than there are sockets wait at a time.
//! - The host is not trusted to answer well: every answer is checked, and a bad one ends its socket.
//!
//! The crate knows nothing of the engine, of protocols, or of rights. Its functions block: they are for
//! threads of the blocking pool.

mod body;
mod error;
mod exchange;
pub mod filter;
pub mod frame;
mod host;
mod process;
mod settings;
mod supervision;

pub use body::{BadBody, Reader, Writer};
pub use error::Error;
pub use host::{Figures, Host, Purpose, Seat};
pub use settings::Settings;
