//! The engine through its front door: data, schema, regions, many threads, crashes.

mod blocks;
mod crash;
mod data;
mod memory;
mod moving;
mod opening;
mod publication;
mod regions;
mod rig;
mod schema;
mod splits;
mod system;
mod threads;
mod upkeep;
