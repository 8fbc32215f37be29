//! Policies: which files a flush makes, and which files are compacted next.
//!
//! `Exploring` and `EngineStripes` ask the engine's own functions. The others are candidates.

use std::fmt;
use std::time::Duration;

use basalt_engine::id::{FileId, SeqId};
use basalt_engine::internals::compaction::{self, CompactionState, FileView, RowRange, StripeLimits};
use basalt_engine::options::Options;

use super::files::{Distinct, File, NewFile, Sizes, cut};

/// The next compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pick {
    /// Places of the inputs, oldest first.
    pub(super) inputs: Vec<usize>,
    /// Level of the output.
    pub(super) level: usize,
    /// Largest number of entries of an output file; `None`: one file.
    pub(super) file_entries: Option<usize>,
    /// Whether its only input changes its level and is not written again.
    pub(super) moved: bool,
}

impl Pick {
    fn one_file(inputs: Vec<usize>, level: usize) -> Pick {
        Pick {
            inputs,
            level,
            file_entries: None,
            moved: false,
        }
    }
}

/// A compaction policy. `files` are always oldest first.
pub(super) trait Policy: fmt::Display {
    /// How a flush divides its keys into files beside those of the store, and whether these are parts of one
    /// file.
    fn flush(&self, _files: &[File], keys: Vec<u32>, sizes: &Sizes) -> (Vec<NewFile>, bool) {
        let range = 0..sizes.keys;
        (vec![NewFile { keys, range }], false)
    }

    /// The compaction to begin now, of files that are not busy.
    fn pick(&mut self, files: &[File], sizes: &Sizes) -> Option<Pick>;

    /// Whether a flush waits for compactions.
    fn is_blocked(&self, files: &[File]) -> bool;
}

/// Options of the engine for the store.
fn engine_options(sizes: &Sizes, stripes: u32) -> Options {
    let options = Options::default();
    Options {
        memstore_flush_bytes: sizes.memstore_bytes,
        compaction_min_bytes: options.compaction_min_bytes / u64::from(stripes),
        // Age is no part of the simulation.
        compaction_major_period: Duration::ZERO,
        ..options
    }
}

/// The engine's choice among the files at these places.
fn explore(
    files: &[File],
    places: &[usize],
    sizes: &Sizes,
    options: &Options,
    state: &CompactionState,
) -> Option<Vec<usize>> {
    let views: Vec<_> = places
        .iter()
        .map(|place| {
            let file = &files[*place];
            FileView {
                id: FileId(file.id),
                bytes: sizes.stored(file.keys.len()),
                max_seq: SeqId(*place as u64),
                major: false,
                created_ms: 0,
                oldest_ms: None,
                clipped: false,
                busy: file.busy,
            }
        })
        .collect();
    match compaction::choose(&views, options, 0, state) {
        compaction::Pick::Nothing => None,
        compaction::Pick::Minor(range) => Some(places[range].to_vec()),
        compaction::Pick::Major => Some(places.to_vec()),
    }
}

/// The share of dead versions among the files at these places.
fn dead_share(files: &[File], places: &[usize], distinct: &mut Distinct) -> f64 {
    let entries: usize = places.iter().map(|place| files[*place].keys.len()).sum();
    let distinct = distinct.count(places.iter().map(|place| &files[*place]));
    1.0 - distinct as f64 / entries.max(1) as f64
}

/// HBase's policy alone, as the engine has it.
pub(super) struct Exploring;

impl fmt::Display for Exploring {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "exploring")
    }
}

impl Policy for Exploring {
    fn pick(&mut self, files: &[File], sizes: &Sizes) -> Option<Pick> {
        let places: Vec<_> = (0..files.len()).collect();
        let inputs = explore(
            files,
            &places,
            sizes,
            &engine_options(sizes, 1),
            &CompactionState::default(),
        )?;
        Some(Pick::one_file(inputs, 0))
    }

    fn is_blocked(&self, files: &[File]) -> bool {
        files.len() >= Options::default().compaction_blocking_files
    }
}

/// The places of the files of each stripe: those that begin where the stripe does.
fn by_stripe(files: &[File], sizes: &Sizes, stripes: u32) -> Vec<Vec<usize>> {
    let mut places = vec![Vec::new(); stripes as usize];
    for (place, file) in files.iter().enumerate() {
        let middle = u64::from(file.range.start) + u64::from(file.range.end - file.range.start) / 2;
        let stripe = middle * u64::from(stripes) / u64::from(sizes.keys);
        places[stripe as usize].push(place);
    }
    places
}

/// Whether one stripe has that many files.
fn is_a_stripe_blocked(files: &[File], limit: usize) -> bool {
    let mut counts = std::collections::BTreeMap::<u32, usize>::new();
    for file in files {
        *counts.entry(file.range.start).or_default() += 1;
    }
    counts.values().any(|count| *count >= limit)
}

/// Partitions of the row keys; each flush makes a file in each, and each is compacted for itself by the
/// engine's function.
pub(super) struct Stripes {
    pub(super) stripes: u32,
}

impl fmt::Display for Stripes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} stripes, exploring in each", self.stripes)
    }
}

impl Policy for Stripes {
    fn flush(&self, _files: &[File], keys: Vec<u32>, sizes: &Sizes) -> (Vec<NewFile>, bool) {
        (cut(&keys, sizes.keys, self.stripes), false)
    }

    /// From the stripe with most files.
    fn pick(&mut self, files: &[File], sizes: &Sizes) -> Option<Pick> {
        let options = engine_options(sizes, self.stripes);
        let mut stripes = by_stripe(files, sizes, self.stripes);
        stripes.sort_by_key(|places| std::cmp::Reverse(places.len()));
        let inputs = stripes
            .iter()
            .find_map(|places| explore(files, places, sizes, &options, &CompactionState::default()))?;
        Some(Pick::one_file(inputs, 0))
    }

    fn is_blocked(&self, files: &[File]) -> bool {
        is_a_stripe_blocked(files, Options::default().compaction_blocking_files)
    }
}

/// The engine's stripes: its own functions for stripes and for the choice in each.
pub(super) struct EngineStripes {
    pub(super) limits: StripeLimits,
    /// The share of overwritten versions from which on a stripe is merged; 0: HBase's policy alone.
    pub(super) overwritten: f64,
    pub(super) distinct: Distinct,
}

impl EngineStripes {
    fn stripes(&self, files: &[File], sizes: &Sizes) -> compaction::Stripes {
        let row = |key: u32| key.to_be_bytes();
        let rows: Vec<_> = files
            .iter()
            .map(|file| (row(file.range.start), row(file.range.end - 1)))
            .collect();
        let ranges: Vec<_> = files
            .iter()
            .zip(&rows)
            .map(|(file, (first, last))| RowRange {
                first,
                last,
                bytes: sizes.stored(file.keys.len()),
            })
            .collect();
        compaction::Stripes::of(&ranges, self.limits)
    }
}

impl fmt::Display for EngineStripes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (most, mib) = (self.limits.count_max, self.limits.bytes_min >> 20);
        write!(to, "the engine's stripes: at most {most}, of {mib} MiB or more")?;
        if self.overwritten > 0.0 {
            write!(
                to,
                ", merged from {:.0} % of dead versions on",
                self.overwritten * 100.0
            )?;
        }
        Ok(())
    }
}

impl Policy for EngineStripes {
    fn flush(&self, files: &[File], keys: Vec<u32>, sizes: &Sizes) -> (Vec<NewFile>, bool) {
        let mut pieces = Vec::new();
        let mut rest = &keys[..];
        let boundaries = self.stripes(files, sizes).boundaries();
        let ends = boundaries.iter().map(|row| {
            let row = <[u8; 4]>::try_from(&row[..]).expect("rows are keys");
            u32::from_be_bytes(row)
        });
        for end in ends.chain([u32::MAX]) {
            let (piece, behind) = rest.split_at(rest.partition_point(|key| *key < end));
            rest = behind;
            if let (Some(first), Some(last)) = (piece.first(), piece.last()) {
                pieces.push(NewFile {
                    keys: piece.to_vec(),
                    range: *first..last + 1,
                });
            }
        }
        (pieces, false)
    }

    fn pick(&mut self, files: &[File], sizes: &Sizes) -> Option<Pick> {
        let of = self.stripes(files, sizes);
        let options = Options {
            compaction_overwritten: self.overwritten,
            ..engine_options(sizes, 1)
        };
        let mut stripes: Vec<_> = of
            .stripes
            .iter()
            .map(|stripe| {
                let state = CompactionState {
                    overwritten: dead_share(files, &stripe.files, &mut self.distinct),
                    stripes: of.stripes.len(),
                    ..CompactionState::default()
                };
                (stripe, state)
            })
            .collect();
        stripes.sort_by(|(one, of_one), (other, of_other)| {
            compaction::precedence(&options, (of_one, one.files.len()), (of_other, other.files.len()))
        });
        stripes.into_iter().find_map(|(stripe, state)| {
            let inputs = explore(files, &stripe.files, sizes, &options, &state)?;
            let all_files = inputs.len() == stripe.files.len();
            let piece = of.piece_bytes(stripe).filter(|_| all_files);
            Some(Pick {
                file_entries: piece.map(|bytes| sizes.entries_of(bytes)),
                ..Pick::one_file(inputs, 0)
            })
        })
    }

    fn is_blocked(&self, files: &[File]) -> bool {
        // Only the bytes of an entry matter here, and not for the depth of a store with stripes.
        let limit = Options::default().compaction_blocking_files;
        files.len() >= limit && self.stripes(files, &Sizes::DEPTH).depth() >= limit
    }
}

/// Partitions of the row keys; all files of the partition with the largest share of dead versions are merged.
pub(super) struct DeadShare {
    pub(super) partitions: u32,
    /// Smallest share of dead versions for which a partition is compacted.
    pub(super) least: f64,
    /// Files of a partition from which on it is compacted all the same.
    pub(super) files_max: usize,
    /// Whether a flush makes one file, of which partitions are compacted one after the other, instead of
    /// one file in each.
    pub(super) partial: bool,
    pub(super) distinct: Distinct,
}

impl DeadShare {
    /// Files beyond `files_max` from which on flushes wait: as many as today's settings have between them.
    const FILES_MORE: usize = 6;
}

impl fmt::Display for DeadShare {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.partial {
            "partial merges of"
        } else {
            "stripes:"
        };
        let (partitions, percent) = (self.partitions, self.least * 100.0);
        write!(
            to,
            "{what} {partitions}, by dead versions from {percent:.0} % or {} files",
            self.files_max
        )
    }
}

impl Policy for DeadShare {
    fn flush(&self, _files: &[File], keys: Vec<u32>, sizes: &Sizes) -> (Vec<NewFile>, bool) {
        (cut(&keys, sizes.keys, self.partitions), self.partial)
    }

    fn pick(&mut self, files: &[File], sizes: &Sizes) -> Option<Pick> {
        let mut best: Option<(f64, Vec<usize>)> = None;
        for places in by_stripe(files, sizes, self.partitions) {
            if places.len() < 2 || places.iter().any(|place| files[*place].busy) {
                continue;
            }
            let mut share = dead_share(files, &places, &mut self.distinct);
            if places.len() >= self.files_max {
                // Before all that have fewer files.
                share += 1.0;
            } else if share < self.least {
                continue;
            }
            if best.as_ref().is_none_or(|(other, _)| share > *other) {
                best = Some((share, places));
            }
        }
        best.map(|(_, places)| Pick::one_file(places, 0))
    }

    fn is_blocked(&self, files: &[File]) -> bool {
        is_a_stripe_blocked(files, self.files_max + Self::FILES_MORE)
    }
}

/// RocksDB's leveled compaction with dynamic level sizes: level 0 has the flushed files, each other level
/// is one sorted run of files, ten times as large as the one above it.
pub(super) struct Leveled {
    pub(super) l0_files: usize,
    pub(super) ratio: u64,
    pub(super) base_bytes: u64,
    pub(super) file_bytes: u64,
}

impl Leveled {
    const LEVELS: usize = 7;
    const BLOCKING_FILES: usize = 36;

    /// The first level below level 0 that is in use, and the target size of each.
    fn targets(&self, files: &[File], sizes: &Sizes) -> (usize, Vec<u64>) {
        let last = Self::LEVELS - 1;
        let bytes = |level| {
            let of_level = files.iter().filter(|file| file.level == level);
            of_level.map(|file| sizes.stored(file.keys.len())).sum::<u64>()
        };
        let mut targets = vec![u64::MAX; Self::LEVELS];
        let mut target = bytes(last).max(self.base_bytes);
        let mut level = last;
        targets[level] = target;
        while level > 1 && target > self.base_bytes {
            level -= 1;
            target /= self.ratio;
            targets[level] = target.max(1);
        }
        (level, targets)
    }

    /// Files of a level that overlap a range of keys.
    fn overlapping(files: &[File], level: usize, first: u32, end: u32) -> Vec<usize> {
        let overlaps = |file: &File| file.level == level && file.range.start < end && first < file.range.end;
        let places = files.iter().enumerate().filter(|(_, file)| overlaps(file));
        places.map(|(place, _)| place).collect()
    }

    /// Merges these files with those of the level below them, unless one is busy.
    fn merged_into(
        &self,
        files: &[File],
        upper: Vec<usize>,
        level: usize,
        sizes: &Sizes,
    ) -> Option<(f64, Pick)> {
        let first = upper.iter().map(|place| files[*place].range.start).min()?;
        let end = upper.iter().map(|place| files[*place].range.end).max()?;
        let lower = Self::overlapping(files, level, first, end);
        let entries = |places: &[usize]| places.iter().map(|place| files[*place].keys.len()).sum::<usize>();
        let overlap = entries(&lower) as f64 / entries(&upper).max(1) as f64;
        let moved = lower.is_empty() && upper.len() == 1;
        let mut inputs = [lower, upper].concat();
        inputs.sort_unstable();
        if inputs.iter().any(|place| files[*place].busy) {
            return None;
        }
        let file_entries = Some(sizes.entries_of(self.file_bytes));
        let pick = Pick {
            inputs,
            level,
            file_entries,
            moved,
        };
        Some((overlap, pick))
    }
}

impl fmt::Display for Leveled {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "leveled, {} files, ratio {}", self.l0_files, self.ratio)
    }
}

impl Policy for Leveled {
    fn pick(&mut self, files: &[File], sizes: &Sizes) -> Option<Pick> {
        let (base, targets) = self.targets(files, sizes);
        let mut levels: Vec<(f64, usize)> = (base..Self::LEVELS - 1)
            .map(|level| {
                let idle = files.iter().filter(|file| file.level == level && !file.busy);
                let bytes: u64 = idle.map(|file| sizes.stored(file.keys.len())).sum();
                (bytes as f64 / targets[level] as f64, level)
            })
            .collect();
        let flushed = files.iter().filter(|file| file.level == 0);
        let idle = flushed.filter(|file| !file.busy).count();
        levels.push((idle as f64 / self.l0_files as f64, 0));
        // A level above the base has files only after the base has moved down.
        levels.extend((1..base).map(|level| {
            let any = files.iter().any(|file| file.level == level && !file.busy);
            (if any { 1.0 } else { 0.0 }, level)
        }));
        levels.retain(|(score, _)| *score >= 1.0);
        levels.sort_by(|one, other| other.0.total_cmp(&one.0));
        levels.into_iter().find_map(|(_, level)| {
            let places = Self::overlapping(files, level, 0, u32::MAX);
            if level == 0 {
                return Some(self.merged_into(files, places, base, sizes)?.1);
            }
            let below = if level < base { base } else { level + 1 };
            let choices = places
                .into_iter()
                .filter_map(|place| self.merged_into(files, vec![place], below, sizes));
            let least = choices.min_by(|one, other| one.0.total_cmp(&other.0));
            least.map(|(_, pick)| pick)
        })
    }

    fn is_blocked(&self, files: &[File]) -> bool {
        files.iter().filter(|file| file.level == 0).count() >= Self::BLOCKING_FILES
    }
}

/// Lazy leveling: each level but the last keeps up to `runs` runs, which are merged into one of the next
/// level; the last level is one run.
pub(super) struct Lazy {
    pub(super) runs: usize,
}

impl fmt::Display for Lazy {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "lazy leveling, {} runs a level", self.runs)
    }
}

impl Policy for Lazy {
    fn pick(&mut self, files: &[File], sizes: &Sizes) -> Option<Pick> {
        let last = files.iter().map(|file| file.level).max()?.max(1);
        for level in 0..last {
            let places: Vec<_> = (0..files.len())
                .filter(|place| files[*place].level == level && !files[*place].busy)
                .collect();
            if places.len() < self.runs {
                continue;
            }
            let mut inputs = places;
            let mut target = level + 1;
            if target == last {
                let run = (0..files.len()).filter(|place| files[*place].level == last);
                inputs = run.chain(inputs).collect();
                inputs.sort_unstable();
                if inputs.iter().any(|place| files[*place].busy) {
                    continue;
                }
                let entries: usize = inputs.iter().map(|place| files[*place].keys.len()).sum();
                let full = (sizes.flush_writes as usize).saturating_mul(
                    self.runs
                        .saturating_pow(u32::try_from(last).unwrap_or(u32::MAX) + 1),
                );
                target += usize::from(entries > full);
            }
            return Some(Pick::one_file(inputs, target));
        }
        None
    }

    fn is_blocked(&self, files: &[File]) -> bool {
        files.iter().filter(|file| file.level == 0).count() >= Options::default().compaction_blocking_files
    }
}
