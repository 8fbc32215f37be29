//! Identities of callers, and their rights.
//!
//! | module | contents |
//! | --- | --- |
//! | `caller` | the sender of a connection's calls: user, address, owner of scanners |
//! | `request` | actions and targets of requests, refusals |
//! | `access` | who may do what: everybody everything, or by rights |
//! | `guard` | users, rights and certificates of a running server; logins |
//! | `granted` | the rights as rows of `hbase:acl` |
//! | `strangers` | connections that have not logged in, by address |
//! | `live` | a value in a file that the command line changes |
//!
//! Files, tokens, SASL and HBase's model of rights are in the crate `basalt-security`.

mod access;
mod caller;
mod granted;
mod guard;
mod live;
mod request;
mod strangers;

pub(crate) use access::Access;
pub(crate) use caller::{Caller, Login, Owner, User};
pub(crate) use guard::{CLUSTER_ID_FILE, Next, Registered, Security, Ticket};
pub(crate) use request::{Action, Columns, Refused, Target, Visit, narrow, visit_spec};
pub(crate) use strangers::{Stranger, Strangers};
