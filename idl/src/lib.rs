//! Basalt idl.
