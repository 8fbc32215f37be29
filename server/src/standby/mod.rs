//! A second server with the same data: the standby follows the primary's log, and takes its place on request.
//!
//! ```text
//! seed      before the engine opens: fetches a copy of all data from the primary, if the directory needs one
//! follower  of a standby: requests the log, applies it, becomes the primary
//! source    of a standby: the log that it follows, one of the next two; its replies are in `answer`
//! direct    the primary's log, from its HTTP port
//! stored    the primary's log, from the store of its backups (`store`)
//! leader    of a primary: sends copies and the log, accepts a fence, checks whether it was replaced
//! remote    requests to the other server's HTTP port
//! wire      requests and replies of both
//! ```
//!
//! 1. The standby gets a copy ([`leader::copy`]): the files of a pin, in one answer. From then on the log is
//!    kept for it.
//! 2. It requests the log from its place on (`POST /standby/log`), applies the reply, and requests more. A
//!    request acknowledges everything before its place. Without news the primary answers after
//!    [`wire::HEARTBEAT`].
//! 3. After a change that it cannot make by itself it gets a new copy, and starts again with that.
//! 4. `basalt promote` fences the primary, if that answers; then the standby takes what is left of the log,
//!    and is the primary of the next term. A primary that does not answer is fenced as soon as it does; a
//!    primary that starts asks its standbys first.
//!
//! A standby of a store gets its copy from the newest backup, and the log as the primary ships it: the
//! primary is asked for nothing, and knows nothing of it. It is fenced by a promotion if it can be reached.
//!
//! Invariants:
//! - At any time one server at most takes calls in a term.
//! - A primary acknowledges no write once it is fenced, and reads its last position after that: the next
//!   primary has every acknowledged write, if the fence was confirmed.
//! - A data directory that was a primary's becomes a standby's only if it is emptied by hand.
//!
//! State: `server::copies::{standing, standbys}`. HTTP: `http::standby`.

mod answer;
mod direct;
pub(crate) mod follower;
pub(crate) mod leader;
mod remote;
pub(crate) mod seed;
mod source;
mod store;
mod stored;
pub(crate) mod wire;
