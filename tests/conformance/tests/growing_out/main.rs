//! Data moves between an unmodified HBase and Basalt: live replication into Basalt, and snapshots as files in
//! both directions.
//!
//! HBase is the oracle of the differential tests. Its own client and tools do the steps: a Java process
//! (`tests/conformance/growing-out`) that takes commands. Tests compare all cells of both sides: keys,
//! timestamps, types, values and tags.
//!
//! Without Java, Maven or a way to download HBase, the tests print `not run: ...` and check nothing.

mod rig;
mod sink;
mod snapshots;
mod source;
