//! Basalt client.
