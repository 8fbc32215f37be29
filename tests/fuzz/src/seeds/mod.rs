//! Seed inputs: output of the real encoders, and hand-made cases at the limits. `make-corpus`
//! writes them to files.

mod calls;
mod filters;
mod hfile;
mod host;
mod logins;
mod logs;
mod native;
mod text;
mod wire;

use crate::corpus::Input;

/// The seeds of a target.
/// REQUIRES: there is a target of that name.
pub fn of(target: &str) -> Vec<Input> {
    match target {
        "wire" => wire::seeds(),
        "filter_string" => filters::strings(),
        "filter_bytes" => filters::bytes(),
        "config" => text::settings(),
        "hfile" => hfile::seeds(),
        "bulk_load" => hfile::offered(),
        "rpc_calls" => calls::seeds(),
        "wal" => logs::segments(),
        "manifest" => logs::manifests(),
        "shell" => text::commands(),
        "rpc_frames" => native::rpc_frames(),
        "rpc_messages" => native::rpc_messages(),
        "cell_blocks" => native::cell_blocks(),
        "zookeeper" => native::zookeeper(),
        "host_frames" => host::seeds(),
        "logins" => logins::seeds(),
        other => unreachable!("no target {other}"),
    }
}

/// A seed.
fn seed(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Input {
    Input {
        name: name.into(),
        bytes: bytes.into(),
    }
}

/// Seeds of one kind, numbered.
fn numbered<B: Into<Vec<u8>>>(kind: &str, inputs: impl IntoIterator<Item = B>) -> Vec<Input> {
    let named = |(index, bytes): (usize, B)| seed(format!("{kind}-{index:02}"), bytes);
    inputs.into_iter().enumerate().map(named).collect()
}
