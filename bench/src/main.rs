//! The program `basalt-bench`.

use std::process::ExitCode;

fn main() -> ExitCode {
    basalt_bench::main()
}
