//! Our store files read by real HBase, and HBase's by us.
//!
//! `tests/conformance/hfile-interop` is a small Java program around HBase's own HFile reader, writer, bloom
//! filters and pretty printer. It is built with Maven (which downloads HBase once) and gets all commands of a
//! test in one file, so each test starts one JVM. Files are written in every combination of compression,
//! encoding and bloom filter, and every cell is compared: key, value, tags and sequence id.
//!
//! Without Java or Maven, or without a way to download HBase, the tests print `not run: ...` and check
//! nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use basalt_engine::cell::{CallMemory, Cell, CellCursor, CellType, Key, KeyBuf, compare_keys, put_tag};
use basalt_engine::fs::{HandleCache, Open, RealFs, Vfs};
use basalt_engine::id::{FileId, SeqId, Uuid};
use basalt_engine::internals::hfile::{Access, ReadOptions, Reader, ReaderContext, Writer, WriterOptions};
use basalt_engine::internals::{BlockCache, Priority};
use basalt_engine::metrics::Counters;
use basalt_engine::schema::{BloomType, Compression, DataBlockEncoding, FamilyDescriptor};
use basalt_test_support::JavaProgram;

const READS: ReadOptions = ReadOptions {
    cache_blocks: true,
    priority: Priority::Single,
    memory_only: false,
    charge: None,
    access: Access::Sequential,
};

/// A cell as the Java program prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    key: Vec<u8>,
    value: Vec<u8>,
    seq: u64,
    tags: Vec<u8>,
}

impl Line {
    fn of(cell: Cell<'_>) -> Self {
        Self {
            key: cell.key.bytes().to_vec(),
            value: cell.value.to_vec(),
            seq: cell.seq.0,
            tags: cell.tags.to_vec(),
        }
    }

    fn as_cell(&self) -> Cell<'_> {
        Cell {
            key: Key::parse(&self.key).expect("keys of the test are sound"),
            value: &self.value,
            tags: &self.tags,
            seq: SeqId(self.seq),
        }
    }

    fn parse(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        Self {
            key: unhex(words[1]),
            value: unhex(words[2]),
            seq: words[3].parse().unwrap(),
            tags: unhex(words[4]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".into();
    }
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    if text == "-" {
        return Vec::new();
    }
    assert!(text.len().is_multiple_of(2), "odd number of digits: {text}");
    let digits = text
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// The Java program; without one, the test is not run.
macro_rules! need_hbase {
    () => {
        match JavaProgram::find("conformance/hfile-interop") {
            Some(program) => program,
            None => return,
        }
    };
}

/// Commands for one JVM and the files of their answers.
struct Batch {
    dir: tempfile::TempDir,
    commands: String,
    count: usize,
}

impl Batch {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            commands: String::new(),
            count: 0,
        }
    }

    /// A new name for a store file. HBase wants hexadecimal names.
    fn file(&mut self) -> PathBuf {
        self.count += 1;
        self.dir.path().join(format!("{:032x}", self.count))
    }

    /// Adds a command and returns where its answer will be.
    fn add(&mut self, command: &str, file: &Path, words: &str) -> PathBuf {
        self.count += 1;
        let answer = self.dir.path().join(format!("answer{}", self.count));
        let _ = writeln!(
            self.commands,
            "{command} {} {words} {}",
            file.display(),
            answer.display()
        );
        self.commands = self.commands.replace("  ", " ");
        answer
    }

    fn run(&self, program: &JavaProgram) {
        let commands = self.dir.path().join("commands");
        std::fs::write(&commands, &self.commands).unwrap();
        let output = program
            .java()
            .args(["-Xmx512m", "basalt.HFileInterop"])
            .arg(&commands)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

fn answer(path: &Path, about: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Some(at) = lines.iter().position(|line| line.starts_with("error")) {
        panic!("{about}: HBase says {}", lines[at..].join("\n"));
    }
    lines
}

fn cells_of(lines: &[String]) -> Vec<Line> {
    lines
        .iter()
        .filter(|line| line.starts_with("cell "))
        .map(|line| Line::parse(line))
        .collect()
}

/// Length of the prefix in the bloom filters of these files.
const PREFIX_BYTES: usize = 6;

fn prefix_bytes(bloom: BloomType) -> usize {
    if bloom == BloomType::RowPrefix {
        PREFIX_BYTES
    } else {
        0
    }
}

/// Every combination of encoding, compression and bloom filter.
fn combinations() -> impl Iterator<Item = (DataBlockEncoding, Compression, BloomType)> {
    DataBlockEncoding::ALL.iter().flat_map(|&encoding| {
        Compression::ALL.iter().flat_map(move |&compression| {
            BloomType::ALL
                .iter()
                .map(move |&bloom| (encoding, compression, bloom))
        })
    })
}

/// A small generator; the test must give the same cells on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn our_cells(seed: u64, count: u64) -> Vec<Line> {
    let mut random = Random(seed);
    let mut cells: Vec<Line> = (0..count)
        .map(|_| {
            let row = format!(
                "r{}{}",
                &"\u{7f}xyz"[..random.below(4) as usize],
                random.below(count / 2)
            );
            let cell_type = match random.below(12) {
                0 => CellType::Delete,
                1 => CellType::DeleteColumn,
                2 => CellType::DeleteFamily,
                3 => CellType::DeleteFamilyVersion,
                _ => CellType::Put,
            };
            let qualifier = match cell_type {
                CellType::DeleteFamily | CellType::DeleteFamilyVersion => String::new(),
                _ => format!(
                    "{}{}",
                    "long-qualifier"[..random.below(14) as usize].to_owned(),
                    random.below(3)
                ),
            };
            let timestamp = match random.below(4) {
                0 => random.below(3) as i64,
                1 => i64::MAX - 1 - random.below(5) as i64,
                _ => 1_700_000_000_000 + random.below(70_000) as i64,
            };
            let mut tags = Vec::new();
            if random.below(3) == 0 {
                put_tag(&mut tags, 8, &random.below(9).to_be_bytes());
            }
            Line {
                key: KeyBuf::new(row.as_bytes(), b"f", qualifier.as_bytes(), timestamp, cell_type)
                    .as_key()
                    .bytes()
                    .to_vec(),
                value: vec![b'v'; random.below(3) as usize * random.below(60) as usize],
                seq: random.below(3) * random.below(1 << 40),
                tags,
            }
        })
        .collect();
    cells.sort_by(|left, right| {
        compare_keys(left.as_cell().key, right.as_cell().key).then(right.seq.cmp(&left.seq))
    });
    cells
}

fn write_ours(path: &Path, cells: &[Line], options: WriterOptions) {
    let file = RealFs.open(path, Open::CreateNew).unwrap();
    let mut writer = Writer::create(file, path, options).unwrap();
    for cell in cells {
        writer.append(cell.as_cell()).unwrap();
    }
    writer.finish().unwrap();
}

fn our_options() -> WriterOptions {
    WriterOptions {
        block_bytes: 2048,
        index_block_bytes: 512,
        bloom_chunk_bytes: 256,
        ..WriterOptions::of_family(
            &FamilyDescriptor::new(b"f"),
            Uuid([3; 16]),
            1_700_000_000_000,
            SeqId(4712),
        )
    }
}

fn open(path: &Path) -> Arc<Reader> {
    let context = ReaderContext {
        handles: HandleCache::new(Arc::new(RealFs), usize::MAX),
        cache: Arc::new(BlockCache::new(64 << 20)),
        counters: Arc::new(Counters::default()),
        direct_reads: false,
        calls: CallMemory::default(),
    };
    Reader::open(path.to_owned(), FileId(1), context).unwrap()
}

fn read_ours(reader: &Arc<Reader>) -> Vec<Line> {
    let mut cursor = reader.cursor(READS);
    cursor.seek(KeyBuf::first_on_row(b"", b"").as_key()).unwrap();
    let mut cells = Vec::new();
    while let Some(cell) = cursor.cell() {
        cells.push(Line::of(cell));
        cursor.advance().unwrap();
    }
    cells
}

/// The questions that the bloom filter of a file must answer with yes, as words of the `bloom` command.
fn bloom_words(cells: &[Line], bloom: BloomType) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for cell in cells {
        let key = cell.as_cell().key;
        match bloom {
            BloomType::Row | BloomType::RowPrefix => words.push(hex(key.row())),
            BloomType::RowCol => words.push(format!("{}:{}", hex(key.row()), hex(key.qualifier()))),
            BloomType::None => {}
        }
        if matches!(
            key.cell_type(),
            CellType::DeleteFamily | CellType::DeleteFamilyVersion
        ) {
            words.push(format!("{}!", hex(key.row())));
        }
    }
    words
}

/// HBase reads each of our files, with and without tags and sequence ids: all cells, all file info, a seek to
/// each cell and to the row before it, and its bloom filter knows every row, column and family tombstone, and
/// few others.
#[test]
fn hbase_reads_what_we_write() {
    let program = need_hbase!();
    let mut batch = Batch::new();
    let mut files = Vec::new();
    for (number, (encoding, compression, bloom)) in combinations().enumerate() {
        let mut cells = our_cells(number as u64, 300);
        // As a flush writes them, as a compaction of files without tags, and as one of all files of a store.
        let (tags, seqs) = [(true, true), (false, true), (false, false)][number % 3];
        for cell in &mut cells {
            if !tags {
                cell.tags.clear();
            }
            if !seqs {
                cell.seq = 0;
            }
        }
        let path = batch.file();
        let options = WriterOptions {
            encoding,
            tags,
            compression,
            bloom,
            bloom_prefix_bytes: prefix_bytes(bloom),
            ..our_options()
        };
        write_ours(&path, &cells, options);
        let words = bloom_words(&cells, bloom);
        let absent: Vec<String> = match bloom {
            BloomType::Row | BloomType::RowPrefix => (0..300)
                .map(|row| hex(format!("rx{row}absent").as_bytes()))
                .collect(),
            BloomType::RowCol => (0..300)
                .map(|row| format!("{}:{}", hex(format!("r{row}").as_bytes()), hex(b"absent")))
                .collect(),
            BloomType::None => Vec::new(),
        };
        let printed = batch.add("print", &path, "");
        let asked = batch.add(
            "bloom",
            &path,
            &format!("{} {}", words.join(" "), absent.join(" ")),
        );
        files.push((
            format!("{encoding} {compression} {bloom} tags={tags} sequence ids={seqs}"),
            cells,
            words.len(),
            printed,
            asked,
        ));
    }
    batch.run(&program);
    for (about, cells, present, printed, asked) in files {
        let lines = answer(&printed, &about);
        assert_eq!(cells_of(&lines), cells, "{about}");
        assert!(lines.contains(&format!("entries {}", cells.len())), "{about}");
        assert!(
            lines.contains(&format!("info {} {}", hex(b"basalt.UUID"), hex(&[3; 16]))),
            "{about}"
        );
        let lines = answer(&asked, &about);
        assert_eq!(lines[0], "sequence 4712", "{about}");
        assert!(
            lines[1..=present].iter().all(|line| line == "yes"),
            "{about}: {lines:?}"
        );
        let wrong = lines[present + 1..].iter().filter(|line| *line == "yes").count();
        assert!(wrong < 60, "{about}: {wrong} of 300 absent keys were not denied");
    }
}

/// Large blocks, multi-level indexes of default-sized blocks and values beyond one compression chunk; an
/// empty file; and HBase's own command line printer.
#[test]
fn hbase_reads_large_and_empty_files() {
    let program = need_hbase!();
    let mut batch = Batch::new();
    let mut large = our_cells(77, 300);
    for (index, cell) in large.iter_mut().enumerate() {
        if index % 50 == 0 {
            cell.value = (0..700_000_usize)
                .map(|at| (at * at / (index + 3)) as u8)
                .collect();
        }
    }
    let mut files = Vec::new();
    for &compression in Compression::ALL {
        for (name, cells) in [("large", &large), ("empty", &Vec::new())] {
            let path = batch.file();
            write_ours(
                &path,
                cells,
                WriterOptions {
                    compression,
                    block_bytes: 65_536,
                    ..our_options()
                },
            );
            files.push((
                format!("{name} {compression}"),
                cells.clone(),
                batch.add("print", &path, ""),
            ));
        }
    }
    let path = batch.file();
    let cells = our_cells(78, 40);
    write_ours(&path, &cells, our_options());
    let pretty = batch.add("pretty", &path, "");
    batch.run(&program);
    for (about, cells, printed) in files {
        assert!(
            cells_of(&answer(&printed, &about)) == cells,
            "{about}: other cells"
        );
    }
    let lines = answer(&pretty, "pretty").join("\n");
    assert!(lines.starts_with("status 0"), "{lines}");
    for expected in [
        "Scanned kv count -> 40",
        "basalt.UUID",
        "BLOOM_FILTER_TYPE",
        "entryCount=40",
        "majorVersion=3",
    ] {
        assert!(lines.contains(expected), "{expected} is not in\n{lines}");
    }
    assert_eq!(lines.matches("K: r").count(), 40, "{lines}");
}

/// We read each of HBase's files, verify it, and find each cell by seeking; with and without tags, and with
/// HBase's dictionary compression of tags.
#[test]
fn we_read_what_hbase_writes() {
    let program = need_hbase!();
    let mut batch = Batch::new();
    let mut files = Vec::new();
    for (number, (encoding, compression, bloom)) in combinations().enumerate() {
        let (tags, compress_tags) = [(true, true), (false, false), (true, false)][number % 3];
        let path = batch.file();
        let words = format!(
            "encoding={encoding} compression={compression} bloom={bloom} tags={tags} compress_tags={compress_tags} \
             block=2048 index_block=512 bloom_block=256 bloom_prefix={PREFIX_BYTES} cells=700 seed={number}"
        );
        let written = batch.add("write", &path, &words);
        files.push((words, encoding, compression, bloom, path, written));
    }
    batch.run(&program);
    for (about, encoding, compression, bloom, path, written) in files {
        let cells = cells_of(&answer(&written, &about));
        assert!(cells.len() > 500, "{about}");
        let reader = open(&path);
        assert_eq!(read_ours(&reader), cells, "{about}");
        reader
            .verify(None)
            .unwrap_or_else(|error| panic!("{about}: {error}"));
        let properties = reader.properties();
        assert_eq!(
            (properties.encoding, properties.compression, properties.bloom),
            (encoding, compression, bloom),
            "{about}"
        );
        assert_eq!(properties.bloom_prefix_bytes, prefix_bytes(bloom), "{about}");
        assert_eq!(
            (properties.max_seq, properties.major, properties.uuid),
            (SeqId(4711), true, None),
            "{about}"
        );
        assert_eq!(
            properties.first_key.as_ref().map(KeyBuf::as_key),
            Some(cells[0].as_cell().key),
            "{about}"
        );
        assert!(reader.mid_key().unwrap().is_some(), "{about}");
        let mut cursor = reader.cursor(READS);
        for cell in &cells {
            let key = cell.as_cell().key;
            cursor.seek(key).unwrap();
            assert_eq!(cursor.cell().map(|found| found.key), Some(key), "{about}");
            assert!(reader.may_contain_row(key.row(), READS).unwrap(), "{about}");
            assert!(
                reader
                    .may_contain_column(key.row(), b"f", key.qualifier(), READS)
                    .unwrap(),
                "{about}"
            );
        }
    }
}
