//! The cluster that clients see: the names of its servers, which region is on which, and regions by
//! the names that clients have for them.
//!
//! Basalt is one server. In a rehearsal it presents itself as several virtual servers; `placement`
//! records which region is on which, and `limits::capacity` has the capacity of each. The rows of
//! `hbase:meta` are computed in the engine (`catalog/system/`).

mod names;
mod placement;
pub(crate) mod regions;

pub(crate) use names::{advertised, server_names, virtual_host};
pub(crate) use placement::{Place, Placement};

/// The version of HBase that clients are told, which choose their calls by it.
pub(crate) const HBASE_VERSION: &str = "2.6.1";
