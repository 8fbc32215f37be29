//! A batch: edits of the log that go to one peer, in the order of the log.
//!
//! Cells are judged when they are read: the scope of their family and the peer's filter are those of now, and
//! edits of a table that is gone here are left out. Reading the same place again judges them again.

use std::collections::HashMap;
use std::sync::Arc;

use basalt_client::native::{Shipment, ShippedEdit, put_cell};
use basalt_engine::engine::{LogTail, TailedEdit};
use basalt_engine::id::{RegionId, SeqId};
use basalt_engine::schema::{FamilyDescriptor, TableName};
use basalt_engine::{Engine, Error};

use crate::server::copies::peers::{PeerConfig, Unsent};

/// An edit with cells for the peer.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) table: Arc<str>,
    pub(super) region: RegionId,
    /// The sequence id of its first row.
    pub(super) sequence: u64,
    pub(super) written_ms: u64,
    /// The clusters that it has passed before this one.
    pub(super) clusters: Vec<[u8; 16]>,
    families: Vec<Vec<u8>>,
    pub(super) cells: u32,
    pub(super) block: Vec<u8>,
    /// The first row.
    pub(super) row: Vec<u8>,
}

/// Edits that were read at once.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) edits: Vec<Edit>,
    /// Where the log goes on behind it.
    pub(super) next: SeqId,
    /// Edits that were read.
    pub(super) read: u64,
    /// Edits that were left out, by reason.
    pub(super) unsent: HashMap<&'static str, (Unsent, u64)>,
}

/// The families of a table that go to the peer; `None`: the table is gone.
type Wanted = Option<Vec<Vec<u8>>>;

/// Reads the next edits for a peer. Blocks.
pub(super) fn read(
    engine: &Engine,
    tail: &mut LogTail,
    config: &PeerConfig,
    bytes_max: u64,
) -> Result<Batch, Error> {
    let mut reading = Reading {
        engine,
        config,
        tables: HashMap::new(),
        edits: Vec::new(),
        read: 0,
        unsent: HashMap::new(),
    };
    tail.read(bytes_max, &mut |edit| {
        reading.take(&edit);
        Ok(())
    })?;
    Ok(Batch {
        edits: reading.edits,
        next: tail.position(),
        read: reading.read,
        unsent: reading.unsent,
    })
}

struct Reading<'a> {
    engine: &'a Engine,
    config: &'a PeerConfig,
    tables: HashMap<Arc<TableName>, (Arc<str>, Wanted)>,
    edits: Vec<Edit>,
    read: u64,
    unsent: HashMap<&'static str, (Unsent, u64)>,
}

impl Reading<'_> {
    fn take(&mut self, tailed: &TailedEdit<'_>) {
        self.read += 1;
        let unsent = match self.judge(tailed) {
            Ok(edit) => {
                self.edits.push(edit);
                return;
            }
            Err(unsent) => unsent,
        };
        self.unsent.entry(unsent.text()).or_insert((unsent, 0)).1 += 1;
    }

    fn judge(&mut self, tailed: &TailedEdit<'_>) -> Result<Edit, Unsent> {
        let logged = &tailed.edit;
        let sequence = logged.first_seq().0;
        if self.config.skipped() == Some(sequence) {
            return Err(Unsent::GivenUp);
        }
        let table = tailed.table.as_ref().ok_or(Unsent::Dropped)?;
        let (engine, config) = (self.engine, self.config);
        let (name, wanted) = self
            .tables
            .entry(Arc::clone(table))
            .or_insert_with(|| (table.to_string().into(), wanted(engine, config, table)));
        let wanted = wanted.as_ref().ok_or(Unsent::Dropped)?;
        let mut edit = Edit {
            table: Arc::clone(name),
            region: logged.region(),
            sequence,
            written_ms: logged.write_time_ms().unwrap_or_default(),
            clusters: logged.origin().clusters().map(|cluster| cluster.0).collect(),
            families: Vec::new(),
            cells: 0,
            block: Vec::new(),
            row: Vec::new(),
        };
        for (_, cell) in logged.cells() {
            let family = cell.key.family();
            if !wanted.iter().any(|wanted| wanted == family) {
                continue;
            }
            if edit.cells == 0 {
                edit.row = cell.key.row().to_vec();
            }
            if !edit.families.iter().any(|known| known == family) {
                edit.families.push(family.to_vec());
            }
            put_cell(cell.key.bytes(), cell.value, cell.tags, &mut edit.block);
            edit.cells += 1;
        }
        if edit.cells == 0 {
            return Err(Unsent::Filtered);
        }
        Ok(edit)
    }
}

fn wanted(engine: &Engine, config: &PeerConfig, table: &TableName) -> Wanted {
    if table.is_system() {
        return Some(Vec::new());
    }
    let (descriptor, _) = engine.describe_table(table).ok()?;
    let is_global = |family: &&FamilyDescriptor| {
        let scope = family.attributes.get(b"REPLICATION_SCOPE".as_slice());
        scope.is_some_and(|scope| scope == b"1") && config.wants(table, &family.name)
    };
    let families = descriptor.families.iter().filter(is_global);
    Some(families.map(|family| family.name.clone()).collect())
}

impl Edit {
    /// Adds it to a shipment, as one that has passed this cluster, too.
    pub(super) fn add_to(&self, shipment: &mut Shipment, own_id: [u8; 16]) {
        let mut clusters = self.clusters.clone();
        if !clusters.contains(&own_id) {
            clusters.push(own_id);
        }
        let families: Vec<&[u8]> = self.families.iter().map(Vec::as_slice).collect();
        shipment.push(&ShippedEdit {
            table: &self.table,
            region: format!("{:032x}", self.region.0).as_bytes(),
            sequence: self.sequence,
            write_time_ms: self.written_ms,
            clusters: &clusters,
            families: &families,
            cells: self.cells,
            block: &self.block,
        });
    }
}

#[cfg(test)]
mod tests {
    use basalt_engine::schema::TableDescriptor;
    use basalt_engine::{Put, engine::LogTail};

    use super::*;
    use crate::config::Config;
    use basalt_engine::fs::sim::{SimFs, SimOptions};

    fn table(name: &str, scopes: &[(&str, &str)]) -> TableDescriptor {
        let families = scopes.iter().map(|(name, scope)| {
            let mut family = FamilyDescriptor::new(name.as_bytes());
            let key = b"REPLICATION_SCOPE".to_vec();
            family.attributes.insert(key, scope.as_bytes().to_vec());
            family
        });
        TableDescriptor::new(TableName::parse(name.as_bytes()).unwrap(), families.collect())
    }

    fn put(engine: &std::sync::Arc<Engine>, table: &str, row: &str) {
        let table = engine.table(table).unwrap();
        table
            .put(Put::new(row).cell("f", "q", "1").cell("g", "q", "2"))
            .unwrap();
    }

    fn shown(batch: &Batch) -> Vec<String> {
        let edits = batch.edits.iter();
        edits
            .map(|edit| {
                format!(
                    "{} {} {}",
                    edit.table,
                    String::from_utf8_lossy(&edit.row),
                    edit.cells
                )
            })
            .collect()
    }

    /// Goal: a peer gets the cells of families with a global scope that its filter lets through, in the order
    /// of the log, also of regions that are gone; tables that are gone are skipped and counted.
    #[test]
    fn edits_are_judged_by_scope_filter_and_what_is_there() {
        let engine = crate::rig::engine_on(&SimFs::new(1, SimOptions::default()), &Config::default());
        let scopes = [("f", "1"), ("g", "0")];
        for name in ["t", "u", "gone"] {
            engine.create_table(table(name, &scopes), Vec::new()).unwrap();
        }
        let start = engine.add_log_reader("r", b"").unwrap();
        put(&engine, "t", "a");
        put(&engine, "u", "b");
        put(&engine, "gone", "c");
        let name = TableName::parse(b"t").unwrap();
        let region = engine.regions(&name).unwrap().remove(0);
        engine.split_region(region.id, Some(b"m")).unwrap();
        put(&engine, "t", "z");
        let gone = TableName::parse(b"gone").unwrap();
        engine.disable_table(&gone).unwrap();
        engine.drop_table(&gone).unwrap();

        let read_as = |config: &PeerConfig| {
            let mut tail: LogTail = engine.read_log(start).unwrap();
            read(&engine, &mut tail, config, 1 << 20).unwrap()
        };
        let mut config = PeerConfig {
            replicate_all: true,
            ..PeerConfig::default()
        };
        let all = read_as(&config);
        assert_eq!(shown(&all), ["t a 1", "u b 1", "t z 1"]);
        assert_eq!(all.unsent.get("dropped_table"), Some(&(Unsent::Dropped, 1)));

        config.excluded_table_families.insert("u".to_owned(), Vec::new());
        let some = read_as(&config);
        assert_eq!(shown(&some), ["t a 1", "t z 1"]);
        assert_eq!(some.unsent.get("filtered"), Some(&(Unsent::Filtered, 1)));
    }
}
