//! Basalt compared with a real HBase, which is the specification of what clients observe.
//!
//! This library is the differential tester: the same calls to Basalt and to a real HBase, and every answer
//! compared. `basalt-differ` runs it; `hbase-oracle` starts HBase for other tools. The tests play the
//! recorded `cases/` without HBase, exchange HFiles with it (`hfile-interop/`), and compare
//! docs/compatibility.md with the code.
//!
//! 1. [`generate`] makes a [`script::Script`] from a seed: tables, then calls over both Thrift APIs and,
//!    optionally, over native RPC or REST, flushes and compactions.
//! 2. [`play`] sends a script to a [`target::Target`], step by step, and returns the answers.
//! 3. [`compare`] compares them: results byte for byte, exceptions by type and `canRetry`, answers of REST by
//!    status, media type and decoded body, but for parts that two servers cannot have in common (clocks, ids,
//!    addresses, the wording of errors). Intended differences are rules in [`explained`].
//! 4. [`shrink`] makes a script with a difference as short as it gets.
//! 5. A script with HBase's answers written behind its calls is a case: [`script`] keeps it in a text file,
//!    and the ordinary test run plays it to Basalt without HBase.
//!
//! Scripts are repeatable: timestamps are explicit, or the clock moves on between calls ([`play`]).

pub mod compare;
pub mod explained;
pub mod generate;
pub mod play;
pub mod run;
pub mod script;
pub mod shrink;
pub mod target;
