//! Writes the seeds of every target into `tests/fuzz/corpus/`. Inputs of other names stay: they were found by
//! a fuzzer and are kept.

use std::fs;
use std::io::{self, Write as _};

use basalt_fuzz::{TARGETS, corpus, seeds};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for target in TARGETS {
        let directory = corpus::directory(target);
        fs::create_dir_all(&directory)?;
        for seed in seeds::of(target.name) {
            if seed.bytes.len() > target.longest_input {
                writeln!(
                    out,
                    "{}/{} has {} bytes; libFuzzer cuts it to {}",
                    target.name,
                    seed.name,
                    seed.bytes.len(),
                    target.longest_input
                )?;
            }
            fs::write(directory.join(seed.name), seed.bytes)?;
        }
        let kept = corpus::read(target)?;
        let bytes: usize = kept.iter().map(|input| input.bytes.len()).sum();
        writeln!(out, "{}: {} inputs, {bytes} bytes", target.name, kept.len())?;
    }
    Ok(())
}
