//! Import: a snapshot that an HBase has taken, or that was exported from another data directory, becomes a
//! snapshot of this one.
//!
//! 1. The description and the manifest of the snapshot are read. What Basalt cannot serve is refused by name:
//!    tables with MOB or encryption, unknown codecs.
//! 2. Each file is found: below the root or its archive, behind the link of a clone, or as the half of a file
//!    of a parent whose split was not finished. Its size must be that of the manifest.
//! 3. The engine copies and verifies the files, each cut to the rows of its region (the caller asks it to).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use basalt_engine::engine::{ImportedFile, ImportedRegion, ImportedSnapshot, RegionInfo};
use basalt_engine::schema::{TableDescriptor, TableName, escape};
use prost::Message;

use super::Error;
use super::layout::{self, DATA_MANIFEST, Name, REGION_MANIFEST, SNAPSHOT_INFO, SNAPSHOTS};
use super::messages::{DataManifest, File, LAYOUT_VERSION, RegionManifest, SnapshotInfo};
use crate::service::remote::messages as schema;

type Result<T> = std::result::Result<T, Error>;

/// Largest manifest that is read. HBase's own limit is 64 MiB by default.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// A snapshot as its description says, whose files are yet to be copied.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) content: ImportedSnapshot,
    /// Coprocessors of the table, which are not part of the snapshot here.
    pub(crate) left_out: Vec<String>,
}

/// Reads the snapshot `name` of the root directory `root`, and finds its files.
pub(crate) fn read(root: &Path, name: &str, now_ms: u64) -> Result<Found> {
    let dir = root.join(SNAPSHOTS).join(name);
    let info: SnapshotInfo = decode(&dir.join(SNAPSHOT_INFO))?;
    check_info(&info, &dir, now_ms)?;
    let path = dir.join(DATA_MANIFEST);
    if !path.exists() {
        return Err(Error::Refused(format!(
            "{} is missing: {}",
            path.display(),
            contents(&dir)
        )));
    }
    let manifest: DataManifest = decode(&path)?;
    check_table(&manifest)?;
    let mut descriptor = schema::table(&manifest.table_schema)
        .map_err(|failure| Error::Refused(format!("its table: {}", failure.message())))?;
    let left_out = leave_out_coprocessors(&mut descriptor);
    let mut regions = Vec::new();
    for region in &manifest.regions {
        let is_parent = region.region_info.split == Some(true) && region.region_info.offline == Some(true);
        if is_parent || region.region_info.replica_id.unwrap_or_default() != 0 {
            continue;
        }
        regions.push(imported_region(root, region)?);
    }
    regions.sort_by(|one, other| one.start.cmp(&other.start));
    let content = ImportedSnapshot {
        name: name.to_owned(),
        created_ms: u64::try_from(info.creation_time.unwrap_or_default()).unwrap_or_default(),
        ttl_seconds: u64::try_from(info.ttl.unwrap_or_default()).unwrap_or_default(),
        regions,
        descriptor,
    };
    Ok(Found { content, left_out })
}

fn contents(dir: &Path) -> String {
    let names = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_unfinished = names
        .map(|entry| entry.file_name())
        .any(|name| name.to_string_lossy().starts_with(REGION_MANIFEST));
    if is_unfinished {
        "the snapshot was not completed".to_owned()
    } else {
        "the directory is not that of a snapshot of HBase 0.98 or later".to_owned()
    }
}

fn check_info(info: &SnapshotInfo, dir: &Path, now_ms: u64) -> Result<()> {
    let version = info.version.unwrap_or_default();
    if version != LAYOUT_VERSION {
        return Err(Error::Refused(format!(
            "{}: layout version {version}; only version {LAYOUT_VERSION} is read, which HBase writes since 0.98",
            dir.display()
        )));
    }
    let ttl_ms = u64::try_from(info.ttl.unwrap_or_default())
        .unwrap_or_default()
        .saturating_mul(1000);
    let created_ms = u64::try_from(info.creation_time.unwrap_or_default()).unwrap_or_default();
    if ttl_ms > 0 && created_ms.saturating_add(ttl_ms) < now_ms {
        return Err(Error::Refused(format!(
            "snapshot {} has expired: its time to live is over",
            info.name
        )));
    }
    Ok(())
}

/// Refuses tables whose files hold something else than cells in the clear.
fn check_table(manifest: &DataManifest) -> Result<()> {
    for family in &manifest.table_schema.column_families {
        for attribute in &family.attributes {
            let is = |name: &[u8]| attribute.first == name;
            let family = escape(&family.name);
            if is(b"IS_MOB") && attribute.second.eq_ignore_ascii_case(b"true") {
                return Err(Error::Refused(format!(
                    "family {family} has MOB (IS_MOB), whose values are in files of their own: alter it to IS_MOB => 'false' \
                     and compact the table there (major_compact 'TABLE'), or copy it with CopyTable"
                )));
            }
            if is(b"ENCRYPTION") || is(b"ENCRYPTION_KEY") {
                return Err(Error::Refused(format!(
                    "family {family} is encrypted (ENCRYPTION): copy it with CopyTable"
                )));
            }
        }
    }
    Ok(())
}

/// Takes coprocessors off the table: their classes are not run here. Returns them.
fn leave_out_coprocessors(table: &mut TableDescriptor) -> Vec<String> {
    let is_one = |name: &[u8]| {
        name.to_ascii_lowercase()
            .strip_prefix(b"coprocessor$")
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
    };
    let mut left_out = Vec::new();
    table.attributes.retain(|name, value| {
        let kept = !is_one(name);
        if !kept {
            left_out.push(String::from_utf8_lossy(value).into_owned());
        }
        kept
    });
    left_out
}

fn imported_region(root: &Path, region: &RegionManifest) -> Result<ImportedRegion> {
    let message = &region.region_info;
    let table = schema::table_name(&message.table_name)
        .map_err(|failure| Error::Refused(failure.message().to_owned()))?;
    let start = message.start_key.as_deref().unwrap_or_default();
    let end = message.end_key.as_deref().unwrap_or_default();
    let info = RegionInfo::named(table, start, end, message.region_id);
    let mut files: BTreeMap<Vec<u8>, Vec<ImportedFile>> = BTreeMap::new();
    for store in &region.families {
        let of_family = files.entry(store.family.to_vec()).or_default();
        for file in &store.files {
            let family = String::from_utf8_lossy(&store.family);
            of_family.push(found(root, &info, &family, file)?);
        }
    }
    Ok(ImportedRegion {
        start: start.to_vec(),
        end: end.to_vec(),
        files,
    })
}

/// Finds a file of a region.
fn found(root: &Path, region: &RegionInfo, family: &str, file: &File) -> Result<ImportedFile> {
    let refused = |what: String| {
        Error::Refused(format!(
            "region {}, family {family}, file {}: {what}",
            region.encoded_name, file.name
        ))
    };
    // A reference is named after the file and the region that it is half of.
    let (name, of_region) = match layout::reference(&file.name) {
        Some((name, parent)) => (name, parent),
        None if file.reference.is_some() => {
            return Err(refused("a reference without the name of its region".to_owned()));
        }
        None => (file.name.as_str(), region.encoded_name.as_str()),
    };
    let (table, of_region, name) = match Name::parse(name) {
        Some(Name::File) => (region.table.clone(), of_region, name),
        Some(Name::Link {
            namespace,
            table,
            region,
            file,
        }) => (TableName::new(namespace, table)?, region, file),
        None => return Err(refused("not the name of a store file".to_owned())),
    };
    let path = [root.to_owned(), layout::archive(root), root.join(".tmp")]
        .iter()
        .map(|below| layout::store_dir(below, &table, of_region, family).join(name))
        .find(|path| path.is_file());
    let Some(path) = path else {
        let dir = layout::store_dir(Path::new(""), &table, of_region, family);
        return Err(refused(format!(
            "it is missing: neither {} nor its archive has {}",
            root.display(),
            dir.join(name).display()
        )));
    };
    if file.reference.is_none()
        && let Some(wanted) = file.bytes
    {
        let bytes = fs::metadata(&path).map_err(Error::io("reading", &path))?.len();
        if bytes != wanted {
            return Err(refused(format!(
                "{} has {bytes} bytes, and the manifest says {wanted}",
                path.display()
            )));
        }
    }
    Ok(ImportedFile {
        loaded_seq: layout::loaded_seq(name),
        path,
    })
}

/// Reads a message from a file.
fn decode<M: Message + Default>(path: &Path) -> Result<M> {
    let bytes = fs::metadata(path).map_err(Error::io("reading", path))?.len();
    if bytes > MANIFEST_BYTES_MAX {
        return Err(Error::Refused(format!(
            "{} has {bytes} bytes, the limit is {MANIFEST_BYTES_MAX}",
            path.display()
        )));
    }
    let bytes = fs::read(path).map_err(Error::io("reading", path))?;
    M::decode(&bytes[..]).map_err(|error| {
        Error::Refused(format!(
            "{} cannot be read: {error}",
            PathBuf::from(path).display()
        ))
    })
}
