//! Export: a snapshot of a data directory becomes files that HBase reads. Works beside a running server,
//! since the files of a snapshot never change.
//!
//! 1. Every file is verified, with the checksum of the whole file.
//! 2. A file that reaches beyond its region's rows, since a split, is rewritten: a plain link would show
//!    other regions' rows. The others stay where they are.
//! 3. The manifest is written below `.tmp`.
//! 4. The files get their places in the archive: by hard links, which take no space, or as copies where the
//!    target is on another file system. They get mode 0644, since `hbase snapshot export` copies modes; the
//!    data directory itself stays closed to others.
//! 5. The manifest gets its name.
//!
//! The manifest comes before the files and its name after them, because the target may be the root directory
//! of a running HBase: its cleaner removes old files of the archive that no snapshot names.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use basalt_engine::engine::{FileMeta, RegionInfo, SnapshotFiles, SnapshotRegion};
use basalt_engine::fs::{RealFs, Vfs};
use bytes::Bytes;
use prost::Message as _;

use super::Error;
use super::layout::{self, DATA_MANIFEST, SNAPSHOT_INFO, SNAPSHOTS, UNFINISHED};
use super::messages::{DataManifest, FamilyFiles, File, LAYOUT_VERSION, RegionManifest, SnapshotInfo};
use crate::service::remote::messages as schema;

type Result<T> = std::result::Result<T, Error>;

const FILE_MODE: u32 = 0o644;
const DIR_MODE: u32 = 0o755;

/// Result of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exported {
    pub(crate) regions: u64,
    pub(crate) linked: u64,
    pub(crate) copied: u64,
    /// Files that were made of a region's rows of a larger one.
    pub(crate) rewritten: u64,
    /// Files that were in the archive already, with the same content.
    pub(crate) found: u64,
    pub(crate) bytes: u64,
}

impl std::fmt::Display for Exported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} regions, {} files of {} bytes: {} linked, {} copied, {} rewritten, {} found",
            self.regions,
            self.linked + self.copied + self.rewritten + self.found,
            self.bytes,
            self.linked,
            self.copied,
            self.rewritten,
            self.found
        )
    }
}

/// Exports the snapshot `name` of the database in `data` to the root directory `root`. A line for each file
/// goes to `progress`. After an error nothing is left.
pub(crate) fn export(data: &Path, name: &str, root: &Path, progress: &mut dyn Write) -> Result<Exported> {
    let vfs: Arc<dyn Vfs> = Arc::new(RealFs);
    let source = SnapshotFiles::open(&vfs, data, name)?;
    let finished = root.join(SNAPSHOTS).join(name);
    if finished.exists() {
        return Err(Error::Refused(format!(
            "{} exists: remove it, or choose another directory",
            finished.display()
        )));
    }
    let mut export = Export {
        source: &source,
        root,
        made: Made::default(),
        exported: Exported::default(),
        progress,
    };
    export.made.dir(root)?;
    let done = export.run(&finished);
    if done.is_err() {
        export.made.remove();
    }
    done?;
    Ok(export.exported)
}

struct Export<'a> {
    source: &'a SnapshotFiles,
    root: &'a Path,
    made: Made,
    exported: Exported,
    progress: &'a mut dyn Write,
}

/// A file that is to get its place.
struct Planned {
    from: PathBuf,
    to: PathBuf,
    bytes: u64,
    /// The store file that it is, unless it was rewritten.
    whole: Option<FileMeta>,
}

impl Export<'_> {
    fn run(&mut self, finished: &Path) -> Result<()> {
        let snapshot = self.source.snapshot();
        let work = self.root.join(SNAPSHOTS).join(UNFINISHED).join(&snapshot.name);
        if work.exists() {
            return Err(Error::Refused(format!(
                "{} is left of another export: remove it",
                work.display()
            )));
        }
        self.made.dir(&work)?;
        let rewritten = work.join("rewritten");
        let mut manifest = DataManifest {
            table_schema: schema::to_table(&snapshot.descriptor),
            regions: Vec::new(),
        };
        let mut planned = Vec::new();
        for (index, region) in snapshot.regions.iter().enumerate() {
            let info = self.source.region_info(region);
            let mut families = Vec::new();
            for (family, files) in &region.files {
                let dir = rewritten.join(format!("{index}"));
                let files = self.plan(region, &info, (family, files), &dir, &mut planned)?;
                families.push(FamilyFiles {
                    family: Bytes::copy_from_slice(family),
                    files,
                });
            }
            manifest.regions.push(RegionManifest {
                version: None,
                region_info: schema::to_region(&info),
                families,
            });
            self.exported.regions += 1;
        }
        let info = SnapshotInfo {
            name: snapshot.name.clone(),
            table: Some(snapshot.descriptor.name.to_string()),
            creation_time: Some(i64::try_from(snapshot.created_ms).unwrap_or(i64::MAX)),
            kind: Some(1),
            version: Some(LAYOUT_VERSION),
            ttl: Some(i64::try_from(snapshot.ttl_seconds).unwrap_or(i64::MAX)),
        };
        self.write(&work.join(SNAPSHOT_INFO), &info.encode_to_vec())?;
        self.write(&work.join(DATA_MANIFEST), &manifest.encode_to_vec())?;
        for file in &planned {
            self.place(file)?;
        }
        self.made.dirs.retain(|dir| !dir.starts_with(&rewritten));
        remove_dir(&rewritten)?;
        sync(&work)?;
        fs::rename(&work, finished).map_err(Error::io("renaming", &work))?;
        sync(&self.root.join(SNAPSHOTS))
    }

    /// Verifies the files of a store, rewrites those that are shared, and plans their places.
    fn plan(
        &mut self,
        region: &SnapshotRegion,
        info: &RegionInfo,
        (family, files): (&[u8], &[FileMeta]),
        work: &Path,
        planned: &mut Vec<Planned>,
    ) -> Result<Vec<File>> {
        let snapshot = self.source.snapshot();
        let name = String::from_utf8_lossy(family).into_owned();
        let table = &snapshot.descriptor.name;
        let dir = layout::store_dir(&layout::archive(self.root), table, &info.encoded_name, &name);
        let mut listed = Vec::new();
        for file in files {
            self.source.verify(family, file)?;
            let place = if region.clipped.contains(&file.id) {
                let Some((_, descriptor)) = snapshot.descriptor.family(family) else {
                    continue;
                };
                self.made.dir(work)?;
                let Some(made) = self.source.extract(region, descriptor, file, work)? else {
                    continue;
                };
                let own = layout::file_name(&made.uuid, None);
                let kept = work.join(&own);
                fs::rename(&made.path, &kept).map_err(Error::io("renaming", &made.path))?;
                self.made.files.push(kept.clone());
                Planned {
                    from: kept,
                    to: dir.join(own),
                    bytes: made.bytes,
                    whole: None,
                }
            } else {
                let own = layout::file_name(&file.uuid, file.loaded.then_some(file.max_seq));
                Planned {
                    from: self.source.path(family, file),
                    to: dir.join(own),
                    bytes: file.bytes,
                    whole: Some(file.clone()),
                }
            };
            let file_name = place.to.file_name().unwrap_or_default();
            listed.push(File {
                name: file_name.to_string_lossy().into_owned(),
                reference: None,
                bytes: Some(place.bytes),
            });
            planned.push(place);
        }
        Ok(listed)
    }

    /// Gives a file its place.
    fn place(&mut self, file: &Planned) -> Result<()> {
        if let Some(dir) = file.to.parent() {
            self.made.dir(dir)?;
        }
        let how = match &file.whole {
            None => {
                fs::rename(&file.from, &file.to).map_err(Error::io("renaming", &file.from))?;
                self.made.files.push(file.to.clone());
                self.exported.rewritten += 1;
                "rewritten"
            }
            Some(whole) => self.link_or_copy(file, whole)?,
        };
        fs::set_permissions(&file.to, fs::Permissions::from_mode(FILE_MODE))
            .map_err(Error::io("setting the mode of", &file.to))?;
        self.exported.bytes += file.bytes;
        // Progress is for people: without a reader of it the export goes on.
        let _ = writeln!(
            self.progress,
            "{how} {} ({} bytes)",
            file.to.display(),
            file.bytes
        );
        Ok(())
    }

    fn link_or_copy(&mut self, file: &Planned, whole: &FileMeta) -> Result<&'static str> {
        // The archive may have it of another snapshot of the same table.
        if file.to.exists() {
            self.source.verify_copy(whole, &file.to)?;
            self.exported.found += 1;
            return Ok("found");
        }
        match fs::hard_link(&file.from, &file.to) {
            Ok(()) => {
                self.made.files.push(file.to.clone());
                self.exported.linked += 1;
                Ok("linked")
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(Error::io("linking", &file.from)(error))
            }
            Err(_) => {
                // Another file system, or one without hard links.
                self.made.files.push(file.to.clone());
                fs::copy(&file.from, &file.to).map_err(Error::io("copying to", &file.to))?;
                sync(&file.to)?;
                self.source.verify_copy(whole, &file.to)?;
                self.exported.copied += 1;
                Ok("copied")
            }
        }
    }

    fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        fs::write(path, bytes).map_err(Error::io("writing", path))?;
        self.made.files.push(path.to_owned());
        fs::set_permissions(path, fs::Permissions::from_mode(FILE_MODE))
            .map_err(Error::io("setting the mode of", path))?;
        sync(path)
    }
}

/// Files that an export has made, to be removed if it fails.
#[derive(Default)]
struct Made {
    files: Vec<PathBuf>,
    dirs: BTreeSet<PathBuf>,
}

impl Made {
    /// Makes a directory and those above it that are missing.
    fn dir(&mut self, dir: &Path) -> Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        if let Some(above) = dir.parent().filter(|above| !above.as_os_str().is_empty()) {
            self.dir(above)?;
        }
        fs::create_dir(dir).map_err(Error::io("creating", dir))?;
        self.dirs.insert(dir.to_owned());
        fs::set_permissions(dir, fs::Permissions::from_mode(DIR_MODE))
            .map_err(Error::io("setting the mode of", dir))
    }

    fn remove(&self) {
        // Files that cannot be removed stay: the caller gets the first error, and the next export names the
        // rest.
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        for dir in self.dirs.iter().rev() {
            let _ = fs::remove_dir(dir);
        }
    }
}

fn remove_dir(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("removing", dir)(error)),
        _ => Ok(()),
    }
}

/// Makes a file's content, or a directory's names, durable.
fn sync(path: &Path) -> Result<()> {
    fs::File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(Error::io("syncing", path))
}
