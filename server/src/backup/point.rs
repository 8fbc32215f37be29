//! Parts of a backup of a server.
//!
//! The engine's part is a pin: store files and the log up to one position, and what the manifest says. The
//! server's part is the directory `security`: users, tokens, rights, and the authority of certificates. All
//! of that counts as secret. The audit log and files at places that the settings name are no part of it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use basalt_backup::{Class, LogPlace, Point, PointFile, Primary};
use basalt_engine::engine::{Pin, Restore};

use crate::VERSION;
use crate::config::security_dir;

/// Files of the directory `security` that are not copied: locks, unfinished files, and the log.
const NOT_COPIED: [&str; 3] = [".lock", ".new", "audit.log"];

/// Why a point could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("{0}")]
    Engine(#[from] basalt_engine::Error),
    #[error("reading {}: {source}", path.display())]
    Security { path: PathBuf, source: io::Error },
}

/// Describes a pin of the database in `data_dir`. `run` names the log that goes on from it, `primary` the
/// server if it runs. Blocks on the disk.
pub(crate) fn of_pin(
    pin: &Pin,
    data_dir: &Path,
    run: &str,
    primary: Option<Primary>,
) -> Result<Point, Failed> {
    let manifest = pin.manifest();
    let tables = Restore::decode(&manifest, data_dir)?.tables();
    let store = pin.files().into_iter().map(|file| PointFile {
        source: data_dir.join(&file.path),
        class: Class::Store,
        identity: format!("{} {} {:08x}", file.uuid, file.bytes, file.checksum),
        checksum: Some(file.checksum),
        bytes: file.bytes,
        length: file.bytes,
        path: file.path,
    });
    let mut files: Vec<PointFile> = store.collect();
    let log = pin.segments()?.into_iter().map(|segment| PointFile {
        source: data_dir.join(&segment.path),
        class: Class::Log,
        identity: String::new(),
        checksum: None,
        bytes: segment.bytes,
        length: segment.length,
        path: segment.path,
    });
    files.extend(log);
    let own = server_files(data_dir)?;
    let secrets = own.iter().map(|file| file.path.clone()).collect();
    files.extend(own);
    let end = pin.log_end();
    Ok(Point {
        cluster_id: pin.cluster_id().to_string(),
        server: VERSION.to_owned(),
        time_ms: pin.wall_ms(),
        position: pin.position().0,
        log: LogPlace {
            run: run.to_owned(),
            turns: pin.turns(),
            segment: end.segment,
            bytes: end.bytes,
        },
        primary,
        tables: tables.iter().map(ToString::to_string).collect(),
        manifest,
        files,
        secrets,
    })
}

/// The files of the directory `security`.
fn server_files(data_dir: &Path) -> Result<Vec<PointFile>, Failed> {
    let dir = security_dir(data_dir);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Failed::Security { path, source }
    };
    let listed = match fs::read_dir(&dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(failed(&dir))?,
    };
    let below = security_dir(Path::new(""));
    let mut files = Vec::new();
    for entry in listed {
        let entry = entry.map_err(failed(&dir))?;
        let (name, source) = (entry.file_name(), entry.path());
        let metadata = entry.metadata().map_err(failed(&source))?;
        let is_left_out = NOT_COPIED.iter().any(|end| name.to_string_lossy().ends_with(end));
        if metadata.is_file() && !is_left_out {
            files.push(PointFile {
                path: below.join(&name),
                source,
                class: Class::Server,
                identity: String::new(),
                checksum: None,
                bytes: metadata.len(),
                length: metadata.len(),
            });
        }
    }
    files.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(files)
}
