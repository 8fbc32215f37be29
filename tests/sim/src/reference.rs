//! Data directories with every kind of file, for [`super::bits`] to damage.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use basalt_engine::Result;
use basalt_engine::fs::sim::{Mode, SimFs, SplitMix64};
use basalt_engine::fs::{Open, Vfs};
use basalt_engine::internals::record::FRAME_HEADER_BYTES;
use basalt_engine::op::{RowMutation, Write};
use basalt_engine::schema::{Durability, FamilyDescriptor, TableDescriptor};
use basalt_engine::{Engine, Error};

use super::answers::{Answers, all_answers};
use super::read::name;
use super::{DIR, Machine};

/// Manifest frames begin at multiples of this.
const FRAME_ALIGN_BYTES: u64 = 512;

/// Bytes of a manifest's header.
const MANIFEST_HEADER_BYTES: u64 = 64;

/// A directory and its answers.
#[derive(Debug)]
pub(super) struct Reference {
    pub(super) name: String,
    /// The disk after a kill: no process has it open.
    pub(super) disk: SimFs,
    pub(super) answers: BTreeMap<String, Answers>,
    padding: BTreeMap<PathBuf, Vec<Range<u64>>>,
}

impl Reference {
    /// A disk, and the answers of a database opened on it.
    fn of(name: &str, disk: SimFs, answers: BTreeMap<String, Answers>) -> Result<Self> {
        let mut padding = BTreeMap::new();
        for path in disk.files() {
            if path.to_string_lossy().contains("/MANIFEST-") {
                let bytes = disk
                    .contents(&path)
                    .map_err(|error| Error::io("reading", &path, error))?;
                padding.insert(path, padding_of(&bytes));
            }
        }
        Ok(Self {
            name: name.to_owned(),
            disk,
            answers,
            padding,
        })
    }

    pub(super) fn bytes(&self, path: &Path) -> u64 {
        self.disk.contents(path).map_or(0, |bytes| bytes.len() as u64)
    }

    /// Ranges of a manifest file that belong to no frame and lie before its end.
    pub(super) fn manifest_padding(&self, path: &Path) -> &[Range<u64>] {
        self.padding.get(path).map_or(&[], Vec::as_slice)
    }

    /// Pairs of files of one kind.
    pub(super) fn swaps(&self) -> Vec<(PathBuf, PathBuf)> {
        let kind = |path: &Path| {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.starts_with(super::below("tables")) {
                Some("store file")
            } else if name.starts_with("MANIFEST-") {
                Some("manifest")
            } else if path.starts_with(super::below("wal")) {
                Some("log")
            } else {
                None
            }
        };
        let files = self.disk.files();
        let mut pairs = Vec::new();
        for (index, one) in files.iter().enumerate() {
            for two in &files[index + 1..] {
                if kind(one).is_some() && kind(one) == kind(two) {
                    pairs.push((one.clone(), two.clone()));
                }
            }
        }
        pairs
    }
}

/// Walks the frames of a manifest by their lengths.
fn padding_of(bytes: &[u8]) -> Vec<Range<u64>> {
    let mut padding = Vec::new();
    padding.push(MANIFEST_HEADER_BYTES..FRAME_ALIGN_BYTES);
    let mut at = FRAME_ALIGN_BYTES as usize;
    while let Some(header) = bytes.get(at..at + FRAME_HEADER_BYTES) {
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        let payload = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let end = at + FRAME_HEADER_BYTES + payload;
        at = end.next_multiple_of(FRAME_ALIGN_BYTES as usize);
        padding.push(end as u64..at as u64);
    }
    padding
}

/// The directories, at most `count`.
pub(super) fn build(count: usize) -> Vec<Result<Reference>> {
    const ENCODINGS: [&str; 5] = ["NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"];
    const COMPRESSIONS: [&str; 5] = ["NONE", "SNAPPY", "LZ4", "ZSTD", "GZ"];
    const BLOOMS: [&str; 3] = ["NONE", "ROW", "ROWCOL"];
    let mut all = vec![logs()];
    for (index, encoding) in ENCODINGS.iter().enumerate() {
        for (shift, bloom) in BLOOMS.iter().enumerate() {
            if all.len() < count {
                all.push(store_file(encoding, COMPRESSIONS[(index + shift) % 5], bloom));
            }
        }
    }
    all
}

fn put(engine: &Engine, table: &str, row: &str, writes: &[Write<'_>]) -> Result<()> {
    let mutation = RowMutation {
        row: row.as_bytes(),
        writes: writes.iter().copied().collect(),
        durability: Durability::UseDefault,
    };
    engine.mutate(&name(table), &[mutation])?.wait()
}

/// Two versions of some columns, a time to live, and tombstones of several kinds.
fn fill(machine: &Machine, engine: &Engine, table: &str, rows: usize, value_bytes: usize) -> Result<()> {
    let mut dice = SplitMix64::new(rows as u64);
    for round in 0..2 {
        for number in 0..rows {
            machine.clock.advance_ms(1);
            let mut value = format!("{table}-{round}-{number}:").into_bytes();
            let mut noise = vec![0; value_bytes];
            dice.fill(&mut noise);
            value.extend(noise.iter().map(|byte| b'a' + byte % 7));
            let write = |qualifier, ttl_ms| Write::Put {
                family: b"f",
                qualifier,
                timestamp: None,
                value: &value,
                ttl_ms,
            };
            let writes = [
                write(b"q".as_slice(), None),
                write(b"ttl", (number % 4 == 0).then_some(1 << 40)),
            ];
            put(engine, table, &format!("r{number:02}"), &writes)?;
        }
    }
    machine.clock.advance_ms(1);
    let family = b"f".as_slice();
    let tombstones = [
        Write::DeleteFamily {
            family,
            timestamp: None,
        },
        Write::DeleteColumn {
            family,
            qualifier: b"q",
            timestamp: None,
        },
        Write::DeleteVersion {
            family,
            qualifier: b"ttl",
            timestamp: None,
        },
    ];
    for (number, tombstone) in tombstones.into_iter().enumerate() {
        put(engine, table, &format!("r{number:02}"), &[tombstone])?;
    }
    Ok(())
}

fn descriptor(table: &str, options: &[(&str, &str)]) -> Result<TableDescriptor> {
    let mut family = FamilyDescriptor::new(b"f")
        .with("VERSIONS", 5)?
        .with("BLOCKSIZE", 1024)?;
    for (option, value) in options {
        family = family.with(option, value)?;
    }
    Ok(TableDescriptor::new(name(table), vec![family]))
}

/// One store file, in the log nothing.
fn store_file(encoding: &str, compression: &str, bloom: &str) -> Result<Reference> {
    let machine = Machine::new(5, Mode::Strict);
    let engine = machine.open()?;
    let options = [
        ("DATA_BLOCK_ENCODING", encoding),
        ("COMPRESSION", compression),
        ("BLOOMFILTER", bloom),
    ];
    engine.create_table(descriptor("t", &options)?, Vec::new())?;
    fill(&machine, &engine, "t", 12, 60)?;
    engine.flush(&name("t"))?;
    let name = format!("store file {encoding} {compression} {bloom}");
    let answers = all_answers(&engine)?;
    // The other files are those of the first directory over again: a stop leaves the fewest bytes of them.
    engine.close()?;
    Reference::of(&name, machine.disk.crash_keep_all(), answers)
}

/// Log segments, manifests and the rest, with few store files: a process at work, at the moment of its death.
fn logs() -> Result<Reference> {
    let machine = Machine::new(7, Mode::Strict);
    let engine = machine.open()?;
    engine.create_table(descriptor("t", &[])?, Vec::new())?;
    fill(&machine, &engine, "t", 8, 40)?;
    engine.flush(&name("t"))?;
    engine.close()?;
    drop(engine);
    // A start, so that there are two manifests; a split, so that regions share a file; rows in the log alone.
    let engine = machine.open()?;
    let region = engine.regions(&name("t"))?[0].id;
    engine.split_region(region, Some(b"r04"))?;
    engine.create_table(descriptor("u", &[("COMPRESSION", "ZSTD")])?, Vec::new())?;
    fill(&machine, &engine, "u", 6, 40)?;
    engine.flush(&name("u"))?;
    fill(&machine, &engine, "t", 40, 240)?;
    for path in ["orphans/left", "CURRENT.tmp"] {
        leave(&machine.disk, &super::below(path)).map_err(|error| Error::io("writing", path, error))?;
    }
    // Nothing happens for a while: the marker that states everything durable is written.
    for _ in 0..3 {
        machine.clock.advance_ms(100);
        engine.run_pending()?;
    }
    Reference::of("logs", machine.disk.crash_keep_all(), all_answers(&engine)?)
}

/// A file that a crash may have left behind.
fn leave(disk: &SimFs, path: &Path) -> std::io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| *parent != Path::new(DIR)) {
        disk.create_dir_all(parent)?;
    }
    disk.open(path, Open::CreateNew)?.write_at(b"left behind", 0)
}
