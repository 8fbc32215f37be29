//! Manifest files and CURRENT as bytes: reading, checking, finding the live one. Nothing here writes to the
//! disk.

use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::encode::{Payload, decode};
use super::{ManifestEdit, ManifestState};
use crate::checksum::crc32c;
use crate::codec::Cursor;
use crate::error::{Error, Result};
use crate::fs::{Open, Vfs};
use crate::id::Uuid;
use crate::record::{FrameHeader, FrameRead, find_header, is_unwritten, read_frame};
use crate::seeded;

/// Size of a manifest file's header. It is fixed in every format version, as are magic, version and
/// checksum in it.
pub(super) const HEADER_BYTES: usize = 64;

/// Every frame begins at a multiple of this, and the first one here: no sector holds bytes of two
/// frames, so a write never touches durable bytes, and a lost sector never takes an edit together
/// with the marker that proves it durable.
pub(super) const FRAME_ALIGN_BYTES: usize = 512;

/// Space is reserved in steps of this size, so that most syncs need not write a new file size, and
/// so that truncation is detected. This much is reserved ahead, if the disk has it, so that a full
/// disk still takes the edits of flushes, which make log segments obsolete.
pub(super) const RESERVE_BYTES: u64 = 16 << 10;

pub(crate) const MAGIC: [u8; 8] = *b"BSLTMNFT";

/// The format that this release writes. It also reads version 6, without a number of turns; version 5,
/// without truncation of a region; version 4, in which a compaction has at most one output; version 3,
/// without loaded files; version 2, without snapshots of tables; and version 1, in which files had any size
/// and snapshots of the state did not list the log's segments.
pub(super) const FORMAT_VERSION: u32 = 7;

/// The oldest format that can be read.
const FORMAT_VERSION_MIN: u32 = 1;

/// From this version on a file's size is a multiple of [`RESERVE_BYTES`].
const FORMAT_VERSION_OF_SIZES: u32 = 2;

/// The format of `CURRENT`, and the only one there has been.
const CURRENT_VERSION: u64 = 1;

/// Maximum length of a manifest: a snapshot is at most one frame, and the edits are rolled at a few
/// times that. If rolls keep failing, edits beyond it are refused.
pub(super) const FILE_BYTES_MAX: u64 = 4 << 30;

/// Bytes of the header that its checksum covers.
const CHECKED_BYTES: usize = 60;

/// Name of the file that names the live manifest.
pub(crate) const CURRENT: &str = "CURRENT";

/// The beginning of that file.
pub(crate) const CURRENT_BEGIN: &str = "basalt-current";

/// Directories whose content says that a manifest must have been there.
const DATA_DIRS: [&str; 3] = ["tables", "wal", "snapshots"];

/// Content of a manifest file's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Format version; [`FORMAT_VERSION`] in a file that is written.
    pub(super) version: u32,
    pub(super) uuid: Uuid,
    pub(super) cluster_id: Uuid,
    pub(super) number: u64,
}

impl Header {
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[0..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&self.version.to_le_bytes());
        out[12..28].copy_from_slice(&self.uuid.0);
        out[28..44].copy_from_slice(&self.cluster_id.0);
        out[44..52].copy_from_slice(&self.number.to_le_bytes());
        let checksum = crc32c(&out[..CHECKED_BYTES]);
        out[CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    pub(super) fn decode(path: &Path, bytes: &[u8]) -> Result<Self> {
        let corrupt = |offset, what: &str| Error::corrupt(path, offset, what);
        let mut cursor = Cursor::new(bytes.get(..HEADER_BYTES).unwrap_or_default());
        let short = || corrupt(0, "shorter than a manifest's header");
        if cursor.array().ok_or_else(short)? != MAGIC {
            return Err(corrupt(0, "not a manifest: wrong magic"));
        }
        let version = cursor.u32_le().ok_or_else(short)?;
        let header = Self {
            version,
            uuid: Uuid(cursor.array().ok_or_else(short)?),
            cluster_id: Uuid(cursor.array().ok_or_else(short)?),
            number: cursor.u64_le().ok_or_else(short)?,
        };
        let reserved: [u8; 8] = cursor.array().ok_or_else(short)?;
        if cursor.u32_le() != Some(crc32c(&bytes[..CHECKED_BYTES])) {
            return Err(corrupt(0, "manifest header checksum mismatch"));
        }
        let known = u64::from(FORMAT_VERSION_MIN)..=u64::from(FORMAT_VERSION);
        check_version(path, u64::from(version), known)?;
        if reserved != [0; 8] {
            return Err(corrupt(52, "reserved bytes of the manifest header are in use"));
        }
        Ok(header)
    }
}

/// Refuses other formats, with the remedy for the operator. REQUIRES: the version's checksum was
/// right.
fn check_version(path: &Path, found: u64, known: RangeInclusive<u64>) -> Result<()> {
    if known.contains(&found) {
        return Ok(());
    }
    let (oldest, current) = (known.start(), known.end());
    let versions = if oldest == current {
        format!("version {current}")
    } else {
        format!("versions {oldest} to {current}")
    };
    let advice = if found > *current {
        "it was written by a newer release: start that one, nothing has been changed"
    } else {
        "it is older than anything this release can read"
    };
    let text = format!("manifest format version {found}, this release reads {versions}; {advice}");
    let source = io::Error::new(io::ErrorKind::Unsupported, text);
    Err(Error::io("opening", path, source))
}

/// Name of the manifest file of that number.
pub(super) fn file_name(number: u64) -> String {
    format!("MANIFEST-{number:016x}")
}

/// The number in a manifest file's name.
fn file_number(name: &Path) -> Option<u64> {
    let digits = name.to_str()?.strip_prefix("MANIFEST-")?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    // The greatest number has no successor, so no file has it.
    (number < u64::MAX && file_name(number) == name.to_str()?).then_some(number)
}

/// Whether a manifest file could have that name.
pub(crate) fn is_file_name(name: &Path) -> bool {
    file_number(name).is_some()
}

/// Numbers of all manifest files in a directory, ascending.
pub(super) fn file_numbers(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<u64>> {
    let names = vfs
        .list(dir)
        .map_err(|source| Error::io("listing", dir, source))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| file_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// CURRENT's content for a manifest.
pub(super) fn encode_current(number: u64, uuid: &Uuid) -> String {
    let text = format!("{CURRENT_BEGIN} {CURRENT_VERSION} {} {uuid}", file_name(number));
    let checksum = crc32c(text.as_bytes());
    format!("{text} {checksum:08x}\n")
}

/// Content of CURRENT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Current {
    Missing,
    Damaged,
    Names { number: u64, uuid: Uuid },
}

/// Reads CURRENT's content. Anything but the exact encoding is damage.
pub(super) fn decode_current(path: &Path, bytes: &[u8]) -> Result<Current> {
    let parse = || {
        let (text, checksum) = std::str::from_utf8(bytes)
            .ok()?
            .strip_suffix('\n')?
            .rsplit_once(' ')?;
        if checksum != format!("{:08x}", crc32c(text.as_bytes())) {
            return None;
        }
        let mut words = text.split(' ');
        if words.next()? != CURRENT_BEGIN {
            return None;
        }
        let version: u64 = words.next()?.parse().ok()?;
        Some((version, words.next()?, words.next()?))
    };
    let Some((version, name, uuid)) = parse() else {
        return Ok(Current::Damaged);
    };
    check_version(path, version, CURRENT_VERSION..=CURRENT_VERSION)?;
    let digits = uuid.replace('-', "");
    let named = file_number(Path::new(name)).zip(u128::from_str_radix(&digits, 16).ok());
    Ok(match named {
        Some((number, uuid)) => Current::Names {
            number,
            uuid: Uuid(uuid.to_be_bytes()),
        },
        None => Current::Damaged,
    })
}

/// All bytes of a file; `None` if it is not there.
pub(super) fn read_file(vfs: &dyn Vfs, path: &Path) -> Result<Option<Vec<u8>>> {
    let read = || {
        let file = vfs.open(path, Open::Read)?;
        let len = file.len()?;
        if len > FILE_BYTES_MAX {
            let text = format!("{len} bytes are more than a manifest can have, {FILE_BYTES_MAX}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(source) if io::Error::kind(&source) == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::io("reading", path, source)),
    }
}

/// Where a file's frames end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// Offset behind the last intact frame.
    pub(super) end: usize,
    /// Description of the torn write, if a write was cut short.
    pub(super) torn: Option<&'static str>,
}

/// Passes every intact frame to `visit`; a marker has no payload. An invalid frame ends the file if
/// no later frame proves that it was durable, and is damage otherwise.
pub(super) fn walk(
    path: &Path,
    bytes: &[u8],
    uuid: &Uuid,
    mut visit: impl FnMut(usize, &FrameHeader, Option<Payload>) -> Result<()>,
) -> Result<Tail> {
    let mut at = FRAME_ALIGN_BYTES;
    let what = loop {
        match read_frame(bytes, at, uuid) {
            FrameRead::Frame {
                header,
                payload,
                next,
            } => {
                let said = match payload {
                    [] => None,
                    _ => Some(decode(payload).map_err(|what| Error::corrupt(path, at as u64, what))?),
                };
                visit(at, &header, said)?;
                at = next.next_multiple_of(FRAME_ALIGN_BYTES);
            }
            FrameRead::End if is_unwritten(bytes.get(at..).unwrap_or_default()) => {
                return Ok(Tail { end: at, torn: None });
            }
            FrameRead::End => break "bytes lie behind unwritten space",
            FrameRead::Invalid { what } => break what,
        }
    };
    let mut from = at + 1;
    while let Some((found, header)) = find_header(bytes, from, uuid) {
        if header.durable_upto > at as u64 {
            let what = format!("{what}, and the frame at {found} says that it was durable");
            return Err(Error::corrupt(path, at as u64, what));
        }
        from = found + 1;
    }
    Ok(Tail {
        end: at,
        torn: Some(what),
    })
}

/// A manifest file, read and checked.
#[derive(Clone, Debug)]
pub(super) struct Loaded {
    pub(super) header: Header,
    pub(super) state: ManifestState,
    /// Number of the last edit in `state`.
    pub(super) last_edit: u64,
    pub(super) tail: Tail,
}

/// Reads a manifest file: the snapshot and all edits behind it.
pub(super) fn load(path: &Path, bytes: &[u8]) -> Result<Loaded> {
    let header = Header::decode(path, bytes)?;
    let mut so_far: Option<(ManifestState, u64)> = None;
    let tail = walk(path, bytes, &header.uuid, |at, frame, payload| {
        let corrupt = |what: String| Error::corrupt(path, at as u64, what);
        match (&mut so_far, payload) {
            (None, Some(Payload::Snapshot(state))) if state.cluster_id == header.cluster_id => {
                so_far = Some((*state, frame.first_seq));
            }
            (None, _) => return Err(corrupt("does not begin with a snapshot of this database".into())),
            (Some(_), Some(Payload::Snapshot(_))) => {
                return Err(corrupt("a snapshot among the edits".into()));
            }
            (Some((state, last)), Some(Payload::Edit(edit))) => {
                if Some(frame.first_seq) != last.checked_add(1) {
                    return Err(corrupt(format!("edit {} follows edit {last}", frame.first_seq)));
                }
                apply(state, &edit).map_err(corrupt)?;
                *last = frame.first_seq;
            }
            (Some((_, last)), None) if frame.first_seq == *last => {}
            (Some((_, last)), None) => {
                return Err(corrupt(format!(
                    "a marker of edit {} follows edit {last}",
                    frame.first_seq
                )));
            }
        }
        Ok(())
    })?;
    let len = bytes.len() as u64;
    let is_whole = len.is_multiple_of(RESERVE_BYTES) || seeded::is_on("truncated-manifest-believed");
    if header.version >= FORMAT_VERSION_OF_SIZES && !is_whole {
        let what =
            format!("the file ends here: it was cut, for a manifest has a multiple of {RESERVE_BYTES} bytes");
        return Err(Error::corrupt(path, len, what));
    }
    let Some((state, last_edit)) = so_far else {
        let what = tail.torn.unwrap_or("the file ends");
        return Err(Error::corrupt(
            path,
            tail.end as u64,
            format!("no snapshot: {what}"),
        ));
    };
    Ok(Loaded {
        header,
        state,
        last_edit,
        tail,
    })
}

fn apply(state: &mut ManifestState, edit: &ManifestEdit) -> std::result::Result<(), String> {
    state
        .apply(edit)
        .map(|_| ())
        .map_err(|error| format!("an edit cannot follow: {error}"))
}

/// The live manifest of a directory.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) path: PathBuf,
    pub(super) loaded: Loaded,
    /// Problems that were found and repaired.
    pub(super) warnings: Vec<String>,
}

/// Finds and reads the live manifest; `None` when the directory holds no database.
///
/// CURRENT decides. When it is unreadable, the manifest file with the latest edit is the live one,
/// provided that every manifest file there is intact: each begins with the state of its
/// predecessor, and none is appended to after its successor was made. CURRENT exists before the
/// first edit is accepted, so a directory without CURRENT and without data is an interrupted
/// creation, which may have left broken files.
pub(super) fn find_live(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Live>> {
    let current_path = dir.join(CURRENT);
    let current = match read_file(vfs, &current_path)? {
        None => Current::Missing,
        Some(bytes) => decode_current(&current_path, &bytes)?,
    };
    if let Current::Names { number, uuid } = current {
        return read_named(vfs, dir, number, uuid).map(Some);
    }
    let creation_cut_short = current == Current::Missing && !holds_data(vfs, dir)?;
    let mut best: Option<(PathBuf, Loaded)> = None;
    for number in file_numbers(vfs, dir)? {
        let path = dir.join(file_name(number));
        match load(&path, &read_file(vfs, &path)?.unwrap_or_default()) {
            Ok(loaded) => {
                if best
                    .as_ref()
                    .is_none_or(|(_, best)| loaded.last_edit >= best.last_edit)
                {
                    best = Some((path, loaded));
                }
            }
            Err(Error::Corrupt { .. }) if creation_cut_short => {}
            Err(error) => return Err(error),
        }
    }
    match best {
        Some((path, loaded)) => {
            let warning = format!(
                "{} is missing or damaged; {} is intact and has the latest edit",
                current_path.display(),
                path.display()
            );
            Ok(Some(Live {
                path,
                loaded,
                warnings: vec![warning],
            }))
        }
        None if creation_cut_short => Ok(None),
        None => Err(Error::corrupt(
            current_path,
            0,
            "missing or damaged, and no manifest is there to replace it, but the directory holds a database",
        )),
    }
}

fn read_named(vfs: &dyn Vfs, dir: &Path, number: u64, uuid: Uuid) -> Result<Live> {
    let path = dir.join(file_name(number));
    let Some(bytes) = read_file(vfs, &path)? else {
        return Err(Error::corrupt(
            path,
            0,
            "the live manifest, named by CURRENT, is missing",
        ));
    };
    let loaded = load(&path, &bytes)?;
    if loaded.header.uuid != uuid || loaded.header.number != number {
        return Err(Error::corrupt(
            path,
            12,
            format!(
                "this is manifest {} with uuid {}, and CURRENT names {number} with uuid {uuid}",
                loaded.header.number, loaded.header.uuid
            ),
        ));
    }
    let warnings = loaded.tail.torn.map(|what| {
        let end = loaded.tail.end;
        format!(
            "{}: an edit in flight was cut short at offset {end}: {what}",
            path.display()
        )
    });
    Ok(Live {
        path,
        loaded,
        warnings: warnings.into_iter().collect(),
    })
}

fn holds_data(vfs: &dyn Vfs, dir: &Path) -> Result<bool> {
    for name in DATA_DIRS {
        let path = dir.join(name);
        match vfs.list(&path) {
            Ok(names) if names.is_empty() => {}
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::io("listing", path, source)),
        }
    }
    Ok(false)
}
