//! `--listen-file`: a file that says where the server listens, for scripts that wait for it.
//!
//! It is there when calls are accepted, whole (another file is renamed to it), and gone after a clean stop.
//! It has one line of JSON: `listen`, `http`, `data_dir`, `pid`, and how to log in with `--secure`.

use std::io;
use std::path::{Path, PathBuf};

/// The file of a running server; removed when dropped.
#[derive(Debug)]
pub(super) struct ListenFile {
    path: PathBuf,
}

impl ListenFile {
    /// Writes the line. The error names the option and the file.
    pub(super) fn write(path: &Path, line: &str) -> Result<Self, String> {
        let refused =
            |error: io::Error| format!("--listen-file {}: it cannot be written: {error}", path.display());
        let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
        name.push(format!(".{}", std::process::id()));
        let beside = path.with_file_name(name);
        std::fs::write(&beside, format!("{line}\n")).map_err(refused)?;
        std::fs::rename(&beside, path).map_err(|error| {
            // The name of a folder cannot be taken; the other file must not stay.
            let removed = std::fs::remove_file(&beside);
            refused(removed.err().unwrap_or(error))
        })?;
        Ok(Self {
            path: path.to_owned(),
        })
    }
}

impl Drop for ListenFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, "the file of --listen-file, {}, was not removed", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_line_until_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("address");
        std::fs::write(&path, "of an earlier server").unwrap();
        let file = ListenFile::write(&path, "{}").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}\n");
        drop(file);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        for wrong in [dir.path().to_owned(), dir.path().join("no/such")] {
            let refused = ListenFile::write(&wrong, "{}").unwrap_err();
            assert!(
                refused.contains(&format!("--listen-file {}", wrong.display())),
                "{refused}"
            );
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
