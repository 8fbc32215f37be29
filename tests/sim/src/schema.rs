//! Schema changes of the workload.

use basalt_engine::schema::{FamilyDescriptor, TableDescriptor};
use basalt_engine::{Error, Result};

use super::Stop;
use super::life::{Kind, Life};
use super::model::{self, MANY, Pending, Table, Tables};
use super::read::name;

/// The families: name, whether many versions are kept, encoding, compression, bloom filter.
const FAMILIES: &[(&str, bool, &str, &str, &str)] = &[
    ("a", true, "ROW_INDEX_V1", "NONE", "ROW"),
    ("b", false, "DIFF", "SNAPPY", "ROWCOL"),
    ("c", true, "FAST_DIFF", "ZSTD", "NONE"),
    ("d", false, "PREFIX", "LZ4", "ROW"),
];

/// Most tables.
pub(super) const TABLES: &[&str] = &["t1", "t2", "t3"];

fn family(index: usize) -> Result<FamilyDescriptor> {
    let (name, many, encoding, compression, bloom) = FAMILIES[index];
    FamilyDescriptor::new(name.as_bytes())
        .with("VERSIONS", if many { MANY } else { 1 })?
        .with("BLOCKSIZE", 1024)?
        .with("DATA_BLOCK_ENCODING", encoding)?
        .with("COMPRESSION", compression)?
        .with("BLOOMFILTER", bloom)
}

/// Name of a change, the tables afterwards, and the change.
struct Change {
    story: String,
    after: Tables,
    table: String,
    kind: Kind,
    family: Option<FamilyDescriptor>,
    splits: Vec<Vec<u8>>,
}

impl Life {
    pub(super) fn change_schema(&mut self, kind: Kind) -> std::result::Result<(), Stop> {
        let Some(change) = self.draw_change(kind)? else {
            return Ok(());
        };
        self.told.tell(change.story.clone());
        self.told.pending = Pending::Schema(Box::new(model::Change {
            tables: change.after.clone(),
            snapshots: self.told.snapshots.clone(),
            restored: None,
        }));
        self.make_change(&change)?;
        self.done();
        self.told.tables = change.after;
        // Tables are flushed before they are disabled or lose a family; the table has the state of
        // its weak rows.
        let tables = &self.told.tables;
        self.told.weak.retain(|(table, row), _| {
            let kept = tables
                .get(table)
                .is_some_and(|table| table.rows.contains_key(row));
            kept && (kind != Kind::Disable || *table != change.table)
        });
        Ok(())
    }

    fn make_change(&self, change: &Change) -> Result<()> {
        let (engine, table) = (&self.engine, name(&change.table));
        let family = || {
            change
                .family
                .clone()
                .ok_or_else(|| Error::InvalidArgument("the workload names no family".into()))
        };
        match change.kind {
            Kind::Create => engine.create_table(
                change.after[&change.table].descriptor.clone(),
                change.splits.clone(),
            ),
            Kind::AlterFamily => engine.alter_family(&table, family()?),
            Kind::AddFamily => engine.add_family(&table, family()?),
            Kind::DropFamily => engine.drop_family(&table, &family()?.name),
            Kind::Disable => engine.disable_table(&table),
            Kind::Enable => engine.enable_table(&table),
            Kind::Truncate => engine.truncate_table(&table, change.splits.is_empty()),
            _ => engine.drop_table(&table),
        }
    }

    /// `None`: there is no table for it.
    fn draw_change(&mut self, kind: Kind) -> Result<Option<Change>> {
        let mut after = self.told.tables.clone();
        let candidates: Vec<String> = match kind {
            Kind::Create => TABLES
                .iter()
                .filter(|name| !after.contains_key(**name))
                .map(|name| (*name).to_owned())
                .collect(),
            Kind::Enable | Kind::Truncate | Kind::Drop => self.names(false),
            _ => self.names(true),
        };
        if candidates.is_empty() {
            return match kind {
                // A change that needs a disabled table gets one, if one is to spare.
                Kind::Truncate | Kind::Drop if self.names(true).len() > 1 => self.draw_change(Kind::Disable),
                _ => Ok(None),
            };
        }
        if kind == Kind::Disable && self.names(true).len() < 2 {
            return Ok(None);
        }
        let table = candidates[self.pick(candidates.len())].clone();
        let mut splits = Vec::new();
        if self.pick(2) == 0 {
            splits = vec![b"r04".to_vec(), b"r08".to_vec()];
        }
        let mut family_of_change = None;
        match kind {
            Kind::Create => {
                let descriptor = TableDescriptor::new(name(&table), vec![family(0)?, family(1)?]);
                let created = Table {
                    descriptor,
                    enabled: true,
                    rows: super::model::Rows::new(),
                };
                after.insert(table.clone(), created);
            }
            Kind::Drop => {
                after.remove(&table);
            }
            _ => {
                let changed = after.get_mut(&table).expect("a candidate is there");
                match kind {
                    Kind::Enable => changed.enabled = true,
                    Kind::Disable => changed.enabled = false,
                    Kind::Truncate => {
                        changed.enabled = true;
                        changed.rows.clear();
                    }
                    _ => {
                        let Some(altered) = self.alter(kind, changed)? else {
                            return Ok(None);
                        };
                        family_of_change = Some(altered);
                    }
                }
            }
        }
        Ok(Some(Change {
            story: format!(
                "{kind:?} {table} {:?}",
                family_of_change
                    .as_ref()
                    .map(|family| String::from_utf8_lossy(&family.name).into_owned())
            ),
            after,
            table,
            kind,
            family: family_of_change,
            splits,
        }))
    }

    /// Changes a family of the model's table; returns it as it is then, or was.
    fn alter(&mut self, kind: Kind, table: &mut Table) -> Result<Option<FamilyDescriptor>> {
        let families = &mut table.descriptor.families;
        match kind {
            Kind::AddFamily => {
                let Some(index) = (2..FAMILIES.len()).find(|index| {
                    let name = FAMILIES[*index].0.as_bytes();
                    families.iter().all(|family| family.name != name)
                }) else {
                    return Ok(None);
                };
                let added = family(index)?;
                families.push(added.clone());
                families.sort_by(|left, right| left.name.cmp(&right.name));
                Ok(Some(added))
            }
            Kind::DropFamily => {
                let Some(at) = families.iter().position(|family| family.name >= b"c".to_vec()) else {
                    return Ok(None);
                };
                let dropped = families.remove(at);
                let gone = String::from_utf8_lossy(&dropped.name).into_owned();
                for row in table.rows.values_mut() {
                    std::sync::Arc::make_mut(row).remove(|family, _, _| family == gone);
                }
                table.rows.retain(|_, row| !row.is_empty());
                Ok(Some(dropped))
            }
            _ => {
                let at = self.pick(families.len());
                let bytes = 1024 + self.pick(1024);
                let encoding = ["NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"][self.pick(5)];
                let bloom = ["NONE", "ROW", "ROWCOL"][self.pick(3)];
                let altered = families[at]
                    .clone()
                    .with("BLOCKSIZE", bytes)?
                    .with("DATA_BLOCK_ENCODING", encoding)?
                    .with("BLOOMFILTER", bloom)?;
                families[at] = altered.clone();
                Ok(Some(altered))
            }
        }
    }
}
