//! Every bit of a reference data directory flipped, one at a time; files missing, swapped, truncated.
//!
//! The reference is several directories: one with everything but many store files (log segments
//! sealed and live, the next one's space, both manifests, CURRENT, remains of a crash), and one for
//! each of fifteen kinds of store file, with a single such file each.
//!
//! After each damage the database is checked and, on a copy, opened and read: all tables by scan
//! with all versions, raw, and by gets. It must be refused, or the read fail, with an error that
//! names the file; or all answers must be unchanged. In the latter case the check must have
//! reported the file, or the place must be in [`unused`]. Damage to store files alone must not fail
//! the start, and must not fail reads of other tables.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use basalt_engine::Error;
use basalt_engine::engine::check;
use basalt_engine::fs::Vfs;
use basalt_engine::fs::sim::SimFs;

use super::answers::answers_of;
use super::jobs::{self, Figures, Report, trying};
use super::reference::{self, Reference};
use super::{DIR, FIRST_MS, Machine};

/// Parameters of the run.
#[derive(Clone, Debug)]
pub struct Bits {
    /// Every such bit is flipped.
    pub stride: u64,
    /// Files are cut at every multiple of this.
    pub truncate_bytes: u64,
    /// Number of directories; a large number means all of them.
    pub directories: usize,
    /// Threads.
    pub jobs: usize,
}

/// Bits of one case.
const BITS_OF_CASE: u64 = 512;

/// Kind of damage.
#[derive(Clone, Debug)]
enum Damage {
    /// Bits from..to, in steps.
    Bits(PathBuf, u64, u64),
    Missing(PathBuf),
    Swapped(PathBuf, PathBuf),
    Truncated(PathBuf, u64),
}

/// Tries all damage.
pub fn try_all(bits: &Bits, say: Option<&str>) -> Report {
    let mut references = Vec::new();
    for built in reference::build(bits.directories) {
        match built {
            Ok(reference) => references.push(reference),
            Err(error) => {
                return Report {
                    violations: vec![format!("a reference directory cannot be made: {error}")],
                    ..Report::default()
                };
            }
        }
    }
    let mut cases: Vec<(&Reference, Damage)> = Vec::new();
    for reference in &references {
        for path in reference.disk.files() {
            let bytes = reference.bytes(&path);
            let total = bytes * 8;
            let step = BITS_OF_CASE * bits.stride.max(1);
            cases.extend((0..total.div_ceil(step)).map(|number| {
                let from = number * step;
                (
                    reference,
                    Damage::Bits(path.clone(), from, (from + step).min(total)),
                )
            }));
            cases.push((reference, Damage::Missing(path.clone())));
            let cuts = (0..bytes).step_by(bits.truncate_bytes.max(1) as usize);
            cases.extend(cuts.map(|len| (reference, Damage::Truncated(path.clone(), len))));
        }
        cases.extend(
            reference
                .swaps()
                .into_iter()
                .map(|(one, two)| (reference, Damage::Swapped(one, two))),
        );
    }
    jobs::run(cases.len() as u64, bits.jobs, say, |number, figures| {
        let (reference, damage) = &cases[number as usize];
        try_damage(bits, reference, damage, figures)
    })
}

fn try_damage(
    bits: &Bits,
    reference: &Reference,
    damage: &Damage,
    figures: &mut Figures,
) -> Result<(), String> {
    let disk = || reference.disk.crash_keep_all();
    let io = |error: std::io::Error| format!("{}: {damage:?}: {error}", reference.name);
    match damage {
        Damage::Bits(path, from, to) => {
            for bit in (*from..*to).step_by(bits.stride.max(1) as usize) {
                let disk = disk();
                disk.flip_bit(path, bit).map_err(io)?;
                let what = || {
                    format!(
                        "{}: bit {} of byte {} of {}",
                        reference.name,
                        bit % 8,
                        bit / 8,
                        path.display()
                    )
                };
                trying(what);
                figures.add("bits flipped", 1);
                match judge(reference, &disk, &[path]) {
                    Ok(verdict) => {
                        if verdict == Outcome::Unnoticed {
                            let reason = unused(reference, path, bit / 8);
                            if reason.is_none() {
                                return Err(format!("{}: unnoticed, and the place is in use", what()));
                            }
                        }
                        figures.add(verdict.figure(), 1);
                    }
                    Err(why) => return Err(format!("{}: {why}", what())),
                }
            }
        }
        Damage::Missing(path) => {
            let disk = disk();
            disk.remove_file(path).map_err(io)?;
            figures.add("files missing", 1);
            judge_file(reference, &disk, &[path], damage, figures)?;
        }
        Damage::Swapped(one, two) => {
            let disk = disk();
            let aside = super::below("aside");
            for (from, to) in [(one, &aside), (two, one), (&aside, two)] {
                disk.rename(from, to).map_err(io)?;
            }
            figures.add("files swapped", 2);
            judge_file(reference, &disk, &[one, two], damage, figures)?;
        }
        Damage::Truncated(path, len) => {
            let disk = disk();
            disk.open(path, basalt_engine::fs::Open::Write)
                .and_then(|file| file.set_len(*len))
                .map_err(io)?;
            figures.add("files truncated", 1);
            judge_file(reference, &disk, &[path], damage, figures)?;
        }
    }
    Ok(())
}

/// A whole file was changed: refused, or proven harmless.
fn judge_file(
    reference: &Reference,
    disk: &SimFs,
    paths: &[&PathBuf],
    damage: &Damage,
    figures: &mut Figures,
) -> Result<(), String> {
    trying(|| format!("{}: {damage:?}", reference.name));
    match judge(reference, disk, paths) {
        Ok(outcome) => {
            figures.add(outcome.figure(), 1);
            Ok(())
        }
        Err(why) => Err(format!("{}: {damage:?}: {why}", reference.name)),
    }
}

/// Outcome of a harmless damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The database is not opened.
    Refused,
    /// A read fails.
    Failed,
    /// All answers are unchanged; the check reports the file.
    Found,
    /// All answers are unchanged, and the check reports nothing.
    Unnoticed,
}

impl Outcome {
    fn figure(self) -> &'static str {
        match self {
            Self::Refused => "refused at the start",
            Self::Failed => "refused by reads",
            Self::Found => "harmless and found by the check",
            Self::Unnoticed => "proven unused",
        }
    }
}

fn names(text: &str, paths: &[&PathBuf]) -> bool {
    // A list of missing segments has names without their directory, which stands before it.
    let name_alone = |path: &Path| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        path.extension().is_some_and(|extension| extension == "wal")
            && text.contains("missing WAL segments")
            && text.contains(&name)
    };
    paths
        .iter()
        .any(|path| text.contains(&*path.to_string_lossy()) || name_alone(path))
}

fn judge(reference: &Reference, disk: &SimFs, paths: &[&PathBuf]) -> Result<Outcome, String> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.crash_keep_all());
    let mut lines = Vec::new();
    let found = match check(&vfs, Path::new(DIR), &mut |line| lines.push(line)) {
        Ok(_) => lines.iter().any(|line| names(line, paths)),
        Err(error) => names(&error.to_string(), paths),
    };
    let unfound = || format!("the check says {lines:?}");
    let names_it = |error: &Error| {
        let text = error.to_string();
        let has_offset = !matches!(error, Error::Corrupt { .. }) || text.contains("offset");
        if names(&text, paths) && has_offset {
            Ok(())
        } else {
            Err(format!("the error does not name the file and the offset: {text}"))
        }
    };
    let machine = Machine::at(disk.clone(), FIRST_MS);
    let owners = owners(paths);
    let engine = match machine.open() {
        Ok(engine) => engine,
        Err(error) => {
            names_it(&error)?;
            if owners.is_some() {
                return Err(format!(
                    "the start is refused, not only the file's regions: {error}"
                ));
            }
            return if found {
                Ok(Outcome::Refused)
            } else {
                Err(unfound())
            };
        }
    };
    let mut failed = false;
    for (table, expected) in &reference.answers {
        match answers_of(&engine, table, expected) {
            Ok(answers) if answers == *expected => {}
            Ok(answers) => {
                return Err(format!(
                    "WRONG ANSWER of {table}: {}",
                    super::model::difference(&expected.rows, &answers.rows)
                ));
            }
            Err(error) => {
                names_it(&error)?;
                if owners.as_ref().is_some_and(|owners| !owners.contains(table)) {
                    return Err(format!("{table} fails, whose files are sound: {error}"));
                }
                failed = true;
            }
        }
    }
    match (failed, found) {
        (true, true) => Ok(Outcome::Failed),
        (true, false) => Err(unfound()),
        (false, true) => Ok(Outcome::Found),
        (false, false) => Ok(Outcome::Unnoticed),
    }
}

/// The tables that these store files belong to; `None` if one of the files is no store file.
fn owners(paths: &[&PathBuf]) -> Option<BTreeSet<String>> {
    let owner = |path: &&PathBuf| {
        let below = path.strip_prefix(super::below("tables")).ok()?;
        let mut parts = below.iter().map(|part| part.to_string_lossy());
        let (namespace, table) = (parts.next()?, parts.next()?);
        Some(match &*namespace {
            "default" => table.into_owned(),
            _ => format!("{namespace}:{table}"),
        })
    };
    paths.iter().map(owner).collect()
}

/// Why nothing depends on a byte of a file; `None`: something does.
fn unused(reference: &Reference, path: &Path, byte: u64) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    if path.starts_with(super::below("orphans")) {
        return Some("files in orphans/ are never read");
    }
    match name {
        "LOCK" => Some("only its lock counts"),
        "CURRENT.tmp" => Some("a leftover that the next start replaces"),
        "spare.wal.new" => Some("the next segment's space, removed and made anew by a start"),
        _ if name.starts_with("MANIFEST-") => reference
            .manifest_padding(path)
            .iter()
            .any(|range| range.contains(&byte))
            .then_some("padding between the header and the frames, which begin at multiples of 512"),
        _ => None,
    }
}
