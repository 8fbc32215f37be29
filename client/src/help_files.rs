//! Completions and man pages of a program, made from its command line.

use std::io;
use std::path::Path;

use clap::Command;
pub use clap_complete::Shell;

/// The completions of a program for a shell: the text of the file that the shell reads.
pub fn completions(mut command: Command, shell: Shell) -> Vec<u8> {
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    text
}

/// Writes a man page for a program, and one for each of its commands, into an existing directory.
pub fn write_man_pages(command: Command, dir: &Path) -> io::Result<()> {
    clap_mangen::generate_to(command, dir)
}
