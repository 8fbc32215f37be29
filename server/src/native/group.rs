//! Atomic groups: all writes of ClientService that depend on stored values, or that are applied
//! together.
//!
//! | call | group |
//! | --- | --- |
//! | Mutate of an increment or append | one mutation |
//! | Mutate with a condition | one condition, one mutation of its row |
//! | Multi, atomic group | mutations of rows of one region |
//! | Multi, group with a condition | one condition, mutations of its row |
//! | MultiRowMutationService | conditions and mutations of rows of one region |
//!
//! All of them run through [`apply`]. The nonce of a group is that of its last increment or append, as
//! in HBase; groups of puts and deletes can be repeated without harm and have none.

use std::sync::Arc;

use basalt_engine::cell::{Budget, CellBatch};
use basalt_engine::engine::RegionInfo;
use basalt_engine::filter::FilterSender;
use basalt_engine::id::{Nonce, Origin};
use basalt_engine::op::RowCondition;
use basalt_engine::schema::Cut;
use basalt_idl::native::cells::Cells;
use basalt_idl::native::messages::{self, MutationProto, mutation_proto::MutationType};
use bytes::Bytes;
use smallvec::SmallVec;

use super::decode::condition::{Condition, has_regex};
use super::request;
use super::state::Connection;
use crate::limits::admission::Class;
use crate::server::Server;
use crate::service::arguments::check_cell_rights;
use crate::service::group::{self as groups, GroupDone, Step};
use crate::service::reads::FilterMemory;
use crate::service::user_code::{check_round, judge_row};
use crate::service::writes;
use crate::service::{Call, Failure};

/// A group as it arrived. All rows are in `region`.
#[expect(clippy::struct_field_names, reason = "HBase calls it a nonce group")]
pub(super) struct Group {
    pub(super) region: Arc<RegionInfo>,
    pub(super) conditions: Vec<messages::Condition>,
    pub(super) mutations: Vec<MutationProto>,
    /// The cells of the mutations that are in the call's cell block.
    pub(super) cells: Bytes,
    pub(super) nonce_group: Option<u64>,
}

/// Applies a group and waits until it is durable. The outcome has one row of new cells for each
/// increment and append that returns results.
pub(super) async fn apply(
    connection: &Connection,
    call: &mut Call<'_>,
    mut group: Group,
) -> Result<GroupDone, Failure> {
    let server = &connection.server;
    let memory = Arc::clone(server.admission().memory());
    let cells = CellBatch::charged_to(memory as Arc<dyn Budget>);
    for mutation in &group.mutations {
        check_cell_rights(server.security(), request::attribute_names(mutation))?;
    }
    check_rows(&group)?;
    group.mutations.retain(|mutation| !is_empty_put(mutation));
    if group.mutations.is_empty() && group.conditions.is_empty() {
        return Ok(GroupDone {
            processed: true,
            cells,
        });
    }
    let nonce = nonce(&group);
    // As in HBase: of mutations that are applied together, the first one's clusters are logged.
    let origin = group.mutations.first().map(request::origin).transpose()?;
    let origin = origin.unwrap_or_default();
    let sender = request::sender(server, call.caller(), &group.region.table);
    let conditions = Conditions::decode(server, &group.conditions, sender).await?;
    if conditions
        .all
        .iter()
        .any(|condition| condition.user_code().is_some())
    {
        return Box::pin(apply_judged(connection, call, (group, nonce, origin), conditions)).await;
    }
    let arguments = (group, conditions);
    writes::group(server, call, cells, arguments, move |(group, conditions)| {
        let tests = conditions.all.iter().map(Condition::for_engine).collect();
        for_engine(group, tests, nonce, &origin)
    })
    .await
}

/// The group in the engine's form.
fn for_engine<'a>(
    group: &'a Group,
    conditions: SmallVec<[RowCondition<'a>; 1]>,
    nonce: Option<Nonce>,
    origin: &Origin,
) -> Result<groups::Group<'a>, Failure> {
    let mut block = Cells::new(&group.cells);
    let steps = group.mutations.iter().map(|mutation| step(mutation, &mut block));
    Ok(groups::Group {
        table: group.region.table.clone(),
        conditions,
        steps: steps.collect::<Result<_, Failure>>()?,
        nonce,
        origin: origin.clone(),
    })
}

/// Applies a group whose condition user code judges: before the row is locked, and again if the row has
/// changed since.
async fn apply_judged(
    connection: &Connection,
    call: &mut Call<'_>,
    (group, nonce, origin): (Group, Option<Nonce>, Origin),
    conditions: Conditions,
) -> Result<GroupDone, Failure> {
    let server = &connection.server;
    let [condition] = &conditions.all[..] else {
        return Err(Failure::do_not_retry(
            "a group of writes has several conditions, and one of them is of a user's class: send it alone",
        ));
    };
    let Some((filter, row, time_range)) = condition.user_code() else {
        return Err(Failure::do_not_retry("the condition is not of a user's class"));
    };
    let tests = std::iter::once(condition.for_engine()).collect();
    let mut none = CellBatch::default();
    let checked = for_engine(&group, tests, nonce, &origin)?;
    writes::check_group(server, call, checked, &mut none)?;
    let group = Arc::new(group);
    let mut round = 0;
    loop {
        let table = group.region.table.clone();
        check_round(round, &table)?;
        let tried = judge_row(server, table, row.clone(), time_range, filter.clone()).await?;
        let passed = tried.passed();
        let memory = Arc::clone(server.admission().memory());
        let cells = CellBatch::charged_to(memory as Arc<dyn Budget>);
        let arguments = (Arc::clone(&group), tried, row.clone());
        let origin = origin.clone();
        let done = writes::group(server, call, cells, arguments, move |(group, tried, row)| {
            for_engine(
                group,
                std::iter::once(tried.condition(row)).collect(),
                nonce,
                &origin,
            )
        })
        .await?;
        if done.processed || !passed {
            return Ok(done);
        }
        round += 1;
    }
}

/// Refuses rows that are not in the region.
fn check_rows(group: &Group) -> Result<(), Failure> {
    let conditions = group.conditions.iter().map(|condition| Ok(&condition.row));
    let rows = group.mutations.iter().map(request::row).chain(conditions);
    for row in rows {
        let row = row?;
        if !group.region.contains(row) {
            return Err(Failure::wrong_region(format!(
                "row {} of an atomic group is not in region {}",
                Cut(row),
                group.region.encoded_name
            )));
        }
    }
    Ok(())
}

/// Refuses mutations of other rows than the condition's. The text is HBase's.
pub(super) fn check_same_row(
    condition: &messages::Condition,
    mutations: &[MutationProto],
) -> Result<(), Failure> {
    for mutation in mutations {
        if request::row(mutation)? != &condition.row {
            return Err(Failure::do_not_retry("Action's getRow must match"));
        }
    }
    Ok(())
}

/// A put without cells is accepted and does nothing, as in HBase.
fn is_empty_put(mutation: &MutationProto) -> bool {
    mutation.mutate_type() == MutationType::Put
        && mutation.associated_cell_count.unwrap_or_default() == 0
        && mutation
            .column_value
            .iter()
            .all(|column| column.qualifier_value.is_empty())
}

fn nonce(group: &Group) -> Option<Nonce> {
    let last = group
        .mutations
        .iter()
        .rfind(|mutation| request::is_update(mutation))?;
    // 0 is HBase's NO_NONCE.
    let number = last.nonce.filter(|number| *number != 0)?;
    Some(Nonce {
        group: group.nonce_group.unwrap_or_default(),
        number,
    })
}

/// The conditions of a group, and the reservation for their filters and regular expressions: a short
/// one may need much memory, and a group may have many.
struct Conditions {
    all: Vec<Condition>,
    _memory: FilterMemory,
}

impl Conditions {
    async fn decode(
        server: &Arc<Server>,
        wanted: &[messages::Condition],
        sender: Option<FilterSender>,
    ) -> Result<Self, Failure> {
        let (mut all, mut memory) = (Vec::with_capacity(wanted.len()), FilterMemory::default());
        for wanted in wanted {
            let sender = sender.clone();
            let convert = move |wanted: &messages::Condition| Condition::decode_of(wanted, sender.as_ref());
            let decoded = request::converted(server, Class::User, wanted, has_regex(wanted), convert).await?;
            memory.add(server, decoded.memory_bytes())?;
            all.push(decoded);
        }
        Ok(Self { all, _memory: memory })
    }
}

/// Converts a mutation; its cells are the next ones of the block.
fn step<'a>(mutation: &'a MutationProto, block: &mut Cells<'a>) -> Result<Step<'a>, Failure> {
    if !request::is_update(mutation) {
        return Ok(Step::Write(request::write(mutation, block)?));
    }
    Ok(Step::Update {
        row: request::row(mutation)?,
        change: request::update(mutation, block)?,
        ttl_ms: request::ttl(mutation)?,
        time_range: request::time_range(mutation.time_range.as_deref())?,
        durability: request::durability(mutation),
        returns: request::returns_results(mutation),
    })
}

#[cfg(test)]
mod tests {
    use basalt_engine::id::RegionId;
    use basalt_engine::schema::TableName;

    use super::*;

    fn mutation(mutate_type: MutationType, nonce: Option<u64>) -> MutationProto {
        MutationProto {
            mutate_type: Some(mutate_type as i32),
            nonce,
            ..MutationProto::default()
        }
    }

    /// Puts carry no nonce, 0 is none, and a group has that of its last update.
    #[test]
    fn the_nonce_of_a_group_is_that_of_its_last_update() {
        let of = |mutations: &[MutationProto]| {
            let region = RegionInfo {
                id: RegionId(1),
                table: TableName::parse(b"t").unwrap(),
                start: Vec::new(),
                end: Vec::new(),
                created_ms: 0,
                encoded_name: String::new(),
            };
            let group = Group {
                region: Arc::new(region),
                conditions: Vec::new(),
                mutations: mutations.to_vec(),
                cells: Bytes::new(),
                nonce_group: Some(7),
            };
            nonce(&group).map(|nonce| (nonce.group, nonce.number))
        };
        let put = mutation(MutationType::Put, Some(4));
        let increment = |nonce| mutation(MutationType::Increment, nonce);
        assert_eq!(of(std::slice::from_ref(&put)), None);
        assert_eq!(of(&[increment(Some(0))]), None);
        assert_eq!(of(&[increment(None)]), None);
        assert_eq!(of(&[increment(Some(3)), put.clone()]), Some((7, 3)));
        let append = mutation(MutationType::Append, Some(5));
        assert_eq!(of(&[increment(Some(3)), append]), Some((7, 5)));
    }
}
