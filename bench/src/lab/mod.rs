//! The schema lab: experiments that compare ways to lay out the same data, with a claim about each.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`hotspot`], [`ids`], [`family`], [`orders`], [`twibase`] | the experiments, one command of `basalt-bench` each |
//! | [`whole`] | the command `report`: all experiments, and `pe` and `ycsb`, in one report |
//! | [`verify`] | the command `verify`: compares the rows that `hotspot` wrote with their file |
//! | [`claims`] | claims, their verdicts, and the report of an experiment that tests them |
//! | [`designs`], [`rows`], [`region_load`] | row-key designs, the rows to write, and how evenly regions share them |
//!
//! `family`, `orders` and `twibase` share a server and its tables ([`Lab`]), the rows that fill them
//! ([`Filled`]), and questions that each way of storing the data answers ([`Question`], [`Asked`]).
//!
//! The rest of the program sees the commands only: an `Arguments` and a `run` for each. The lab uses the load
//! generator ([`crate::load`], [`crate::session`], [`crate::tables`]), never the other way round.

mod asking;
mod caller;
mod claims;
mod designs;
pub(crate) mod family;
mod fill;
pub(crate) mod hotspot;
pub(crate) mod ids;
pub(crate) mod orders;
mod region_load;
mod rows;
mod setup;
pub(crate) mod twibase;
pub(crate) mod verify;
pub(crate) mod whole;

use asking::{Asked, Question, compare, describe};
use caller::Caller;
use fill::Filled;
use setup::{Lab, LabOptions};
