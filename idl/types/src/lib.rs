//! The words that Basalt's engine, server and client share. No I/O, no locks, no threads.
//!
//! | module | contents |
//! | --- | --- |
//! | [`cell`] | cells, their keys and order, batches of rows |
//! | [`schema`] | tables, families, namespaces and their rules |
//! | [`op`] | reads and writes |
//! | [`filter`] | HBase's filters: the language, the protobuf form, evaluation |
//! | [`id`] | sequence ids, ids of regions, nonces |
//! | [`error`] | the error type |
//! | [`seeded`] | known bugs for tests of the tests |
//!
//! The engine re-exports what its callers need; a program that embeds it does not name this crate.

pub mod cell;
pub mod error;
pub mod filter;
pub mod id;
pub mod name;
pub mod op;
pub mod schema;
pub mod seeded;
pub mod text;

pub use error::{Error, Result};
