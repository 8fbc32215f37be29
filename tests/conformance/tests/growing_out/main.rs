//! Data moves between an unmodified HBase and Basalt: live replication and snapshots as files in both
//! directions, and the move of a table.
//!
//! HBase is the oracle of the differential tests. Its own client and tools do the steps: a Java process
//! (`tests/conformance/growing-out`) that takes commands. Tests compare all cells of both sides: keys,
//! timestamps, types, values and tags.
//!
//! Without Java, Maven or a way to download HBase, the tests print `not run: ...` and check nothing.

#[path = "../../../e2e/tests/peers/checker.rs"]
mod checker;
mod gateway;
mod moving;
mod rig;
mod sink;
mod snapshots;
mod source;
