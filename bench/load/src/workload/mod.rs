//! The load generator's workloads, one file for each.
//!
//! A workload is a struct of arguments, which clap fills in and which becomes part of the report, and a
//! function `run` over it. Those that load a server share [`crate::load`] and [`crate::report`].

pub mod compare;
pub(crate) mod engine;
pub mod pe;
pub mod roundtrip;
pub mod ycsb;
