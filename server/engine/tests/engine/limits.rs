//! No schema that clients create keeps the server from starting or from replying.
//!
//! The property test makes random schema changes at and over every limit. Then the process is
//! killed, files that no manifest names are left in every directory, and the database is checked,
//! opened and listed. Every accepted change is there and can be read. A change that is refused as
//! an invalid argument or for a constraint has no effect.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::fs::{Open, Vfs};
use basalt_engine::internals::manifest::{Manifest, ManifestEdit, RegionMeta, SnapshotMeta};
use basalt_engine::op::{ReadSpec, Scan};
use basalt_engine::options::{Options, Totals};
use basalt_engine::schema::limits::{
    DESCRIPTOR, FAMILIES, FAMILY_NAME, Limit, NAMESPACE_NAME, OPTION_NAME, OPTION_VALUE, OPTIONS,
    SNAPSHOT_NAME, SPLIT_KEY, SPLIT_KEYS, TABLE_QUALIFIER,
};
use basalt_engine::schema::{FamilyDescriptor, NamespaceDescriptor, TableDescriptor, TableName, TableState};
use basalt_engine::{Engine, Error, Result};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::rig::{Rig, Shown, descriptor, get, name, put, scan};

/// Small enough that random changes reach them.
const TOTALS: Totals = Totals {
    manifest_bytes: 300_000,
    stores: 40,
    namespaces: 5,
    snapshots: 4,
};

/// A size below, at or above a limit.
#[derive(Clone, Copy, Debug)]
enum Size {
    Small,
    OneBelow,
    Limit,
    OneAbove,
    Far,
}

impl Size {
    fn of(self, limit: Limit) -> usize {
        match self {
            Self::Small => 1,
            Self::OneBelow => limit.max - 1,
            Self::Limit => limit.max,
            Self::OneAbove => limit.max + 1,
            Self::Far => limit.max * 3,
        }
    }

    /// A name of that size. `number` selects its script and its first letter.
    fn name(self, limit: Limit, number: u8) -> String {
        let letter = ["x", "\u{e9}", "\u{8868}"][usize::from(number % 3)];
        let first = char::from(b'a' + number % 26);
        let bytes = self.of(limit) - 1;
        let rest = bytes % letter.len();
        format!(
            "{first}{}{}",
            "_".repeat(rest),
            letter.repeat(bytes / letter.len())
        )
    }
}

/// Mostly small, so that most changes of several parts are accepted.
fn size() -> impl Strategy<Value = Size> {
    prop_oneof![
        12 => Just(Size::Small),
        2 => Just(Size::OneBelow),
        2 => Just(Size::Limit),
        1 => Just(Size::OneAbove),
        1 => Just(Size::Far),
    ]
}

/// The schema of a table to create or alter.
#[derive(Clone, Debug)]
struct Shape {
    qualifier: (Size, u8),
    family: Size,
    families: u8,
    option_name: Size,
    option_value: Size,
    options: Size,
    split: Option<Size>,
    splits: u8,
}

/// A schema change. `Index` selects one of the existing namespaces, tables or snapshots.
#[derive(Clone, Debug)]
enum Change {
    CreateNamespace(Size, u8, Size),
    AlterNamespace(Index, Size, Size),
    DropNamespace(Index),
    CreateTable(Index, Shape),
    Alter(Index, Shape),
    AddFamily(Index, Size),
    DropFamily(Index),
    Disable(Index),
    Enable(Index),
    Truncate(Index, bool),
    DropTable(Index),
    Write(Index, Size, bool),
    Split(Index, Size),
    Merge(Index),
    Snapshot(Index, Size, u8),
    Clone(Index, Index, Size, u8),
    Restore(Index),
    DeleteSnapshot(Index),
}

fn shape() -> impl Strategy<Value = Shape> {
    (
        (size(), any::<u8>()),
        size(),
        1..4_u8,
        (size(), size(), prop_oneof![20 => Just(Size::Small), 1 => size()]),
        proptest::option::of(size()),
        0..6_u8,
    )
        .prop_map(
            |(qualifier, family, families, (option_name, option_value, options), split, splits)| Shape {
                qualifier,
                family,
                families,
                option_name,
                option_value,
                options,
                split,
                splits,
            },
        )
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    prop_oneof![
        3 => (size(), any::<u8>(), size()).prop_map(|(size, number, value)| Change::CreateNamespace(size, number, value)),
        1 => (at(), size(), size()).prop_map(|(at, name, value)| Change::AlterNamespace(at, name, value)),
        1 => at().prop_map(Change::DropNamespace),
        6 => (at(), shape()).prop_map(|(at, shape)| Change::CreateTable(at, shape)),
        2 => (at(), shape()).prop_map(|(at, shape)| Change::Alter(at, shape)),
        1 => (at(), size()).prop_map(|(at, size)| Change::AddFamily(at, size)),
        1 => at().prop_map(Change::DropFamily),
        2 => at().prop_map(Change::Disable),
        1 => at().prop_map(Change::Enable),
        1 => (at(), any::<bool>()).prop_map(|(at, keep)| Change::Truncate(at, keep)),
        1 => at().prop_map(Change::DropTable),
        6 => (at(), size(), any::<bool>()).prop_map(|(at, size, flush)| Change::Write(at, size, flush)),
        2 => (at(), size()).prop_map(|(at, size)| Change::Split(at, size)),
        1 => at().prop_map(Change::Merge),
        3 => (at(), size(), any::<u8>()).prop_map(|(at, size, number)| Change::Snapshot(at, size, number)),
        2 => (at(), at(), size(), any::<u8>()).prop_map(|(at, space, size, number)| Change::Clone(at, space, size, number)),
        1 => at().prop_map(Change::Restore),
        1 => at().prop_map(Change::DeleteSnapshot),
    ]
}

fn tables(engine: &Engine) -> Vec<(Arc<TableDescriptor>, TableState)> {
    let mut tables = engine.tables();
    tables.retain(|(table, _)| !table.name.is_system());
    tables
}

fn options(shape: &Shape) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut options = BTreeMap::from([(
        shape.option_name.name(OPTION_NAME, 0).into_bytes(),
        vec![b'v'; shape.option_value.of(OPTION_VALUE)],
    )]);
    for number in 1..shape.options.of(OPTIONS) {
        options.insert(number.to_string().into_bytes(), Vec::new());
    }
    options
}

fn families(shape: &Shape) -> Vec<FamilyDescriptor> {
    let family = |number: u8| {
        let mut family = FamilyDescriptor::new(shape.family.name(FAMILY_NAME, number).as_bytes());
        if number == 0 {
            family.configuration = options(shape);
        }
        family
    };
    let mut families: Vec<_> = (0..shape.families).map(family).collect();
    families.push(FamilyDescriptor::new(b"f"));
    families.dedup_by(|left, right| left.name == right.name);
    families
}

/// The descriptor of a table in that namespace. A name over its limit is refused when it is parsed.
fn table(namespace: &str, shape: &Shape) -> Result<TableDescriptor> {
    let (size, number) = shape.qualifier;
    let name = TableName::new(namespace, &size.name(TABLE_QUALIFIER, number))?;
    let mut table = TableDescriptor::new(name, families(shape));
    table.attributes = options(shape);
    Ok(table)
}

/// Makes the change. `None` if there is nothing that it could change.
fn make(engine: &Engine, change: &Change) -> Option<Result<()>> {
    let namespaces = engine.namespaces();
    let tables = tables(engine);
    let snapshots = engine.snapshots();
    let table_at = |at: &Index| (!tables.is_empty()).then(|| &*tables[at.index(tables.len())].0);
    let snapshot_at =
        |at: &Index| (!snapshots.is_empty()).then(|| snapshots[at.index(snapshots.len())].name.clone());
    let space = |at: &Index| namespaces[at.index(namespaces.len())].name.clone();
    let properties = |name: Size, value: Size| -> BTreeMap<String, String> {
        [(name.name(OPTION_NAME, 0), "v".repeat(value.of(OPTION_VALUE)))].into()
    };
    Some(match change {
        Change::CreateNamespace(size, number, value) => engine.create_namespace(NamespaceDescriptor {
            name: size.name(NAMESPACE_NAME, *number),
            configuration: properties(Size::Small, *value),
        }),
        Change::AlterNamespace(at, option, value) => engine.alter_namespace(NamespaceDescriptor {
            name: space(at),
            configuration: properties(*option, *value),
        }),
        Change::DropNamespace(at) => engine.drop_namespace(&space(at)),
        Change::CreateTable(at, shape) => {
            let splits = shape.split.map_or_else(Vec::new, |size| {
                (0..shape.splits)
                    .map(|number| size.name(SPLIT_KEY, number).into_bytes())
                    .collect()
            });
            table(&space(at), shape).and_then(|table| engine.create_table(table, splits))
        }
        Change::Alter(at, shape) => {
            let mut altered = table_at(at)?.clone();
            altered.families = families(shape);
            altered.families.sort_by(|left, right| left.name.cmp(&right.name));
            altered.attributes = options(shape);
            engine.alter_table(altered)
        }
        Change::AddFamily(at, size) => {
            let family = FamilyDescriptor::new(size.name(FAMILY_NAME, 9).as_bytes());
            engine.add_family(&table_at(at)?.name, family)
        }
        Change::DropFamily(at) => {
            let table = table_at(at)?;
            engine.drop_family(&table.name, &table.families[at.index(table.families.len())].name)
        }
        Change::Disable(at) => engine.disable_table(&table_at(at)?.name),
        Change::Enable(at) => engine.enable_table(&table_at(at)?.name),
        Change::Truncate(at, keep) => engine.truncate_table(&table_at(at)?.name, *keep),
        Change::DropTable(at) => engine.drop_table(&table_at(at)?.name),
        Change::Write(at, size, flush) => {
            let table = table_at(at)?;
            write(engine, &table.name, size.name(SPLIT_KEY, 12).as_bytes(), *flush)
        }
        Change::Split(at, size) => {
            let region = engine.regions(&table_at(at)?.name).unwrap().pop()?;
            let row = size.name(SPLIT_KEY, 25);
            engine.split_region(region.id, Some(row.as_bytes())).map(drop)
        }
        Change::Merge(at) => {
            let regions = engine.regions(&table_at(at)?.name).unwrap();
            let ids: Vec<_> = regions.iter().take(2).map(|region| region.id).collect();
            engine.merge_regions(&ids).map(drop)
        }
        Change::Snapshot(at, size, number) => {
            let name = size.name(SNAPSHOT_NAME, *number);
            engine.snapshot(&table_at(at)?.name, &name, true, 0)
        }
        Change::Clone(at, to, size, number) => {
            let snapshot = snapshot_at(at)?;
            TableName::new(&space(to), &size.name(TABLE_QUALIFIER, *number))
                .and_then(|table| engine.clone_snapshot(&snapshot, &table))
        }
        Change::Restore(at) => engine.restore_snapshot(&snapshot_at(at)?),
        Change::DeleteSnapshot(at) => engine.delete_snapshot(&snapshot_at(at)?),
    })
}

/// Puts a row into family `f`. Fails if the table is disabled or lacks the family.
fn write(engine: &Engine, table: &TableName, row: &[u8], flush: bool) -> Result<()> {
    use crate::rig::{apply, mutation, value};
    apply(engine, table, &[mutation(row, &[value(b"q", row)])])?;
    if flush { engine.flush(table) } else { Ok(()) }
}

/// The schema as listings and system tables show it, and the rows of all enabled tables.
#[derive(Clone, Debug, PartialEq)]
struct Listed {
    namespaces: Vec<NamespaceDescriptor>,
    tables: Vec<(Arc<TableDescriptor>, TableState)>,
    regions: Vec<Vec<u8>>,
    snapshots: Vec<(String, Arc<TableDescriptor>)>,
    meta: BTreeSet<String>,
    namespace_rows: Vec<Shown>,
    data: Vec<Vec<Shown>>,
}

impl Listed {
    fn of(engine: &Engine) -> Self {
        let tables = tables(engine);
        let regions = tables
            .iter()
            .flat_map(|(table, _)| engine.regions(&table.name).unwrap());
        let mut namespace_rows = scan(engine, &name("hbase:namespace"), Scan::default());
        for row in &mut namespace_rows {
            row.timestamp = 0;
        }
        Self {
            namespaces: engine.namespaces(),
            regions: regions.map(|region| region.name()).collect(),
            snapshots: engine
                .snapshots()
                .iter()
                .map(|snapshot: &Arc<SnapshotMeta>| {
                    (snapshot.name.clone(), Arc::new(snapshot.descriptor.clone()))
                })
                .collect(),
            meta: scan(engine, &name("hbase:meta"), Scan::default())
                .into_iter()
                .map(|cell| cell.row)
                .collect(),
            namespace_rows,
            data: tables
                .iter()
                .filter(|(_, state)| *state == TableState::Enabled)
                .map(|(table, _)| scan(engine, &table.name, Scan::default()))
                .collect(),
            tables,
        }
    }

    /// Asserts that every region, table and namespace has its row in a system table, and that names
    /// are within their limits.
    fn check(&self) {
        for region in &self.regions {
            assert!(region.len() <= basalt_engine::cell::ROW_MAX_BYTES);
            assert!(self.meta.contains(&*String::from_utf8_lossy(region)));
        }
        for (table, _) in &self.tables {
            assert!(self.meta.contains(&table.name.to_string()));
        }
        let rows: Vec<&str> = self.namespace_rows.iter().map(|row| &*row.row).collect();
        let names: Vec<&str> = self.namespaces.iter().map(|namespace| &*namespace.name).collect();
        assert_eq!(rows, names);
        assert!(names.iter().all(|name| name.len() <= NAMESPACE_NAME.max));
        let snapshots = self.snapshots.iter();
        assert!(
            snapshots
                .map(|(name, _)| name.len())
                .all(|bytes| bytes <= SNAPSHOT_NAME.max)
        );
    }
}

/// All directories below `dir`.
fn directories(vfs: &dyn Vfs, dir: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let Ok(names) = vfs.list(dir) else { return found };
    for name in names {
        let path = dir.join(name);
        if vfs.list(&path).is_ok() {
            found.extend(directories(vfs, &path));
            found.insert(path);
        }
    }
    found
}

/// Leaves two files that nothing refers to in every directory: one as of an unfinished flush, and
/// one with the longest possible name.
fn leave_files(vfs: &dyn Vfs, dir: &Path) {
    for root in ["tables", "snapshots"] {
        for directory in directories(vfs, &dir.join(root)) {
            for file in ["00000000000fffff", &"z".repeat(255)] {
                vfs.open(&directory.join(file), Open::CreateNew)
                    .unwrap()
                    .sync_all()
                    .unwrap();
            }
            vfs.sync_dir(&directory).unwrap();
        }
    }
}

fn rig() -> (SimFs, Rig) {
    let disk = SimFs::new(1, SimOptions::default());
    let mut rig = Rig::simulated(&disk);
    rig.options = Options {
        totals: TOTALS,
        manifest_roll_bytes: 64 << 10,
        ..rig.options
    };
    (disk, rig)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 400, ..ProptestConfig::default() })]

    /// Goal: accepted changes survive a kill, and refused ones have no effect (module comment).
    #[test]
    fn accepted_changes_are_there_after_a_kill(changes in vec(change(), 1..40), power_cut in any::<u64>()) {
        let (disk, rig) = rig();
        let engine = rig.open();
        for change in &changes {
            let before = Listed::of(&engine);
            let dirs = directories(&*rig.vfs, &rig.dir);
            if let Some(Err(error)) = make(&engine, change) {
                prop_assert_eq!(error.kind(), basalt_engine::Kind::Request, "{}", error);
                // A write stands when the flush behind it is refused.
                if !matches!(change, Change::Write(..)) {
                    let after = Listed::of(&engine);
                    prop_assert!(after == before, "{change:?} was refused and changed something: {error}");
                    prop_assert_eq!(directories(&*rig.vfs, &rig.dir), dirs, "{:?} left directories", change);
                }
            }
        }
        let expected = Listed::of(&engine);
        expected.check();
        prop_assert!(expected.namespaces.len() <= TOTALS.namespaces && expected.snapshots.len() <= TOTALS.snapshots);
        drop(engine);
        let rig = Rig { vfs: Arc::new(disk.crash(power_cut)), ..rig };
        leave_files(&*rig.vfs, &rig.dir);
        prop_assert_eq!(rig.problems(), Vec::<String>::new());
        let engine = rig.open();
        prop_assert!(Listed::of(&engine) == expected, "something is another after the start");
        for (table, _) in expected.tables.iter().filter(|(_, state)| *state == TableState::Enabled) {
            if table.family(b"f").is_some() {
                put(&engine, &table.name, b"again", b"1");
            }
            engine.flush(&table.name).unwrap();
        }
        engine.close().unwrap();
        drop(engine);
        prop_assert_eq!(rig.problems(), Vec::<String>::new());
        rig.open();
    }
}

/// Goal: the limits that random changes rarely reach are enforced by calls of the engine. Method:
/// sizes at the limit and one above. Each refusal names the limit.
#[test]
fn every_limit_is_checked_at_the_front_door() {
    let rig = Rig::in_memory();
    let engine = rig.open();
    let refusal = |result: Result<()>, limit: Limit| {
        let text = result.unwrap_err().to_string();
        assert!(
            text.contains(&format!("the limit '{}' is {}", limit.name, limit.max)),
            "{text}"
        );
    };
    let keys = |count: usize, bytes: usize| -> Vec<Vec<u8>> {
        let key = |number: usize| format!("{number:0bytes$}").into_bytes();
        (0..count).map(key).collect()
    };
    let count = SPLIT_KEYS.max / SPLIT_KEY.max;
    engine
        .create_table(descriptor("t", &["f"]), keys(count, SPLIT_KEY.max))
        .unwrap();
    refusal(
        engine.create_table(descriptor("u", &["f"]), keys(count + 1, SPLIT_KEY.max)),
        SPLIT_KEYS,
    );
    refusal(
        engine.create_table(descriptor("u", &["f"]), keys(1, SPLIT_KEY.max + 1)),
        SPLIT_KEY,
    );
    let region = engine.regions(&name("t")).unwrap().pop().unwrap();
    refusal(
        engine
            .split_region(region.id, Some(&vec![b'9'; SPLIT_KEY.max + 1]))
            .map(drop),
        SPLIT_KEY,
    );
    let names: Vec<String> = (0..=FAMILIES.max).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    refusal(engine.create_table(descriptor("u", &names), Vec::new()), FAMILIES);
    engine
        .create_table(descriptor("many", &names[1..]), Vec::new())
        .unwrap();
    let extra = engine.add_family(&name("many"), FamilyDescriptor::new(b"0"));
    refusal(extra, FAMILIES);
    let long = NamespaceDescriptor {
        name: "n".repeat(NAMESPACE_NAME.max + 1),
        ..NamespaceDescriptor::default()
    };
    refusal(engine.create_namespace(long), NAMESPACE_NAME);
    let mut large = NamespaceDescriptor {
        name: "n".into(),
        ..NamespaceDescriptor::default()
    };
    for number in 0..16 {
        large
            .configuration
            .insert(format!("{number:02}"), "v".repeat(OPTION_VALUE.max - 2));
    }
    engine.create_namespace(large.clone()).unwrap();
    large.configuration.insert("x".into(), String::new());
    refusal(engine.alter_namespace(large.clone()), DESCRIPTOR);
    large.configuration.clear();
    engine.alter_namespace(large).unwrap();
    drop(engine);
    Listed::of(&rig.open()).check();
}

/// Goal: docs/compatibility.md lists every limit of the schema with its value, and no other limit.
#[test]
fn the_page_lists_every_limit() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compatibility.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, below) = page.split_once("\n### Limits of the schema\n").unwrap();
    let chapter = below.split("\n#").next().unwrap();
    let rows: Vec<(&str, &str)> = chapter
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
        .map(|(limit, rest)| (limit, rest.split(" | ").next().unwrap()))
        .filter(|(limit, _)| !limit.starts_with("---") && *limit != "limit")
        .collect();
    let limits = Limit::ALL.map(|limit| (limit.name, format!("{} {}", limit.max, limit.unit)));
    let limits: Vec<(&str, &str)> = limits.iter().map(|(name, value)| (*name, &**value)).collect();
    assert_eq!(rows, limits);
}

/// Goal: totals limit growth only. At a total, a drop makes room, and a change without growth is
/// accepted.
#[test]
fn at_a_total_what_is_there_stays_and_can_go() {
    let (_, rig) = rig();
    let engine = rig.open();
    let keys = |count: u8| (1..count).map(|number| vec![number]).collect::<Vec<_>>();
    engine
        .create_table(descriptor("t", &["f", "g"]), keys(20))
        .unwrap();
    let refused = engine
        .create_table(descriptor("u", &["f"]), Vec::new())
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the server would have 41 stores; the limit 'stores' is 40 stores: drop tables or families, or merge regions"
    );
    engine.snapshot(&name("t"), "s", true, 0).unwrap();
    let refused = engine.clone_snapshot("s", &name("u")).unwrap_err().to_string();
    assert!(
        refused.starts_with("the server would have 80 stores"),
        "{refused}"
    );
    let region = engine.regions(&name("t")).unwrap().pop().unwrap();
    for refused in [
        engine.split_region(region.id, Some(b"x")).map(drop),
        engine.add_family(&name("t"), FamilyDescriptor::new(b"h")),
    ] {
        assert!(matches!(refused, Err(Error::Constraint(_))), "{refused:?}");
    }
    engine.drop_family(&name("t"), b"g").unwrap();
    engine.create_table(descriptor("u", &["f"]), keys(20)).unwrap();
    engine.disable_table(&name("u")).unwrap();
    engine.truncate_table(&name("u"), true).unwrap();
    let namespace = |number: usize| NamespaceDescriptor {
        name: format!("n{number}"),
        ..NamespaceDescriptor::default()
    };
    for number in 0..3 {
        engine.create_namespace(namespace(number)).unwrap();
    }
    let refused = engine.create_namespace(namespace(3)).unwrap_err().to_string();
    assert!(
        refused.contains("the limit 'namespaces' is 5 namespaces"),
        "{refused}"
    );
    engine.drop_namespace("n1").unwrap();
    engine.create_namespace(namespace(3)).unwrap();
}

/// Creates a database as of before there were limits: a namespace name, a table option and start
/// rows of regions that exceed their limits.
fn from_before_limits(rig: &Rig) {
    rig.open().close().unwrap();
    rig.vfs
        .create_dir_all(&rig.dir.join("tables/default/t/f"))
        .unwrap();
    let (mut manifest, state) = Manifest::open(Arc::clone(&rig.vfs), &rig.dir, 1 << 20).unwrap();
    manifest
        .append(&ManifestEdit::PutNamespace(NamespaceDescriptor {
            name: "n".repeat(70_000),
            ..NamespaceDescriptor::default()
        }))
        .unwrap();
    let mut table = descriptor("t", &["f"]);
    table
        .attributes
        .insert(b"long".to_vec(), vec![b'v'; OPTION_VALUE.max + 1]);
    let starts = [vec![], vec![b'm'; 70_000], vec![b'n'; 32_767]];
    let region = |number: usize| RegionMeta {
        id: basalt_engine::id::RegionId(state.next_region + number as u64),
        table: name("t"),
        start: starts[number].clone(),
        end: starts.get(number + 1).cloned().unwrap_or_default(),
        created_ms: 1_700_000_000_000,
    };
    manifest
        .append(&ManifestEdit::CreateTable {
            descriptor: table,
            regions: (0..3).map(region).collect(),
        })
        .unwrap();
}

/// Goal: a database with names and start rows over their limits opens, and its table can be read
/// and written. Reads of system tables fail with an error that names the remedy, and the remedy
/// works.
#[test]
fn a_database_from_before_limits_opens() {
    let rig = Rig::in_memory();
    from_before_limits(&rig);
    let engine = rig.open();
    let t = name("t");
    for row in [&b"a"[..], &vec![b'm'; 32_767], b"n", &vec![b'n'; 32_767], b"z"] {
        put(&engine, &t, row, b"1");
        assert_eq!(get(&engine, &t, row).as_deref(), Some(&b"1"[..]));
    }
    let rows = |engine: &Engine, reversed| {
        let cells = scan(
            engine,
            &t,
            Scan {
                reversed,
                ..Scan::default()
            },
        );
        cells.len()
    };
    engine.flush(&t).unwrap();
    assert_eq!((rows(&engine, false), rows(&engine, true)), (5, 5));
    engine.compact(&t, None, true, true).unwrap();
    drop(engine);
    assert_eq!(rig.problems(), Vec::<String>::new());
    let engine = rig.open();
    assert_eq!((rows(&engine, false), rows(&engine, true)), (5, 5));
    let read = |table: &str| {
        let scanned = engine.scan(&name(table), Scan::default()).map(drop);
        let located = engine.regions(&name(table)).map(drop);
        let mut out = basalt_engine::cell::CellBatch::new();
        let spec = ReadSpec::default();
        let got = engine.get(
            &name(table),
            &basalt_engine::op::Get {
                row: b"default",
                spec,
            },
            &mut out,
        );
        [scanned, located, got]
    };
    for (table, text) in [
        ("hbase:namespace", "dropping the namespace makes it readable"),
        (
            "hbase:meta",
            "merging the region with the one before it makes it readable",
        ),
    ] {
        for result in read(table) {
            let refused = result.unwrap_err().to_string();
            assert!(refused.ends_with(text) && refused.contains("70"), "{refused}");
        }
    }
    assert!(engine.region_before(b"t,,1").is_err());
    engine.drop_namespace(&"n".repeat(70_000)).unwrap();
    let ids: Vec<_> = engine
        .regions(&t)
        .unwrap()
        .iter()
        .map(|region| region.id)
        .collect();
    engine.merge_regions(&ids[..2]).unwrap();
    for table in ["hbase:namespace", "hbase:meta"] {
        assert!(read(table).iter().all(Result::is_ok), "{table}");
    }
    let mut smaller = (*engine.describe_table(&t).unwrap().0).clone();
    let unchanged = engine.alter_table(smaller.clone()).unwrap_err().to_string();
    assert!(unchanged.contains("option value"), "{unchanged}");
    smaller.attributes.clear();
    engine.alter_table(smaller).unwrap();
    assert_eq!(rows(&engine, false), 5);
}

/// Goal: a scan whose filter seeks to a row longer than the maximum returns a result and does not
/// end the process.
#[test]
fn filters_may_lead_to_rows_that_cannot_be() {
    use basalt_engine::filter::FilterSpec;

    let engine = Rig::in_memory().open();
    let t = crate::rig::create(&engine);
    put(&engine, &t, b"a", b"1");
    put(&engine, &t, &vec![b'x'; 32_767], b"1");
    put(&engine, &t, b"y", b"1");
    engine.flush(&t).unwrap();
    for (prefix, found) in [(70_000, 0), (1, 1)] {
        for reversed in [false, true] {
            let filter = FilterSpec::prefix(vec![b'x'; prefix]);
            let wanted = Scan {
                reversed,
                spec: ReadSpec {
                    filter: Some(Arc::new(filter)),
                    ..ReadSpec::default()
                },
                ..Scan::default()
            };
            assert_eq!(scan(&engine, &t, wanted).len(), found, "{prefix} {reversed}");
        }
    }
}

/// Goal: names of namespaces, tables and snapshots may use any script, in system tables and after a
/// restart.
#[test]
fn names_may_be_of_any_script() {
    let rig = Rig::in_memory();
    let engine = rig.open();
    for (number, (space, table)) in names_of_scripts().into_iter().enumerate() {
        if space != "default" {
            engine
                .create_namespace(NamespaceDescriptor {
                    name: space.to_owned(),
                    ..NamespaceDescriptor::default()
                })
                .unwrap();
        }
        let table = TableName::new(space, table).unwrap();
        let of = TableDescriptor::new(table.clone(), vec![FamilyDescriptor::new(b"f")]);
        engine.create_table(of, vec![b"m".to_vec()]).unwrap();
        put(&engine, &table, b"r", number.to_string().as_bytes());
        engine
            .snapshot(&table, &format!("s_{}", table.qualifier()), true, 0)
            .unwrap();
    }
    drop(engine);
    assert_eq!(rig.problems(), Vec::<String>::new());
    let engine = rig.open();
    Listed::of(&engine).check();
    for (number, (space, table)) in names_of_scripts().into_iter().enumerate() {
        let table = TableName::new(space, table).unwrap();
        assert_eq!(get(&engine, &table, b"r").unwrap(), number.to_string().as_bytes());
        let region = engine.region_of(&table, b"z").unwrap();
        assert_eq!(region.start, b"m");
        let before = engine.region_before(&region.name()).unwrap().unwrap();
        assert_eq!(before.name(), region.name());
        let snapshot = format!("s_{}", table.qualifier());
        let copy = TableName::new("default", &format!("copy_{}", table.qualifier())).unwrap();
        engine.clone_snapshot(&snapshot, &copy).unwrap();
        assert!(get(&engine, &copy, b"r").is_some());
    }
}

fn names_of_scripts() -> [(&'static str, &'static str); 4] {
    [
        ("default", "\u{8868}"),
        (
            "\u{43f}\u{440}\u{43e}\u{441}\u{442}\u{440}",
            "\u{442}\u{430}\u{431}\u{43b}",
        ),
        ("\u{e9}", "t_\u{e9}.x-1"),
        ("default", "\u{6f1}\u{6f2}"),
    ]
}
