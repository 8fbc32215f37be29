//! Files that nobody refers to: outputs of flushes and compactions that a crash cut short, inputs that a crash kept from
//! being removed, and whatever else got into the directory. They are moved aside, because deleting is for people.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::fs::Vfs;
use crate::manifest::ManifestState;
use crate::store::{file_path, store_dir};

/// Levels of directories from `tables` to the store files.
const LEVELS: usize = 3;

/// Moves all files below `tables/` that the state does not name to `orphans/`; returns how many.
/// The new name is the old path below `tables/`, joined with dots.
pub(super) fn move_away(vfs: &dyn Vfs, dir: &Path, state: &ManifestState) -> Result<usize> {
    let orphans = find(vfs, dir, state)?;
    if orphans.is_empty() {
        return Ok(0);
    }
    let target = dir.join("orphans");
    vfs.create_dir_all(&target)
        .map_err(|source| Error::io("creating", &target, source))?;
    vfs.sync_dir(dir)
        .map_err(|source| Error::io("syncing", dir, source))?;
    for orphan in &orphans {
        let to = free_name(
            vfs,
            &target,
            orphan.strip_prefix(dir.join("tables")).unwrap_or(orphan),
        )?;
        vfs.rename(orphan, &to)
            .map_err(|source| Error::io("moving aside", orphan, source))?;
    }
    vfs.sync_dir(&target)
        .map_err(|source| Error::io("syncing", &target, source))?;
    Ok(orphans.len())
}

/// All files below `tables/` that the state does not name.
pub(super) fn find(vfs: &dyn Vfs, dir: &Path, state: &ManifestState) -> Result<Vec<PathBuf>> {
    let mut known = HashSet::new();
    for region in state.regions.values() {
        for (family, files) in &region.files {
            for file in files {
                known.insert(file_path(&store_dir(dir, &file.dir_table, family), file.id));
            }
        }
    }
    let root = dir.join("tables");
    let mut found = Vec::new();
    if vfs
        .exists(&root)
        .map_err(|source| Error::io("looking for", &root, source))?
    {
        walk(vfs, &root, 0, &mut |path| {
            if !known.contains(&path) {
                found.push(path);
            }
        })?;
    }
    Ok(found)
}

fn walk(vfs: &dyn Vfs, dir: &Path, level: usize, visit: &mut dyn FnMut(PathBuf)) -> Result<()> {
    let names = vfs
        .list(dir)
        .map_err(|source| Error::io("listing", dir, source))?;
    for name in names {
        let path = dir.join(name);
        // Files lie on the last level; a file that got in higher up shows itself by not being a directory.
        let is_file = level == LEVELS
            || match vfs.list(&path) {
                Ok(_) => false,
                Err(error) if error.kind() == ErrorKind::NotADirectory => true,
                Err(source) => return Err(Error::io("listing", &path, source)),
            };
        if is_file {
            visit(path);
        } else {
            walk(vfs, &path, level + 1, visit)?;
        }
    }
    Ok(())
}

fn free_name(vfs: &dyn Vfs, target: &Path, below: &Path) -> Result<PathBuf> {
    let mut flat = OsString::new();
    for part in below {
        if !flat.is_empty() {
            flat.push(".");
        }
        flat.push(part);
    }
    let mut candidate = target.join(&flat);
    let mut attempt = 0_u32;
    while vfs
        .exists(&candidate)
        .map_err(|source| Error::io("looking for", &candidate, source))?
    {
        attempt += 1;
        let mut numbered = flat.clone();
        numbered.push(format!(".{attempt}"));
        candidate = target.join(numbered);
    }
    Ok(candidate)
}
