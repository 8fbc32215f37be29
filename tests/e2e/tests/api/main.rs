//! Details of each call that HBase's clients depend on, beyond "it works": bounds that are
//! inclusive or not, which delete hides which cells, the value that a check compares, where an
//! error shows and its class. Tests that run together share one server; each has tables of its own.

mod client;
mod clock;
mod cluster;
mod filters;
mod open_files;
mod options;
mod quotas;
mod reads2;
mod regions;
mod rehearsal;
mod rows;
mod rows1;
mod scans;
mod schemas;
mod service;
mod slow_log;
mod snapshots;
mod system;
mod tables;
mod thrift1;
mod writes2;
