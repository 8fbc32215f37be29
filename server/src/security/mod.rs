//! Who calls, and who may do what.
//!
//! | module | contents |
//! | --- | --- |
//! | `caller` | the sender of a connection's calls: user, address, owner of scanners |
//! | `access` | actions, targets, and the decision |

mod access;
mod caller;

pub(crate) use access::{Access, Action, Columns, Refused, Target, Visit, visit_spec};
pub(crate) use caller::{Caller, Owner, User};
