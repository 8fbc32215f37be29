//! Folders for the data of tests.

use std::path::Path;

use tempfile::TempDir;

/// A folder in memory has to have this much space.
const ENOUGH_BYTES: u64 = 4 << 30;

/// A new folder that is removed when dropped. Where the system has a file system in memory it is there, since
/// hundreds of servers would wait for the disk; the environment variable `TMPDIR` names another place. Tests
/// that need a disk ask `tempfile` for their folder.
pub fn tempdir() -> std::io::Result<TempDir> {
    let in_memory = Path::new("/dev/shm");
    let has_space = rustix::fs::statvfs(in_memory)
        .is_ok_and(|space| space.f_bavail.saturating_mul(space.f_frsize) >= ENOUGH_BYTES);
    if has_space && std::env::var_os("TMPDIR").is_none() {
        return tempfile::tempdir_in(in_memory);
    }
    tempfile::tempdir()
}
