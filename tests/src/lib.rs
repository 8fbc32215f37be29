//! Basalt tests.
