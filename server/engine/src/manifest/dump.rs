//! The manifest for people: `basalt dump` and `basalt check`. Reads only.

use std::fmt::{self, Write};
use std::io;
use std::path::{Path, PathBuf};

use super::encode::Payload;
use super::file::{Header, file_name, file_numbers, find_live, load, read_file, walk};
use super::{FileMeta, ManifestEdit, ManifestState, RegionMeta, RegionState, SnapshotMeta};
use crate::error::{Error, Result};
use crate::fs::Vfs;
use crate::schema::{Escaped, TableDescriptor};

/// Result of a successful [`verify`].
#[derive(Clone, Debug)]
pub struct Verified {
    /// The live manifest file.
    pub path: PathBuf,
    /// State that the manifest describes.
    pub state: ManifestState,
    /// Number of its last edit.
    pub last_edit: u64,
    /// Problems that the next open repairs by itself: an edit in flight that was cut short, a
    /// damaged CURRENT, a damaged manifest beside the live one.
    pub warnings: Vec<String>,
}

/// Checks the manifest of a data directory: every checksum and every rule about the order of edits.
/// Damage is an error that names file and offset.
pub fn verify(vfs: &dyn Vfs, dir: &Path) -> Result<Verified> {
    let Some(live) = find_live(vfs, dir)? else {
        let source = io::Error::new(io::ErrorKind::NotFound, "the directory holds no database");
        return Err(Error::io("checking", dir, source));
    };
    let mut warnings = live.warnings;
    for number in file_numbers(vfs, dir)? {
        let path = dir.join(file_name(number));
        if path == live.path {
            continue;
        }
        let loaded = match read_file(vfs, &path)? {
            Some(bytes) => load(&path, &bytes),
            None => continue,
        };
        match loaded {
            Err(error @ Error::Corrupt { .. }) => {
                warnings.push(format!(
                    "not the live manifest, and of no use in its place: {error}"
                ));
            }
            Err(error) => return Err(error),
            Ok(loaded) => {
                let torn = loaded.tail.torn.map(|what| {
                    let end = loaded.tail.end;
                    format!(
                        "{}: not the live manifest; cut short at offset {end}: {what}",
                        path.display()
                    )
                });
                warnings.extend(torn);
            }
        }
    }
    Ok(Verified {
        path: live.path,
        state: live.loaded.state,
        last_edit: live.loaded.last_edit,
        warnings,
    })
}

/// Prints a manifest file frame by frame. Damage ends the print with an error, after the intact
/// frames before it.
pub fn dump(vfs: &dyn Vfs, path: &Path, out: &mut dyn Write) -> Result<()> {
    let failed = |_: fmt::Error| Error::io("printing", path, io::Error::other("the output failed"));
    let Some(bytes) = read_file(vfs, path)? else {
        return Err(Error::io("reading", path, io::ErrorKind::NotFound.into()));
    };
    let header = Header::decode(path, &bytes)?;
    writeln!(
        out,
        "manifest {:016x}, format {}, uuid {}, cluster {}",
        header.number, header.version, header.uuid, header.cluster_id
    )
    .map_err(failed)?;
    let tail = walk(path, &bytes, &header.uuid, |at, frame, payload| {
        let (number, durable) = (frame.first_seq, frame.durable_upto);
        match payload {
            None => writeln!(out, "@{at} marker: durable up to {durable}"),
            Some(Payload::Edit(edit)) => writeln!(out, "@{at} edit {number}: {edit}"),
            Some(Payload::Snapshot(state)) => {
                writeln!(out, "@{at} snapshot after edit {number}:").and_then(|()| print_state(&state, out))
            }
        }
        .map_err(failed)
    })?;
    match tail.torn {
        None => writeln!(out, "@{} end", tail.end),
        Some(what) => writeln!(out, "@{} end, an edit in flight was cut short: {what}", tail.end),
    }
    .map_err(failed)
}

fn print_state(state: &ManifestState, out: &mut dyn Write) -> fmt::Result {
    writeln!(
        out,
        "  next region {}, next file {}, timestamp {}, sequence id {}, turns {}",
        state.next_region, state.next_file, state.timestamp_ms, state.seq, state.turns
    )?;
    for name in state.namespaces.keys() {
        writeln!(out, "  namespace {name}")?;
    }
    for table in state.tables.values() {
        writeln!(
            out,
            "  table {} {}",
            Table(&table.descriptor),
            table.state.as_str()
        )?;
    }
    for region in state.regions.values() {
        writeln!(out, "  region {} flushed up to {}", region.meta, region.flushed)?;
        for (family, file) in region
            .files
            .iter()
            .flat_map(|(family, files)| files.iter().map(move |file| (family, file)))
        {
            let clipped = if region.clipped.contains(&file.id) {
                " clipped"
            } else {
                ""
            };
            writeln!(out, "    {} {file}{clipped}", Escaped(family))?;
        }
    }
    for snapshot in state.snapshots.values() {
        writeln!(out, "  {snapshot}")?;
        for region in &snapshot.regions {
            writeln!(
                out,
                "    [{}, {}) flushed up to {}",
                Escaped(&region.start),
                Escaped(&region.end),
                region.flushed
            )?;
            for (family, file) in region
                .files
                .iter()
                .flat_map(|(family, files)| files.iter().map(move |file| (family, file)))
            {
                writeln!(out, "      {} {file}", Escaped(family))?;
            }
        }
    }
    Ok(())
}

impl fmt::Display for SnapshotMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "snapshot {} of table {} created {}, {} regions, {} files",
            self.name,
            Table(&self.descriptor),
            self.created_ms,
            self.regions.len(),
            self.files().len()
        )?;
        match self.ttl_seconds {
            0 => Ok(()),
            seconds => write!(f, ", for {seconds} s"),
        }
    }
}

/// A region with the number of its files.
struct Filled<'a>(&'a RegionState);

impl fmt::Display for Filled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.0.files.values().map(Vec::len).sum::<usize>();
        write!(f, "{} with {files} files", self.0.meta)
    }
}

struct Table<'a>(&'a TableDescriptor);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (", self.0.name)?;
        for (index, family) in self.0.families.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}", Escaped(&family.name))?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for RegionMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} [{}, {}) created {}",
            self.id,
            self.table,
            Escaped(&self.start),
            Escaped(&self.end),
            self.created_ms
        )
    }
}

impl fmt::Display for FileMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} ({} bytes, crc32c {:08x}, {} cells, up to {}{}{})",
            self.id,
            self.dir_table,
            self.bytes,
            self.checksum,
            self.cells,
            self.max_seq,
            if self.major { ", major" } else { "" },
            if self.loaded { ", loaded" } else { "" }
        )
    }
}

fn print_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: impl IntoIterator<Item = T>,
) -> fmt::Result {
    f.write_str("[")?;
    for (index, item) in items.into_iter().enumerate() {
        let comma = if index == 0 { "" } else { "; " };
        write!(f, "{comma}{item}")?;
    }
    f.write_str("]")
}

impl fmt::Display for ManifestEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PutNamespace(namespace) => write!(f, "put namespace {}", namespace.name),
            Self::DropNamespace(name) => write!(f, "drop namespace {name}"),
            Self::CreateTable { descriptor, regions } => {
                write!(f, "create table {} with regions ", Table(descriptor))?;
                print_list(f, regions)
            }
            Self::AlterTable(descriptor) => write!(f, "alter table {}", Table(descriptor)),
            Self::SetTableState(name, state) => write!(f, "set table {name} {}", state.as_str()),
            Self::DropTable(name) => write!(f, "drop table {name}"),
            Self::TruncateTable(name, regions) => {
                write!(f, "truncate table {name}, new regions ")?;
                print_list(f, regions)
            }
            Self::Flush {
                region,
                flushed,
                files,
            } => {
                write!(f, "flush region {region} up to {flushed}, files ")?;
                print_list(
                    f,
                    files
                        .iter()
                        .map(|(family, file)| format!("{} {file}", Escaped(family))),
                )
            }
            Self::Compact {
                region,
                family,
                removed,
                added,
            } => {
                write!(f, "compact family {} of region {region}, files ", Escaped(family))?;
                print_list(f, removed)?;
                f.write_str(" became ")?;
                print_list(f, added)
            }
            Self::ReplaceRegions { removed, added } => {
                f.write_str("replace regions ")?;
                print_list(f, removed)?;
                f.write_str(" by ")?;
                print_list(f, added)
            }
            Self::HighWater { timestamp_ms, seq } => {
                write!(f, "high water: timestamp {timestamp_ms}, sequence id {seq}")
            }
            Self::Log { first, last } => write!(f, "the log has segments {first} to {last}"),
            Self::CreateSnapshot(snapshot) => write!(f, "create {snapshot}"),
            Self::DropSnapshot(name) => write!(f, "drop snapshot {name}"),
            Self::CloneTable { descriptor, regions } => {
                write!(f, "create table {} from a snapshot, regions ", Table(descriptor))?;
                print_list(f, regions.iter().map(Filled))
            }
            Self::RestoreTable { descriptor, regions } => {
                write!(f, "restore table {} from a snapshot, regions ", Table(descriptor))?;
                print_list(f, regions.iter().map(Filled))
            }
            Self::TruncateRegion { removed, added } => {
                write!(f, "truncate region {removed}, new region {added}")
            }
        }
    }
}
