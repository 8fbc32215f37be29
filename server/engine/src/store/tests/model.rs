//! The store against the reference: random writes, flushes and compactions under random family options, then
//! every kind of read, compared cell by cell with sequence ids. A failing seed prints itself.

use super::harness::{NOW_MS, TestStore, plain_rows, read_all};
use super::reference::{Question, Reference, earliest_put};
use super::{Random, TextCell};
use crate::cell::{CellBatch, CellType, TAG_TTL, put_tag};
use crate::id::SeqId;
use crate::op::{Columns, FamilySelection, ReadSpec, TimeRange};
use crate::store::{Clip, ReadRows, RowLimit, RowProgress, StoreScanner};

const ROWS: [&str; 12] = ["a", "b", "ba", "c", "d", "e", "f", "fa", "g", "h", "i", "j"];
const COLUMNS: [&str; 4] = ["", "p", "q", "qq"];

#[test]
fn the_store_equals_the_reference() {
    let mut in_runs = 0;
    for seed in 0..150 {
        in_runs += run_seed(seed);
    }
    assert!(in_runs > 400, "only {in_runs} cells came in runs of plain rows");
}

fn pick<'a>(random: &mut Random, words: &[&'a str]) -> &'a str {
    words[random.below(words.len())]
}

fn random_options(random: &mut Random) -> String {
    let versions = 1 + random.below(3);
    let min_versions = random.below(versions.min(2) + 1);
    let ttl = pick(random, &["FOREVER", "5"]);
    let keep = pick(random, &["FALSE", "FALSE", "TRUE", "TTL"]);
    let bloom = pick(random, &["NONE", "ROW", "ROWCOL"]);
    let encoding = pick(random, &["NONE", "ROW_INDEX_V1", "PREFIX", "DIFF", "FAST_DIFF"]);
    let compression = pick(random, &["NONE", "SNAPPY", "LZ4", "ZSTD", "GZ"]);
    format!(
        "VERSIONS={versions} MIN_VERSIONS={min_versions} TTL={ttl} KEEP_DELETED_CELLS={keep} BLOOMFILTER={bloom} \
         DATA_BLOCK_ENCODING={encoding} COMPRESSION={compression} BLOCKSIZE=1024"
    )
}

fn random_cell(random: &mut Random) -> TextCell {
    let row = pick(random, &ROWS);
    let timestamp = NOW_MS - 1000 * random.below(10) as i64;
    let (qualifier, cell_type) = match random.below(20) {
        0 => ("", CellType::DeleteFamily),
        1 => ("", CellType::DeleteFamilyVersion),
        2 | 3 => (pick(random, &COLUMNS), CellType::DeleteColumn),
        4 | 5 => (pick(random, &COLUMNS), CellType::Delete),
        _ => (pick(random, &COLUMNS), CellType::Put),
    };
    let mut cell = TextCell::new(row, qualifier, timestamp, cell_type, 0);
    if cell_type == CellType::Put {
        cell.value = random.next().to_string().into_bytes();
        // Now and then a value that fills a block, so that files have several.
        if random.one_in(8) {
            cell.value.resize(700, b'x');
        }
        if random.one_in(6) {
            let ttl_ms = 1000 * random.below(8) as i64;
            put_tag(&mut cell.tags, TAG_TTL, &ttl_ms.to_be_bytes());
        }
    }
    cell
}

fn random_question(random: &mut Random, floor: u64, newest: u64) -> Question {
    let columns = random.one_in(2).then(|| {
        let mut names: Vec<String> = COLUMNS
            .iter()
            .filter(|_| random.one_in(2))
            .map(|name| (*name).to_owned())
            .collect();
        if names.is_empty() {
            names.push("q".to_owned());
        }
        names
    });
    let range = if random.one_in(2) {
        TimeRange::ALL
    } else {
        let min = NOW_MS - 1000 * random.below(10) as i64;
        TimeRange {
            min,
            max: min + 1000 * (1 + random.below(5)) as i64,
        }
    };
    let limited = random.one_in(5);
    Question {
        raw: columns.is_none() && random.one_in(4),
        columns,
        max_versions: 1 + random.below(4) as i32,
        range,
        read_point: SeqId(floor + random.below((newest - floor) as usize + 1) as u64),
        family_limit: limited.then(|| random.below(4)),
        family_offset: if limited { random.below(3) } else { 0 },
    }
}

/// The store's cells as the reference keeps them: one run in memory, and one per file, oldest
/// first.
#[derive(Default)]
struct Runs {
    memory: Vec<TextCell>,
    files: Vec<Vec<TextCell>>,
}

impl Runs {
    fn all(&self) -> Vec<TextCell> {
        self.files.iter().flatten().chain(&self.memory).cloned().collect()
    }
}

/// Returns the number of cells that came in runs of plain rows.
fn run_seed(seed: u64) -> usize {
    let mut in_runs = 0;
    let mut random = Random::new(seed);
    let options = random_options(&mut random);
    let mut store = TestStore::new(&options);
    let mut runs = Runs::default();
    for _ in 0..6 {
        for _ in 0..random.below(30) {
            let written = store.write(random_cell(&mut random));
            runs.memory.push(written);
        }
        let family = store.version.family.clone();
        let reference = Reference {
            family: &family,
            now_ms: NOW_MS,
        };
        match random.below(5) {
            0 => store.freeze(),
            1 | 2 => {
                store.flush();
                let kept = reference.retain(&std::mem::take(&mut runs.memory), None);
                if !kept.is_empty() {
                    runs.files.push(kept);
                }
            }
            3 if !runs.files.is_empty() => {
                let count = runs.files.len();
                let start = random.below(count);
                let end = start + 1 + random.below(count - start);
                store.compact(start..end);
                let merged: Vec<TextCell> = runs.files[start..end].concat();
                let all_files = end - start == count;
                let kept = reference.retain(&merged, all_files.then(|| earliest_put(&merged)));
                let output = (!kept.is_empty()).then_some(kept);
                runs.files.splice(start..end, output);
            }
            _ => {}
        }
        assert_eq!(store.version.files.len(), runs.files.len(), "seed {seed}");
        for _ in 0..12 {
            let floor = store.version.files_max_seq().0;
            let question = random_question(&mut random, floor, store.seq);
            in_runs += compare(&store, &runs.all(), &reference, &question, &mut random, seed);
        }
    }
    compare_halves(&mut store, &mut runs, &mut random, seed);
    in_runs
}

/// Splits the store at a row and compares both halves, before and after each has compacted its share.
fn compare_halves(store: &mut TestStore, runs: &mut Runs, random: &mut Random, seed: u64) {
    let family = store.version.family.clone();
    let reference = Reference {
        family: &family,
        now_ms: NOW_MS,
    };
    store.flush();
    let kept = reference.retain(&std::mem::take(&mut runs.memory), None);
    if !kept.is_empty() {
        runs.files.push(kept);
    }
    let everything = runs.all();
    let at = pick(random, &["b", "bb", "c"]).as_bytes().to_vec();
    for (side, (start, end)) in [(Vec::new(), at.clone()), (at, Vec::new())]
        .into_iter()
        .enumerate()
    {
        let clip = Clip { start, end };
        let mut half = store.half(&clip, side as u64 + 1);
        let mut own = everything.clone();
        own.retain(|cell| clip.contains(cell.key.as_key().row()));
        for compacted in [false, true] {
            if compacted && !half.version.files.is_empty() {
                half.compact(0..half.version.files.len());
                // A file's oldest put counts for all its rows.
                own = reference.retain(&own, Some(earliest_put(&everything)));
            }
            for _ in 0..6 {
                let question = random_question(random, half.seq, half.seq);
                compare(&half, &own, &reference, &question, random, seed);
            }
        }
    }
}

fn texts(cells: &[TextCell]) -> Vec<String> {
    cells.iter().map(ToString::to_string).collect()
}

/// Returns the number of cells that came in runs of plain rows.
fn compare(
    store: &TestStore,
    all: &[TextCell],
    reference: &Reference<'_>,
    question: &Question,
    random: &mut Random,
    seed: u64,
) -> usize {
    let mut in_runs = 0;
    let spec = ReadSpec {
        time_range: question.range,
        max_versions: question.max_versions,
        family_limit: question.family_limit,
        family_offset: question.family_offset,
        raw: question.raw,
        ..ReadSpec::default()
    };
    let selection = question.columns.as_ref().map(|names| FamilySelection {
        family: b"f".to_vec(),
        columns: Columns::Only(names.iter().map(|name| name.clone().into_bytes()).collect()),
    });
    let expected_row = |row: &str| texts(&reference.read_row(all, row, question));
    let batch = if random.one_in(2) {
        usize::MAX
    } else {
        1 + random.below(3)
    };

    for row in ROWS {
        let rows = ReadRows::One(row.as_bytes());
        let mut scanner = store.open(selection.as_ref(), &spec, question.read_point, rows);
        let got = texts(&read_all(&mut scanner, None, batch));
        assert_eq!(got, expected_row(row), "get {row}, seed {seed}, {question:?}");
    }
    for reversed in [false, true] {
        let (low, high) = match random.below(3) {
            0 => ("", ""),
            1 => ("b", "c"),
            _ => ("aa", "bb"),
        };
        let mut expected: Vec<&str> = ROWS
            .into_iter()
            .filter(|row| *row >= low && (high.is_empty() || *row <= high))
            .collect();
        if reversed {
            expected.reverse();
        }
        let rows = ReadRows::Range {
            low: low.as_bytes(),
            high: high.as_bytes(),
            reversed,
        };
        let mut scanner = store.open(selection.as_ref(), &spec, question.read_point, rows);
        // The bounds are a hint; rows beyond them may come and are the caller's to leave out.
        let mut got = if batch == usize::MAX {
            let (got, from_runs) = read_all_in_runs(&mut scanner);
            in_runs += from_runs;
            got
        } else {
            read_all(&mut scanner, None, batch)
        };
        got.retain(|cell| {
            let row = cell.key.as_key().row();
            row >= low.as_bytes() && (high.is_empty() || row <= high.as_bytes())
        });
        let expected: Vec<String> = expected.into_iter().flat_map(expected_row).collect();
        assert_eq!(
            texts(&got),
            expected,
            "scan reversed {reversed}, seed {seed}, {question:?}"
        );
    }
    in_runs
}

/// Reads to the end, plain rows in runs. Also returns the number of cells from runs.
fn read_all_in_runs(scanner: &mut StoreScanner) -> (Vec<TextCell>, usize) {
    let (mut cells, mut in_runs) = (Vec::new(), 0);
    while scanner.row().is_some() {
        let run = plain_rows(scanner, 2);
        in_runs += run.len();
        cells.extend(run);
        cells.extend(read_row(scanner));
    }
    (cells, in_runs)
}

/// Reads the next row.
fn read_row(scanner: &mut StoreScanner) -> Vec<TextCell> {
    let Some(row) = scanner.row().map(<[u8]>::to_vec) else {
        return Vec::new();
    };
    let mut out = CellBatch::new();
    let progress = scanner.read_row(&row, None, &mut RowLimit::NONE.clone(), &mut out);
    assert_eq!(progress.unwrap(), RowProgress::Done);
    out.end_row(false);
    out.rows()
        .flat_map(|row| row.cells().map(TextCell::of).collect::<Vec<_>>())
        .collect()
}
