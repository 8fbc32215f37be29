//! Basalt engine.
