//! Unreferenced files: outputs of flushes and compactions that a crash cut short, inputs that a
//! crash kept from being removed, links of snapshots that were being made or removed, and foreign
//! files in the directory. They are moved aside and never deleted: deleting is left to the
//! operator.
//!
//! In `orphans/` a file is named by its old path. A path that is too long for a name is cut, and
//! has its checksum at the cut, so that every path gets a valid name.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::checksum::crc32c;
use crate::error::{Error, Result};
use crate::fs::Vfs;
use crate::manifest::ManifestState;
use crate::store::{file_path, snapshot_store_dir, store_dir};

/// The directories that are searched, with the levels of directories between them and the store
/// files.
const ROOTS: [(&str, usize); 2] = [("tables", 3), ("snapshots", 4)];

/// Maximum length of a name in `orphans/` without the number that may follow, so that both together
/// have at most 255 bytes, as file systems allow.
const NAME_BYTES_MAX: usize = 240;

/// Bytes of a file's own name that are kept when its path is cut: all of a store file's.
const FILE_NAME_BYTES_MAX: usize = 32;

/// Moves all files below `tables/` and `snapshots/` that the state does not name to `orphans/`;
/// returns their number. The new name is the old path, joined with dots, without `tables`, and cut
/// when it is long. Then it removes the directories of snapshots that no longer exist.
pub(super) fn move_away(vfs: &dyn Vfs, dir: &Path, state: &ManifestState) -> Result<usize> {
    let orphans = find(vfs, dir, state)?;
    if !orphans.is_empty() {
        move_all(vfs, dir, &orphans)?;
    }
    remove_empty_snapshots(vfs, dir, state)?;
    Ok(orphans.len())
}

fn move_all(vfs: &dyn Vfs, dir: &Path, orphans: &[PathBuf]) -> Result<()> {
    let target = dir.join("orphans");
    vfs.create_dir_all(&target)
        .map_err(|source| Error::io("creating", &target, source))?;
    vfs.sync_dir(dir)
        .map_err(|source| Error::io("syncing", dir, source))?;
    for orphan in orphans {
        let below = orphan
            .strip_prefix(dir.join("tables"))
            .or_else(|_| orphan.strip_prefix(dir))
            .unwrap_or(orphan);
        let to = free_name(vfs, &target, below)?;
        vfs.rename(orphan, &to)
            .map_err(|source| Error::io("moving aside", orphan, source))?;
    }
    vfs.sync_dir(&target)
        .map_err(|source| Error::io("syncing", &target, source))
}

/// Removes the remains of removed snapshots: directories without files.
fn remove_empty_snapshots(vfs: &dyn Vfs, dir: &Path, state: &ManifestState) -> Result<()> {
    let root = dir.join("snapshots");
    if !exists(vfs, &root)? {
        return Ok(());
    }
    for name in list(vfs, &root)? {
        let is_known = name
            .to_str()
            .is_some_and(|name| state.snapshots.contains_key(name));
        if !is_known {
            remove_dirs(vfs, &root.join(name))?;
        }
    }
    Ok(())
}

fn remove_dirs(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    for name in list(vfs, dir)? {
        remove_dirs(vfs, &dir.join(name))?;
    }
    // A directory that cannot be removed, as on a full disk, does no harm, and the next start tries
    // again.
    let _ = vfs.remove_dir(dir);
    Ok(())
}

fn exists(vfs: &dyn Vfs, path: &Path) -> Result<bool> {
    vfs.exists(path)
        .map_err(|source| Error::io("looking for", path, source))
}

fn list(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<PathBuf>> {
    vfs.list(dir).map_err(|source| Error::io("listing", dir, source))
}

/// All files below `tables/` and `snapshots/` that the state does not name.
pub(super) fn find(vfs: &dyn Vfs, dir: &Path, state: &ManifestState) -> Result<Vec<PathBuf>> {
    let mut known = HashSet::new();
    for region in state.regions.values() {
        for (family, files) in &region.files {
            for file in files {
                known.insert(file_path(&store_dir(dir, &file.dir_table, family), file.id));
            }
        }
    }
    for snapshot in state.snapshots.values() {
        for (family, file) in snapshot.files().values() {
            let dir = snapshot_store_dir(dir, &snapshot.name, &file.dir_table, family);
            known.insert(file_path(&dir, file.id));
        }
    }
    let mut found = Vec::new();
    for (root, levels) in ROOTS {
        let root = dir.join(root);
        if exists(vfs, &root)? {
            walk(vfs, &root, levels, &mut |path| {
                if !known.contains(&path) {
                    found.push(path);
                }
            })?;
        }
    }
    Ok(found)
}

/// Visits the files that lie `levels` of directories below.
fn walk(vfs: &dyn Vfs, dir: &Path, levels: usize, visit: &mut dyn FnMut(PathBuf)) -> Result<()> {
    for name in list(vfs, dir)? {
        let path = dir.join(name);
        // Files lie on the last level; a stray file on a higher level is recognised because it is
        // not a directory.
        let is_file = levels == 0
            || match vfs.list(&path) {
                Ok(_) => false,
                Err(error) if error.kind() == ErrorKind::NotADirectory => true,
                Err(source) => return Err(Error::io("listing", &path, source)),
            };
        if is_file {
            visit(path);
        } else {
            walk(vfs, &path, levels - 1, visit)?;
        }
    }
    Ok(())
}

/// A free name in `target`.
fn free_name(vfs: &dyn Vfs, target: &Path, below: &Path) -> Result<PathBuf> {
    let flat = flat_name(below);
    let mut candidate = target.join(&flat);
    let mut attempt = 0_u32;
    while exists(vfs, &candidate)? {
        attempt += 1;
        let mut numbered = flat.clone();
        numbered.push(format!(".{attempt}"));
        candidate = target.join(numbered);
    }
    Ok(candidate)
}

/// The path's parts joined with dots. If that is too long: its beginning, `~`, its CRC-32C as 8 hex
/// digits, a dot, and the end of the file's name.
fn flat_name(below: &Path) -> OsString {
    let parts: Vec<&[u8]> = below.iter().map(OsStr::as_bytes).collect();
    let flat = parts.join(&b'.');
    if flat.len() <= NAME_BYTES_MAX {
        return OsString::from_vec(flat);
    }
    let file = parts.last().copied().unwrap_or_default();
    let file = &file[whole_letters(file, file.len().saturating_sub(FILE_NAME_BYTES_MAX))..];
    let end = [format!("~{:08x}.", crc32c(&flat)).as_bytes(), file].concat();
    let begin = &flat[..whole_letters(&flat, NAME_BYTES_MAX - end.len() - 3)];
    OsString::from_vec([begin, &end].concat())
}

/// The first position at or after `at` that is not inside a UTF-8 character, which has at most 3
/// more bytes; `at` if there is none.
fn whole_letters(bytes: &[u8], at: usize) -> usize {
    let is_inside = |at: &usize| bytes.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (at..at + 4).find(|at| !is_inside(at)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(path: &str) -> String {
        flat_name(Path::new(path)).into_string().unwrap()
    }

    #[test]
    fn short_paths_are_joined() {
        assert_eq!(flat("n/t/f/00ff"), "n.t.f.00ff");
        let longest = format!("{}/f", "t".repeat(NAME_BYTES_MAX - 2));
        assert_eq!(flat(&longest), longest.replace('/', "."));
    }

    /// Goal: a path of any length becomes a valid file name with room for a number, and different
    /// paths get different names.
    #[test]
    fn long_paths_are_cut() {
        let (namespace, table) = ("n".repeat(255), "\u{8868}".repeat(85));
        let (one, other) = (
            flat(&format!("{namespace}/{table}/f/00000000000000ff")),
            flat(&format!("{namespace}/{table}/g/00000000000000ff")),
        );
        assert!(
            one.starts_with("nnnn") && one.ends_with(".00000000000000ff"),
            "{one}"
        );
        assert_ne!(one, other);
        for letter in ["x", "\u{e9}", "\u{8868}"] {
            for length in 230..300 {
                let name = flat(&format!("t/{}", letter.repeat(length / letter.len())));
                assert!(name.len() <= NAME_BYTES_MAX, "{name}");
            }
        }
        let bytes = OsString::from_vec(vec![0x80; 255]);
        assert!(flat_name(Path::new(&bytes)).len() <= NAME_BYTES_MAX);
    }
}
