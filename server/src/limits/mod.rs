//! Limits: which calls begin, how much memory and how many file descriptors they take, and how much
//! tables, users and virtual servers may ask for.

pub(crate) mod admission;
pub(crate) mod capacity;
pub(crate) mod descriptors;
pub(crate) mod threads;
pub(crate) mod yields;
