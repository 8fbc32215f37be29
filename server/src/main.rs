//! The daemon `basalt`.
fn main() {}
