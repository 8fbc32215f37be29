//! Changes of schema: acknowledged ones are there after a kill, and others are there as a whole or
//! not at all.
//!
//! Each client has one table and knows its expected state: it creates it, writes into it, adds and
//! drops a family, disables, enables, truncates and drops it. For the call that a kill has
//! interrupted it knows both outcomes, and the next look shows which one it was.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use basalt_client::{Client, Error, FamilySchema, Get, Put};
use bytes::Bytes;
use rand::RngExt;
use rand::rngs::SmallRng;

use super::Problem;
use super::calls::{Ended, ended};
use super::life::{BREATH, Life, Tasks, small_table};
use super::report::Figures;

pub(super) const NAME: &str = "schemas";
const CLIENTS: usize = 2;
/// The family that every table has, and the one that comes and goes.
const ALWAYS: &str = "f";
const SOMETIMES: &str = "g";

/// A table, as far as these changes go.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    enabled: bool,
    /// By family: the value that the only row has in it.
    values: BTreeMap<String, Option<Bytes>>,
}

/// A table, or that there is none.
type Shape = Option<Table>;

/// The knowledge of one client.
#[derive(Clone, Debug, Default)]
struct Known {
    table: Shape,
    /// Its state if the interrupted call was carried out; `None` if no call was interrupted.
    perhaps: Option<Shape>,
}

#[derive(Debug, Default)]
pub(super) struct Schemas {
    known: Arc<[Mutex<Known>; CLIENTS]>,
    /// Changes that were acknowledged since the last look; values are numbered by all changes so far.
    changes: Arc<AtomicU64>,
    values: Arc<AtomicU64>,
}

/// One change.
#[derive(Clone, Debug)]
enum Change {
    Create,
    Drop,
    Enable,
    Disable,
    Truncate,
    AddFamily,
    DropFamily,
    Write(Bytes),
}

impl Change {
    /// One that the table can take.
    fn of(table: Option<&Table>, random: &mut SmallRng, values: &AtomicU64) -> Self {
        let Some(table) = table else { return Self::Create };
        if !table.enabled {
            return match random.random_range(0..4) {
                0 => Self::Drop,
                1 => Self::Truncate,
                _ => Self::Enable,
            };
        }
        match random.random_range(0..4) {
            0 => Self::Disable,
            1 if table.values.contains_key(SOMETIMES) => Self::DropFamily,
            1 => Self::AddFamily,
            _ => Self::Write(format!("value-{}", values.fetch_add(1, Ordering::Relaxed)).into()),
        }
    }

    /// State of the table afterwards.
    fn after(&self, table: Option<&Table>) -> Shape {
        let mut after = table.cloned().unwrap_or_else(|| Table {
            enabled: true,
            values: BTreeMap::from([(ALWAYS.to_owned(), None)]),
        });
        match self {
            Self::Create => {}
            Self::Drop => return None,
            Self::Enable => after.enabled = true,
            Self::Disable => after.enabled = false,
            Self::Truncate => {
                after.enabled = true;
                after.values.values_mut().for_each(|value| *value = None);
            }
            Self::AddFamily => drop(after.values.insert(SOMETIMES.to_owned(), None)),
            Self::DropFamily => drop(after.values.remove(SOMETIMES)),
            Self::Write(written) => after
                .values
                .values_mut()
                .for_each(|value| *value = Some(written.clone())),
        }
        Some(after)
    }

    async fn make(
        &self,
        client: &Client,
        name: &str,
        before: Option<&Table>,
        random: &mut SmallRng,
    ) -> Result<(), Error> {
        match self {
            Self::Create => {
                let schema = small_table(name, &[ALWAYS], random);
                let splits = if random.random_bool(0.5) {
                    vec![b"m".to_vec(), b"t".to_vec()]
                } else {
                    Vec::new()
                };
                client.create_table_split(schema, splits).await
            }
            Self::Drop => client.drop_table(name).await,
            Self::Enable => client.enable_table(name).await,
            Self::Disable => client.disable_table(name).await,
            Self::Truncate => client.truncate_table(name, random.random_bool(0.5)).await,
            Self::AddFamily => client.add_family(name, FamilySchema::new(SOMETIMES)).await,
            Self::DropFamily => client.drop_family(name, SOMETIMES).await,
            Self::Write(value) => {
                let families = before.into_iter().flat_map(|table| table.values.keys());
                let put = families.fold(Put::new("r"), |put, family| put.cell(family, "q", value));
                client.table(name)?.put(put).await
            }
        }
    }
}

fn table_name(number: usize) -> String {
    format!("{NAME}{number}")
}

/// State of the table. Values of a disabled table cannot be read: `None` for all of them.
async fn observe(client: &Client, name: &str) -> Result<Shape, Error> {
    if !client.table_exists(name).await? {
        return Ok(None);
    }
    let schema = client.describe_table(name).await?;
    let families = schema.families().iter();
    let mut values: BTreeMap<String, Option<Bytes>> = families
        .map(|family| (String::from_utf8_lossy(&family.name).into_owned(), None))
        .collect();
    let enabled = client.is_table_enabled(name).await?;
    if enabled && let Some(row) = client.table(name)?.get(Get::new("r")).await? {
        for cell in row.cells {
            values.insert(
                String::from_utf8_lossy(&cell.family).into_owned(),
                Some(cell.value),
            );
        }
    }
    Ok(Some(Table { enabled, values }))
}

/// Whether the observed state matches the known one.
fn fits(seen: Option<&Table>, known: Option<&Table>) -> bool {
    match (seen, known) {
        (Some(seen), Some(known)) if !seen.enabled => {
            !known.enabled && seen.values.keys().eq(known.values.keys())
        }
        _ => seen == known,
    }
}

impl Schemas {
    pub(super) fn start(&self, life: &Arc<Life>, tasks: &mut Tasks) {
        for number in 0..CLIENTS {
            let known = Arc::clone(&self.known);
            let (changes, values) = (Arc::clone(&self.changes), Arc::clone(&self.values));
            tasks.spawn(change(Arc::clone(life), number, known, changes, values));
        }
    }

    pub(super) async fn look(&self, client: &Client, figures: &mut Figures) -> Result<(), Problem> {
        for (number, known) in self.known.iter().enumerate() {
            let name = table_name(number);
            let seen = observe(client, &name).await;
            let seen = seen.map_err(|error| Problem::new(NAME, format!("{name} cannot be read: {error}")))?;
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let candidates = [Some(known.table.clone()), known.perhaps.clone()];
            let Some(right) = candidates
                .into_iter()
                .flatten()
                .find(|candidate| fits(seen.as_ref(), candidate.as_ref()))
            else {
                let what = format!("{name} is {seen:?}, and must be one of {known:?}");
                return Err(Problem::new(NAME, what));
            };
            *known = Known {
                table: right,
                perhaps: None,
            };
        }
        figures.operations += self.changes.swap(0, Ordering::Relaxed);
        Ok(())
    }
}

async fn change(
    life: Arc<Life>,
    number: usize,
    known: Arc<[Mutex<Known>; CLIENTS]>,
    changes: Arc<AtomicU64>,
    values: Arc<AtomicU64>,
) {
    let client = life.client(number as u64);
    let mut random = life.random(1000 + number as u64);
    let name = table_name(number);
    let known = &known[number];
    while !life.stopped() {
        let Known { table, perhaps } = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // No look has followed an earlier kill: the state of the table is unknown.
        if perhaps.is_some() {
            return;
        }
        let change = Change::of(table.as_ref(), &mut random, &values);
        let after = change.after(table.as_ref());
        known.lock().unwrap_or_else(PoisonError::into_inner).perhaps = Some(after.clone());
        let made = change.make(&client, &name, table.as_ref(), &mut random).await;
        let table = match ended(NAME, &life.findings, made) {
            Ended::Done(()) => {
                changes.fetch_add(1, Ordering::Relaxed);
                after
            }
            Ended::Refused => table,
            Ended::Gone => return,
        };
        *known.lock().unwrap_or_else(PoisonError::into_inner) = Known { table, perhaps: None };
        tokio::time::sleep(BREATH).await;
    }
}
