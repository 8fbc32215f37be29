//! Shared by several packages of tests: the real programs, a running server, a real HBase, and programs of
//! other languages.
//!
//! | module | contents |
//! | --- | --- |
//! | [`programs`] | the workspace's programs, built if need be |
//! | [`server`] | a running `basalt serve` in an empty directory, on ports the system chooses |
//! | [`folder`] | folders for the data of tests |
//! | [`process`] | signals, memory, waiting for a condition |
//! | [`objects`] | a server of objects, as S3, whose faults are drawn from a seed |
//! | [`oracle`] | a running HBase, and its Java program in `oracle/` |
//! | [`java`], [`python`], [`toolchain`] | programs in other languages, with libraries from their package registries |
//!
//! A machine may lack Java, Python, a compiler or the network. A test that needs one prints a line that
//! begins with `not run:`, and the test is not run.

pub mod folder;
pub mod java;
mod made;
pub mod objects;
pub mod oracle;
pub mod process;
pub mod programs;
pub mod python;
pub mod server;
pub mod toolchain;

pub use folder::tempdir;
pub use java::JavaProgram;
pub use oracle::Oracle;
pub use process::{signal, until};
pub use programs::{binary, example, workspace};
pub use python::{Python, happybase, moto};
pub use server::{Server, addresses, administer, check, free_address, serve};
