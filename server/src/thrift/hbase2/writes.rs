//! Thrift 2's puts, deletes, checks, counters and appends.

use std::pin::pin;

use basalt_engine::cell::CellBatch;
use basalt_engine::op::{Check, ColumnAppend, ColumnIncrement, CompareOp, RowUpdate};
use basalt_idl::thrift2::{self, WriteHandlers, args};
use bytes::Bytes;

use crate::service::group::Group;
use crate::service::{Failure, writes};
use crate::thrift::from_thrift::{
    self, Puts, VISIBILITY, check_cell_rights, names, names_of_put, returns_results,
};
use crate::thrift::handlers::{Context, Result};

#[expect(refining_impl_trait, reason = "handlers name the type of their answer")]
impl WriteHandlers for Context<'_> {
    async fn put(&mut self, args: args::Put) -> Result<()> {
        let table = from_thrift::table(Some(&args.table))?;
        check_cell_rights(self.server.security(), names_of_put(&args.tput))?;
        pin!(writes::apply(
            self.server,
            &mut self.call,
            table,
            args.tput,
            |put| { Ok(vec![from_thrift::put(put)?]) }
        ))
        .await
    }

    /// Applies puts in any form; [`Context::put_usual`] applies most.
    async fn putMultiple(&mut self, args: args::PutMultiple) -> Result<()> {
        let table = from_thrift::table(Some(&args.table))?;
        check_cell_rights(self.server.security(), args.tputs.iter().flat_map(names_of_put))?;
        pin!(writes::apply(
            self.server,
            &mut self.call,
            table,
            args.tputs,
            |puts| { from_thrift::all(puts, from_thrift::put) }
        ))
        .await
    }

    async fn deleteSingle(&mut self, args: args::DeleteSingle) -> Result<()> {
        let table = from_thrift::table(Some(&args.table))?;
        writes::apply(self.server, &mut self.call, table, args.tdelete, |delete| {
            Ok(vec![from_thrift::delete(delete)?])
        })
        .await
    }

    async fn deleteMultiple(&mut self, args: args::DeleteMultiple) -> Result<Vec<thrift2::TDelete>> {
        let table = from_thrift::table(Some(&args.table))?;
        writes::apply(self.server, &mut self.call, table, args.tdeletes, |deletes| {
            from_thrift::all(deletes, from_thrift::delete)
        })
        .await?;
        Ok(Vec::new())
    }

    async fn mutateRow(&mut self, args: args::MutateRow) -> Result<()> {
        let table = from_thrift::table(Some(&args.table))?;
        let table_default = writes::default_durability(self.server, &table);
        check_cell_rights(self.server.security(), names_of_row(&args.trow_mutations))?;
        writes::apply(
            self.server,
            &mut self.call,
            table,
            args.trow_mutations,
            move |mutations| Ok(vec![from_thrift::row_mutations(mutations, table_default)?]),
        )
        .await
    }

    async fn checkAndPut(&mut self, args: args::CheckAndPut) -> Result<bool> {
        check_cell_rights(self.server.security(), names_of_put(&args.tput))?;
        let done = writes::group(self.server, &mut self.call, CellBatch::new(), args, |args| {
            let check = equal(&args.family, &args.qualifier, args.value.as_ref());
            Group::of_check(&args.table, &args.row, &check, from_thrift::put(&args.tput)?)
        });
        Ok(done.await?.processed)
    }

    async fn checkAndDelete(&mut self, args: args::CheckAndDelete) -> Result<bool> {
        let done = writes::group(self.server, &mut self.call, CellBatch::new(), args, |args| {
            let check = equal(&args.family, &args.qualifier, args.value.as_ref());
            Group::of_check(
                &args.table,
                &args.row,
                &check,
                from_thrift::delete(&args.tdelete)?,
            )
        });
        Ok(done.await?.processed)
    }

    async fn checkAndMutate(&mut self, args: args::CheckAndMutate) -> Result<bool> {
        let table_default = writes::default_durability(self.server, &from_thrift::table(Some(&args.table))?);
        check_cell_rights(self.server.security(), names_of_row(&args.row_mutations))?;
        let done = writes::group(self.server, &mut self.call, CellBatch::new(), args, move |args| {
            let check = Check {
                op: compare_op(args.compare_operator)?,
                ..equal(&args.family, &args.qualifier, args.value.as_ref())
            };
            let mutations = from_thrift::row_mutations(&args.row_mutations, table_default)?;
            Group::of_check(&args.table, &args.row, &check, mutations)
        });
        Ok(done.await?.processed)
    }

    async fn increment(&mut self, args: args::Increment) -> Result<CellBatch> {
        let returns = returns_results(args.tincrement.return_results, &args.tincrement.attributes)?;
        let labels = args.tincrement.cell_visibility.as_ref().map(|_| VISIBILITY);
        check_cell_rights(
            self.server.security(),
            names(&args.tincrement.attributes).chain(labels),
        )?;
        let cells = self.call.take_batch();
        let done = pin!(writes::group(self.server, &mut self.call, cells, args, |args| {
            let increment = &args.tincrement;
            let columns = increment.columns.iter().map(|column| ColumnIncrement {
                family: &column.family,
                qualifier: &column.qualifier,
                amount: column.amount,
                timestamp: None,
            });
            let change = RowUpdate::Increment(columns.collect());
            let ttl_ms = from_thrift::ttl(&increment.attributes)?;
            let durability = from_thrift::durability(increment.durability);
            Group::of_update(
                Some(&args.table),
                Some(&increment.row),
                change,
                ttl_ms,
                durability,
            )
        }));
        Ok(wanted(done.await?.cells, returns))
    }

    async fn append(&mut self, args: args::Append) -> Result<CellBatch> {
        let returns = returns_results(args.tappend.return_results, &args.tappend.attributes)?;
        let labels = args.tappend.cell_visibility.as_ref().map(|_| VISIBILITY);
        check_cell_rights(
            self.server.security(),
            names(&args.tappend.attributes).chain(labels),
        )?;
        let cells = self.call.take_batch();
        let done = writes::group(self.server, &mut self.call, cells, args, |args| {
            let append = &args.tappend;
            let columns = append.columns.iter().map(|column| ColumnAppend {
                family: &column.family,
                qualifier: &column.qualifier,
                value: &column.value,
                timestamp: None,
            });
            let change = RowUpdate::Append(columns.collect());
            let ttl_ms = from_thrift::ttl(&append.attributes)?;
            let durability = from_thrift::durability(append.durability);
            Group::of_update(Some(&args.table), Some(&append.row), change, ttl_ms, durability)
        });
        Ok(wanted(done.await?.cells, returns))
    }
}

impl Context<'_> {
    /// Applies puts in the usual form.
    pub(in crate::thrift) async fn put_usual(&mut self, puts: Puts) -> Result<()> {
        let table = from_thrift::table(Some(&puts.table()))?;
        pin!(writes::apply(
            self.server,
            &mut self.call,
            table,
            puts,
            Puts::mutations
        ))
        .await
    }
}

/// The names of the attributes of all puts of a row.
fn names_of_row(mutations: &thrift2::TRowMutations) -> impl Iterator<Item = &str> {
    let puts = mutations.mutations.iter().filter_map(|mutation| match mutation {
        thrift2::TMutation::Put(put) => Some(put),
        thrift2::TMutation::DeleteSingle(_) => None,
    });
    puts.flat_map(names_of_put)
}

/// The check that a column has a value, or is absent when no value is given.
fn equal<'a>(family: &'a Bytes, qualifier: &'a Bytes, value: Option<&'a Bytes>) -> Check<'a> {
    Check {
        family,
        qualifier,
        op: CompareOp::Equal,
        value: value.map(|value| &value[..]),
    }
}

fn compare_op(op: thrift2::TCompareOperator) -> Result<CompareOp> {
    Ok(match op {
        thrift2::TCompareOperator::LESS => CompareOp::Less,
        thrift2::TCompareOperator::LESS_OR_EQUAL => CompareOp::LessOrEqual,
        thrift2::TCompareOperator::EQUAL => CompareOp::Equal,
        thrift2::TCompareOperator::NOT_EQUAL => CompareOp::NotEqual,
        thrift2::TCompareOperator::GREATER_OR_EQUAL => CompareOp::GreaterOrEqual,
        thrift2::TCompareOperator::GREATER => CompareOp::Greater,
        thrift2::TCompareOperator::NO_OP => CompareOp::NoOp,
        other => {
            return Err(Failure::illegal_argument(format!(
                "unknown compare operator {other}"
            )));
        }
    })
}

/// The new cells, unless the client does not want them: then the answer is an empty result.
fn wanted(mut batch: CellBatch, returns: bool) -> CellBatch {
    if !returns {
        batch.clear();
    }
    batch
}
