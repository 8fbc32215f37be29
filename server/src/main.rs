//! The program `basalt`. Everything but its allocator is in the library.

use std::process::ExitCode;

mod allocator;

fn main() -> ExitCode {
    basalt_server::run(allocator::give_back_large_pieces)
}
