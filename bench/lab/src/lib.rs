//! The schema lab: experiments that compare ways to lay out the same data, with a claim about each.
//!
//! | module | purpose |
//! | --- | --- |
//! | `hotspot`, `ids`, `family`, `orders`, `twibase` | the experiments, one command of `basalt-bench` each ([`Workload`]) |
//! | [`model`] | the command `model`: measures a schema that a file describes |
//! | [`whole`] | the command `report`: all experiments, and `pe` and `ycsb`, in one report |
//! | [`verify`] | the command `verify`: compares the rows that `hotspot` wrote with their file |
//! | `claims` | claims, their verdicts, and the report of an experiment that tests them |
//! | `designs`, `rows`, `region_load` | row-key designs, the rows to write, and how evenly regions share them |
//!
//! `family`, `orders` and `twibase` share a server and its tables (`Lab`), the rows that fill them
//! (`Filled`), and questions that each way of storing the data answers (`Question`, `Asked`).
//!
//! The only caller, the program `basalt-bench`, sees the commands: their arguments and how to run them. The
//! lab uses the load generator ([`basalt_load`]), never the other way round.

mod asking;
mod caller;
mod claims;
mod designs;
mod family;
mod fill;
mod hotspot;
mod ids;
pub mod model;
mod orders;
mod region_load;
mod rows;
mod setup;
mod twibase;
pub mod verify;
pub mod whole;
mod workload;

pub use workload::Workload;

use asking::{Asked, Question, compare, describe};
use caller::Caller;
use fill::Filled;
use setup::{Lab, LabOptions};
