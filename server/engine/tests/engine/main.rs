//! The engine through its front door: data, schema, regions, many threads, crashes.

mod blocks;
mod call_memory;
mod compactions;
mod crash;
mod data;
mod disk_full;
mod hanging;
mod memory;
mod moving;
mod no_space;
mod opening;
mod places;
mod publication;
mod regions;
mod rig;
mod schema;
mod snapshot_crash;
mod snapshots;
mod splits;
mod system;
mod threads;
mod upkeep;
