//! HBase's Thrift 1 service, `Hbase`: which handler answers which method.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use basalt_engine::schema::TableState;
use basalt_idl::thrift1::{self, Method, args};
use basalt_idl::wire::{WireError, WireType};
use basalt_idl::{Call, Decode, TApplicationException};
use bytes::Bytes;

use super::codec::{Codec, Reply};
use super::{access, from_thrift, to_thrift};
use crate::server::Server;
use crate::service::{Caller, Failure, quotas, scans};

mod data;
mod mutations;
mod scanners;
mod tables;

use data::{OneColumn, append, atomic_increment, get_cells, get_rows, increment_rows, some};
use mutations::{check_and_put, delete_all, delete_row, mutate_row, mutate_rows};
use scanners::{prefix, range, row_or_before, scanner_get, t_scan};
use tables::{
    column_descriptors, compact, create_table, is_enabled, region_of_meta_key, table_regions, user_tables,
};

/// Answers one call. Fails when the arguments do not match the interface.
pub(super) async fn call<P: Codec>(
    server: &Arc<Server>,
    caller: &mut Caller,
    method: Method,
    mut reader: P::Reader,
    reply: &mut Reply<'_, P>,
) -> Result<(), WireError> {
    let reader = &mut reader;
    /// Gets of some rows, answered as a list of row results.
    macro_rules! rows {
        ($args:ident, |$bound:ident| $rows:expr, $columns:expr, $before:expr) => {{
            let $bound = args::$args::decode(reader)?;
            let result = pin!(get_rows(
                server,
                caller,
                $bound.table_name.as_ref(),
                $rows,
                $columns,
                $before,
                &$bound.attributes,
            ))
            .await;
            reply.encoded::<args::$args, _>(caller, result, WireType::List, |writer, value| {
                to_thrift::found_row_results(writer, value)
            });
        }};
    }
    match method {
        Method::GetRow => rows!(GetRow, |args| vec![args.row], None, None),
        Method::GetRowWithColumns => rows!(GetRowWithColumns, |args| vec![args.row], args.columns, None),
        Method::GetRowTs => rows!(
            GetRowTs,
            |args| vec![args.row],
            None,
            Some(args.timestamp.unwrap_or(0))
        ),
        Method::GetRowWithColumnsTs => {
            rows!(
                GetRowWithColumnsTs,
                |args| vec![args.row],
                args.columns,
                Some(args.timestamp.unwrap_or(0))
            );
        }
        Method::GetRows => rows!(GetRows, |args| some(args.rows), None, None),
        Method::GetRowsWithColumns => rows!(GetRowsWithColumns, |args| some(args.rows), args.columns, None),
        Method::GetRowsTs => rows!(
            GetRowsTs,
            |args| some(args.rows),
            None,
            Some(args.timestamp.unwrap_or(0))
        ),
        Method::GetRowsWithColumnsTs => {
            rows!(
                GetRowsWithColumnsTs,
                |args| some(args.rows),
                args.columns,
                Some(args.timestamp.unwrap_or(0))
            );
        }
        Method::MutateRow => {
            let args = args::MutateRow::decode(reader)?;
            let result = pin!(mutate_row(
                server,
                args.table_name,
                args.row,
                args.mutations,
                None,
                args.attributes,
            ))
            .await;
            reply.result::<args::MutateRow>(result);
        }
        Method::MutateRows => {
            let args = args::MutateRows::decode(reader)?;
            let result = pin!(mutate_rows(
                server,
                args.table_name,
                args.row_batches,
                None,
                args.attributes
            ))
            .await;
            reply.result::<args::MutateRows>(result);
        }
        Method::ScannerGetList => {
            let args = args::ScannerGetList::decode(reader)?;
            let result = pin!(scanner_get(server, caller, args.id, args.nb_rows)).await;
            reply.encoded::<args::ScannerGetList, _>(caller, result, WireType::List, |writer, results| {
                to_thrift::row_results(writer, &results.batch, results.sort_columns);
            });
        }
        Method::AtomicIncrement => {
            let args = args::AtomicIncrement::decode(reader)?;
            let one = thrift1::TIncrement {
                table: args.table_name,
                row: args.row,
                column: args.column,
                ammount: args.value,
            };
            let result = pin!(atomic_increment(server, caller, one)).await;
            reply.result::<args::AtomicIncrement>(result);
        }
        // The rest is boxed, so that an idle connection does not hold the memory of a schema
        // change's future.
        method => Box::pin(call_rest(server, caller, method, reader, reply)).await?,
    }
    Ok(())
}

async fn call_rest<P: Codec>(
    server: &Arc<Server>,
    caller: &mut Caller,
    method: Method,
    reader: &mut P::Reader,
    reply: &mut Reply<'_, P>,
) -> Result<(), WireError> {
    macro_rules! answer {
        ($args:ident, |$bound:ident| $handler:expr) => {{
            let $bound = args::$args::decode(reader)?;
            let result: Result<<args::$args as Call>::Success, Failure> = $handler;
            reply.result::<args::$args>(result);
        }};
    }
    macro_rules! on_pool {
        ($args:ident, |$server:ident, $bound:ident| $handler:expr) => {{
            let $bound = args::$args::decode(reader)?;
            let result: Result<<args::$args as Call>::Success, Failure> =
                server.on_pool(move |$server| $handler).await;
            reply.result::<args::$args>(result);
        }};
    }
    /// A read of one column, answered as a list of cells.
    macro_rules! cells {
        ($args:ident, |$bound:ident| $versions:expr, $before:expr) => {{
            let $bound = args::$args::decode(reader)?;
            let (versions, before) = ($versions, $before);
            let wanted = OneColumn {
                table: $bound.table_name,
                row: $bound.row,
                column: $bound.column,
                attributes: $bound.attributes,
            };
            let result = get_cells(server, caller, wanted, versions, before).await;
            reply.encoded::<args::$args, _>(caller, result, WireType::List, |writer, value| {
                to_thrift::cells(writer, value)
            });
        }};
    }
    /// Opens a scanner.
    macro_rules! scanner {
        ($args:ident, |$bound:ident| $scan:expr) => {
            answer!($args, |$bound| {
                async {
                    let table = from_thrift::table($bound.table_name.as_ref())?;
                    let (mut scan, sort_columns) = $scan?;
                    scan.spec.raw = from_thrift::raw(&$bound.attributes)?;
                    // HBase's Thrift 1 server keeps scanners for two scanner timeouts.
                    let lease = Duration::from_millis(server.config().scanner.lease_ms.saturating_mul(2));
                    scans::open(server, caller, table, scan, sort_columns, lease)
                }
                .await
            })
        };
    }
    match method {
        Method::Get => cells!(Get, |args| 1, None),
        Method::GetVer => cells!(GetVer, |args| args.num_versions.unwrap_or(0), None),
        Method::GetVerTs => cells!(
            GetVerTs,
            |args| args.num_versions.unwrap_or(0),
            Some(args.timestamp.unwrap_or(0))
        ),
        Method::MutateRowTs => answer!(MutateRowTs, |args| {
            let timestamp = Some(args.timestamp.unwrap_or(0));
            mutate_row(
                server,
                args.table_name,
                args.row,
                args.mutations,
                timestamp,
                args.attributes,
            )
            .await
        }),
        Method::MutateRowsTs => answer!(MutateRowsTs, |args| {
            let timestamp = Some(args.timestamp.unwrap_or(0));
            mutate_rows(
                server,
                args.table_name,
                args.row_batches,
                timestamp,
                args.attributes,
            )
            .await
        }),
        Method::DeleteAll => answer!(DeleteAll, |args| {
            delete_all(server, args.table_name, args.row, args.column, None).await
        }),
        Method::DeleteAllTs => answer!(DeleteAllTs, |args| {
            delete_all(
                server,
                args.table_name,
                args.row,
                args.column,
                Some(args.timestamp.unwrap_or(0)),
            )
            .await
        }),
        Method::DeleteAllRow => answer!(DeleteAllRow, |args| {
            delete_row(server, args.table_name, args.row, None).await
        }),
        Method::DeleteAllRowTs => answer!(DeleteAllRowTs, |args| {
            delete_row(
                server,
                args.table_name,
                args.row,
                Some(args.timestamp.unwrap_or(0)),
            )
            .await
        }),
        Method::Increment => answer!(Increment, |args| {
            let one = args.increment.unwrap_or_default();
            increment_rows(server, caller, vec![one]).await
        }),
        Method::IncrementRows => answer!(IncrementRows, |args| {
            increment_rows(server, caller, args.increments.unwrap_or_default()).await
        }),
        Method::Append => {
            let result = append(
                server,
                caller,
                args::Append::decode(reader)?.append.unwrap_or_default(),
            )
            .await;
            reply.encoded::<args::Append, _>(caller, result, WireType::List, |writer, value| {
                to_thrift::cells(writer, value);
            });
        }
        Method::GetRowOrBefore => {
            let result = row_or_before(server, caller, args::GetRowOrBefore::decode(reader)?).await;
            reply.encoded::<args::GetRowOrBefore, _>(caller, result, WireType::List, |writer, value| {
                to_thrift::cells(writer, value);
            });
        }
        Method::CheckAndPut => answer!(CheckAndPut, |args| check_and_put(server, args).await),

        Method::ScannerOpenWithScan => {
            scanner!(ScannerOpenWithScan, |args| t_scan(
                server,
                args.scan.clone().unwrap_or_default()
            )
            .await);
        }
        Method::ScannerOpen => {
            scanner!(ScannerOpen, |args| range(
                args.start_row.as_ref(),
                None,
                args.columns.as_ref(),
                None
            ));
        }
        Method::ScannerOpenWithStop => scanner!(ScannerOpenWithStop, |args| range(
            args.start_row.as_ref(),
            args.stop_row.as_ref(),
            args.columns.as_ref(),
            None
        )),
        Method::ScannerOpenWithPrefix => {
            scanner!(ScannerOpenWithPrefix, |args| prefix(
                args.start_and_prefix.as_ref(),
                args.columns.as_ref()
            ));
        }
        Method::ScannerOpenTs => scanner!(ScannerOpenTs, |args| range(
            args.start_row.as_ref(),
            None,
            args.columns.as_ref(),
            Some(args.timestamp.unwrap_or(0))
        )),
        Method::ScannerOpenWithStopTs => scanner!(ScannerOpenWithStopTs, |args| range(
            args.start_row.as_ref(),
            args.stop_row.as_ref(),
            args.columns.as_ref(),
            Some(args.timestamp.unwrap_or(0))
        )),
        Method::ScannerGet => {
            let args = args::ScannerGet::decode(reader)?;
            let result = scanner_get(server, caller, args.id, Some(1)).await;
            reply.encoded::<args::ScannerGet, _>(caller, result, WireType::List, |writer, results| {
                to_thrift::row_results(writer, &results.batch, results.sort_columns);
            });
        }
        Method::ScannerClose => answer!(ScannerClose, |args| {
            // An unknown id is an error here, unlike in Thrift 2.
            match args.id {
                Some(id) if scans::close(server, caller, id) => Ok(()),
                _ => Err(crate::server::sessions::SessionError::Unknown.into()),
            }
        }),

        Method::EnableTable => on_pool!(EnableTable, |server, args| {
            Ok(server
                .engine()
                .enable_table(&from_thrift::table(args.table_name.as_ref())?)?)
        }),
        Method::DisableTable => on_pool!(DisableTable, |server, args| {
            Ok(server
                .engine()
                .disable_table(&from_thrift::table(args.table_name.as_ref())?)?)
        }),
        Method::IsTableEnabled => answer!(IsTableEnabled, |args| is_enabled(
            server,
            args.table_name.as_ref()
        )),
        Method::Compact => on_pool!(Compact, |server, args| {
            compact(server, args.table_name_or_region_name.as_ref(), false)
        }),
        Method::MajorCompact => on_pool!(MajorCompact, |server, args| {
            compact(server, args.table_name_or_region_name.as_ref(), true)
        }),
        Method::GetTableNames => answer!(GetTableNames, |_args| {
            Ok(user_tables(server)
                .map(|(name, _)| Bytes::from(name.to_string()))
                .collect())
        }),
        Method::GetTableNamesWithIsTableEnabled => answer!(GetTableNamesWithIsTableEnabled, |_args| {
            Ok(user_tables(server)
                .map(|(name, state)| (Bytes::from(name.to_string()), state == TableState::Enabled))
                .collect::<BTreeMap<_, _>>())
        }),
        Method::GetColumnDescriptors => answer!(GetColumnDescriptors, |args| {
            column_descriptors(server, args.table_name.as_ref())
        }),
        Method::GetTableRegions => answer!(GetTableRegions, |args| table_regions(
            server,
            args.table_name.as_ref()
        )),
        Method::GetRegionInfo => answer!(GetRegionInfo, |args| region_of_meta_key(
            server,
            args.row.as_ref()
        )),
        Method::CreateTable => on_pool!(CreateTable, |server, args| {
            create_table(
                server,
                args.table_name.as_ref(),
                args.column_families.as_deref().unwrap_or_default(),
            )
        }),
        Method::DeleteTable => on_pool!(DeleteTable, |server, args| {
            let table = from_thrift::table(args.table_name.as_ref())?;
            match server.engine().drop_table(&table) {
                // HBase's own words for it, which it sends as a plain IOException.
                Err(basalt_engine::Error::NoSuchTable(_)) => {
                    return Err(Failure::plain_io("table does not exist"));
                }
                other => other?,
            }
            quotas::forget_table(server, table)
        }),
        Method::GetThriftServerType => {
            answer!(GetThriftServerType, |_args| Ok(thrift1::TThriftServerType::ONE));
        }
        Method::GetClusterId => answer!(GetClusterId, |_args| Ok(server.engine().cluster_id().to_string())),
        Method::Grant => answer!(Grant, |args| access::change(&args.info)),
        Method::Revoke => answer!(Revoke, |args| access::change(&args.info)),

        // `call` answers these and does not hand them on. They are listed so that a new method cannot be
        // forgotten.
        Method::GetRow
        | Method::GetRowWithColumns
        | Method::GetRowTs
        | Method::GetRowWithColumnsTs
        | Method::GetRows
        | Method::GetRowsWithColumns
        | Method::GetRowsTs
        | Method::GetRowsWithColumnsTs
        | Method::MutateRow
        | Method::MutateRows
        | Method::ScannerGetList
        | Method::AtomicIncrement => {
            reply.application(
                method.name(),
                &TApplicationException::internal_error(method.name()),
            );
        }
    }
    Ok(())
}
