//! What a run leaves behind: a JSON file for programs, and one HTML file for people.
//!
//! The HTML has everything inside, script and style included, so it can be mailed and opened anywhere.

pub(crate) mod hotspot;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};

/// Version of the JSON. Raised when a field changes its meaning or goes away.
pub(crate) const REPORT_FORMAT: u32 = 1;

/// Makes sure that reports can be written, before hours are spent on one.
pub(crate) fn create_dir(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(|source| Error::File {
        path: dir.to_owned(),
        source,
    })
}

pub(crate) fn write_file(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })
}

/// Writes a report and returns where.
pub(crate) fn write_json(path: &Path, report: &impl Serialize) -> Result<PathBuf> {
    write_file(path, &to_json(report)?)?;
    Ok(path.to_owned())
}

fn to_json(report: &impl Serialize) -> Result<String> {
    let json = serde_json::to_string_pretty(report).map_err(|error| Error::Report(error.to_string()))?;
    Ok(json + "\n")
}
