//! One call of the host about a batch of rows.

use std::sync::Arc;
use std::time::Instant;

use basalt_engine::Engine;
use basalt_engine::cell::{Budget, Cell, CellBatch, Key, OnShortage};
use basalt_engine::filter::UserFilter;
use basalt_engine::id::SeqId;
use basalt_engine::op::{Columns, ReadSpec};
use basalt_engine::schema::TableName;
use basalt_host::filter::{self, Family, Kept, Opening, Verdict};
use basalt_host::frame::Kind;
use basalt_host::{Error, Purpose, Seat, Writer};

use super::{Failure, failure, user_code};
use crate::server::Server;

/// A batch for rows that are not results yet.
pub(super) fn scratch(server: &Server) -> CellBatch {
    let memory = Arc::clone(server.admission().memory());
    let mut batch = CellBatch::charged_to(memory as Arc<dyn Budget>);
    batch.set_on_shortage(OnShortage::Wait);
    batch
}

/// The filter with what the host applies after it.
pub(super) fn opening(
    engine: &Engine,
    table: &TableName,
    spec: &ReadSpec,
    filter: &UserFilter,
    reversed: bool,
) -> Result<Opening, Failure> {
    let (descriptor, _) = engine.describe_table(table)?;
    let selection = |name: &[u8]| spec.families.iter().find(|selection| selection.family == name);
    let families = descriptor
        .families
        .iter()
        .filter(|family| spec.families.is_empty() || selection(&family.name).is_some())
        .map(|family| Family {
            name: family.name.clone(),
            versions: if spec.raw { i32::MAX } else { family.max_versions },
            last_column: match selection(&family.name).map(|selection| &selection.columns) {
                Some(Columns::Only(columns)) => columns.last().cloned(),
                Some(Columns::All) | None => None,
            },
        });
    Ok(Opening {
        filter: filter.message.to_vec(),
        reversed,
        versions: spec.max_versions,
        limit: spec
            .family_limit
            .map(|limit| i32::try_from(limit).unwrap_or(i32::MAX)),
        offset: i32::try_from(spec.family_offset).unwrap_or(i32::MAX),
        families: families.collect(),
    })
}

/// A question about rows.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) table: &'a TableName,
    pub(super) filter: &'a UserFilter,
    pub(super) rows: &'a CellBatch,
}

/// The answer besides the rows that passed.
pub(super) struct Outcome {
    pub(super) judges_rows: bool,
    pub(super) is_ended: bool,
    pub(super) jump: Option<Vec<u8>>,
    /// Rows that passed.
    pub(super) results: usize,
}

/// How the filter is opened and closed.
pub(super) struct Handling<'a> {
    pub(super) handle: u64,
    /// `None` if it is open.
    pub(super) opening: Option<&'a Opening>,
    pub(super) closes: bool,
}

/// Enters the host for a call of this class.
pub(super) fn enter<'s>(server: &'s Server, class: &str, table: &TableName) -> Result<Seat<'s>, Failure> {
    let user_code = user_code(server, class)?;
    let began = Instant::now();
    let purpose = Purpose {
        class,
        table: &table.to_string(),
    };
    user_code.host().enter(purpose).map_err(|error| {
        user_code.count(class, began.elapsed(), Some(&error));
        failure(&error, class, table)
    })
}

/// Asks about rows, and appends those that passed to `out`.
pub(super) fn ask(
    server: &Server,
    seat: &mut Seat<'_>,
    asked: &Asked<'_>,
    handling: &Handling<'_>,
    out: &mut CellBatch,
) -> Result<Outcome, Failure> {
    let class = &*asked.filter.class;
    let user_code = user_code(server, class)?;
    let mut body = Writer::new();
    let loads = handling.opening.map(|_| user_code.loads(&asked.filter.sender));
    let opening = handling.opening.zip(loads.as_ref());
    filter::begin(
        &mut body,
        &seat.take_closed(),
        handling.handle,
        opening,
        handling.closes,
    );
    write_rows(asked.rows, &mut body);
    let began = Instant::now();
    let answer = seat.exchange(Kind::Filter, body.as_slice());
    let keys: Vec<_> = asked.rows.rows().map(|row| (row.key(), row.len())).collect();
    let verdict = answer
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|body| Verdict::parse(body, &keys).map_err(|error| Error::Nonsense(error.to_string())));
    let loaded = match &verdict {
        Ok(verdict) => &verdict.loaded[..],
        Err(Error::Thrown { loaded, .. }) => loaded,
        Err(_) => &[],
    };
    user_code.note_loads(server.security(), &asked.filter.sender, asked.table, loaded);
    user_code.count(class, began.elapsed(), verdict.as_ref().err());
    let verdict = verdict.map_err(|error| failure(&error, class, asked.table))?;
    keep(asked, &verdict, out)?;
    Ok(Outcome {
        judges_rows: verdict.judges_rows,
        is_ended: verdict.ended,
        jump: verdict.jump.map(<[u8]>::to_vec),
        results: verdict.results.len(),
    })
}

/// Asks about rows with a filter that is open for this call only.
pub(super) fn once(
    server: &Server,
    asked: &Asked<'_>,
    opening: &Opening,
    out: &mut CellBatch,
) -> Result<(), Failure> {
    let mut seat = enter(server, &asked.filter.class, asked.table)?;
    let handling = Handling {
        handle: user_code(server, &asked.filter.class)?.host().new_handle(),
        opening: Some(opening),
        closes: true,
    };
    ask(server, &mut seat, asked, &handling, out).map(drop)
}

fn write_rows(rows: &CellBatch, body: &mut Writer) {
    body.count(rows.row_count());
    for row in rows.rows() {
        body.count(row.len());
        for cell in row.cells() {
            let (key, value) = (cell.key.bytes(), cell.value);
            body.count(8 + key.len() + value.len())
                .count(key.len())
                .count(value.len())
                .raw(key)
                .raw(value);
        }
    }
}

/// Appends the cells that the verdict keeps.
fn keep(asked: &Asked<'_>, verdict: &Verdict<'_>, out: &mut CellBatch) -> Result<(), Failure> {
    let nonsense = || {
        let error = Error::Nonsense("a new cell has no valid key".into());
        failure(&error, &asked.filter.class, asked.table)
    };
    let firsts: Vec<usize> = asked
        .rows
        .rows()
        .scan(0, |next, row| {
            let first = *next;
            *next += row.len();
            Some(first)
        })
        .collect();
    for (row, cells) in &verdict.results {
        for kept in cells {
            let added = match kept {
                Kept::Same(index) => out.add(asked.rows.cell(firsts[*row] + index)),
                Kept::New(new) => out.add(Cell {
                    key: Key::parse(new.key).ok_or_else(nonsense)?,
                    value: new.value,
                    tags: &[],
                    seq: SeqId::ZERO,
                }),
            };
            if let Err(error) = added {
                out.abandon_row();
                return Err(error.into());
            }
        }
        out.end_row(false);
    }
    Ok(())
}
