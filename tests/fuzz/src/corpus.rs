//! The inputs that are kept: `corpus/<target>/<name>`.

use std::io;
use std::path::PathBuf;

use crate::Target;

/// A kept input.
#[derive(Clone, Debug)]
pub struct Input {
    /// File name of the input, which describes it.
    pub name: String,
    /// Bytes of the input.
    pub bytes: Vec<u8>,
}

/// Where the inputs of a target lie.
pub fn directory(target: &Target) -> PathBuf {
    crate::directory().join("corpus").join(target.name)
}

/// The kept inputs of a target, sorted by name.
pub fn read(target: &Target) -> io::Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for entry in std::fs::read_dir(directory(target))? {
        let entry = entry?;
        inputs.push(Input {
            name: entry.file_name().to_string_lossy().into_owned(),
            bytes: std::fs::read(entry.path())?,
        });
    }
    inputs.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(inputs)
}
