//! The cluster that clients see: the names of its servers, and regions by the names that clients have
//! for them.
//!
//! Basalt is one server. In a rehearsal it presents itself as several virtual servers; the engine
//! records which region is on which, and `limits::capacity` has the capacity of each. The rows of
//! `hbase:meta` are computed in the engine (`catalog/system/`).

mod names;
pub(crate) mod regions;

pub(crate) use names::{advertised, server_names, virtual_host};
