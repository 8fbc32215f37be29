//! HBase's Thrift 2 service, `THBaseService`: which handler answers which method.

use std::pin::pin;
use std::slice;
use std::sync::Arc;

use basalt_engine::schema::TableState;
use basalt_idl::thrift2::{self, Method, args};
use basalt_idl::wire::{Reader, WireError, WireType};
use basalt_idl::{Call, Decode, TApplicationException};

use super::codec::{Codec, Reply};
use super::from_thrift::Puts;
use super::{access, schema, slow_log, to_thrift};
use crate::server::Server;
use crate::service::scans::{self, Shortest};
use crate::service::{Caller, Failure, quotas};

mod data;
mod tables;

use data::{
    append, check_and_delete, check_and_mutate, check_and_put, delete, exists, get_multiple, increment,
    mutate_row, open_scanner, put, put_multiple, put_usual, scanner_results,
};
use tables::{
    all_locations, descriptor, descriptors, is_available, is_available_with, namespace, of_namespace,
    region_location, state, table_exists,
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
    match method {
        Method::Get => {
            let args = args::Get::decode(reader)?;
            let result = pin!(get_multiple(
                server,
                caller,
                &args.table,
                slice::from_ref(&args.tget)
            ))
            .await;
            reply.encoded::<args::Get, _>(caller, result, WireType::Struct, |writer, found| {
                to_thrift::found_result(writer, found);
            });
        }
        Method::Put => {
            let result = pin!(put(server, args::Put::decode(reader)?)).await;
            reply.result::<args::Put>(result);
        }
        Method::PutMultiple => {
            let message = reader.message();
            let result = match Puts::decode(&mut reader.clone(), &message) {
                Some(puts) => pin!(put_usual(server, puts)).await,
                None => Box::pin(put_multiple(server, args::PutMultiple::decode(reader)?)).await,
            };
            reply.result::<args::PutMultiple>(result);
        }
        Method::GetMultiple => {
            let args = args::GetMultiple::decode(reader)?;
            let result = pin!(get_multiple(server, caller, &args.table, &args.tgets)).await;
            reply.encoded::<args::GetMultiple, _>(caller, result, WireType::List, |writer, value| {
                to_thrift::found_results(writer, value);
            });
        }
        Method::GetScannerRows => {
            let args = args::GetScannerRows::decode(reader)?;
            let result = pin!(scans::fetch(
                server,
                caller,
                args.scanner_id,
                args.num_rows,
                Shortest::Page
            ))
            .await;
            reply.encoded::<args::GetScannerRows, _>(caller, result, WireType::List, |writer, results| {
                to_thrift::results(writer, &results.batch);
            });
        }
        Method::Increment => {
            let result = pin!(increment(server, caller, args::Increment::decode(reader)?)).await;
            reply.encoded::<args::Increment, _>(caller, result, WireType::Struct, |writer, value| {
                to_thrift::one_result(writer, value);
            });
        }
        Method::GetScannerResults => {
            let args = args::GetScannerResults::decode(reader)?;
            let result = Box::pin(scanner_results(server, caller, &args)).await;
            reply.encoded::<args::GetScannerResults, _>(caller, result, WireType::List, |writer, results| {
                to_thrift::results(writer, &results.batch);
            });
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
    /// Decodes the arguments, runs the handler, answers.
    macro_rules! answer {
        ($args:ident, |$bound:ident| $handler:expr) => {{
            let $bound = args::$args::decode(reader)?;
            let result: Result<<args::$args as Call>::Success, Failure> = $handler;
            reply.result::<args::$args>(result);
        }};
    }
    /// Calls a handler that blocks, on the pool: a schema change.
    macro_rules! on_pool {
        ($args:ident, |$server:ident, $bound:ident| $handler:expr) => {{
            let $bound = args::$args::decode(reader)?;
            let result: Result<<args::$args as Call>::Success, Failure> =
                server.on_pool(move |$server| $handler).await;
            reply.result::<args::$args>(result);
        }};
    }
    match method {
        Method::Exists => answer!(Exists, |args| exists(server, caller, &args.table, &[args.tget])
            .await
            .map(|there| there.first().copied().unwrap_or(false))),
        Method::ExistsAll => answer!(ExistsAll, |args| exists(server, caller, &args.table, &args.tgets)
            .await),
        Method::CheckAndPut => answer!(CheckAndPut, |args| check_and_put(server, args).await),
        Method::DeleteSingle => answer!(DeleteSingle, |args| delete(
            server,
            args.table,
            vec![args.tdelete]
        )
        .await),
        Method::DeleteMultiple => {
            answer!(DeleteMultiple, |args| delete(server, args.table, args.tdeletes)
                .await
                .map(|()| Vec::new()));
        }
        Method::CheckAndDelete => answer!(CheckAndDelete, |args| check_and_delete(server, args).await),
        Method::CheckAndMutate => answer!(CheckAndMutate, |args| check_and_mutate(server, args).await),
        Method::MutateRow => answer!(MutateRow, |args| mutate_row(server, args).await),
        Method::Append => {
            let result = append(server, caller, args::Append::decode(reader)?).await;
            reply.encoded::<args::Append, _>(caller, result, WireType::Struct, |writer, value| {
                to_thrift::one_result(writer, value);
            });
        }
        Method::OpenScanner => answer!(OpenScanner, |args| open_scanner(server, caller, &args).await),
        Method::CloseScanner => answer!(CloseScanner, |args| {
            // An unknown id is no error here, unlike in Thrift 1.
            scans::close(server, caller, args.scanner_id);
            Ok(())
        }),
        Method::GetRegionLocation => answer!(GetRegionLocation, |args| region_location(server, &args)),
        Method::GetAllRegionLocations => {
            answer!(GetAllRegionLocations, |args| all_locations(server, &args.table));
        }

        Method::GetTableDescriptor => answer!(GetTableDescriptor, |args| descriptor(server, &args.table)),
        Method::GetTableDescriptors => {
            answer!(GetTableDescriptors, |args| descriptors(server, &args.tables));
        }
        Method::TableExists => answer!(TableExists, |args| table_exists(server, args.table_name.as_ref())),
        Method::GetTableDescriptorsByPattern => answer!(GetTableDescriptorsByPattern, |args| {
            let tables = server.engine().tables();
            schema::matching(&tables, args.regex.as_deref(), args.include_sys_tables)
                .map(|tables| tables.into_iter().map(|table| schema::to_table(table)).collect())
        }),
        Method::GetTableNamesByPattern => answer!(GetTableNamesByPattern, |args| {
            let tables = server.engine().tables();
            schema::matching(&tables, args.regex.as_deref(), args.include_sys_tables).map(|tables| {
                tables
                    .into_iter()
                    .map(|table| schema::to_table_name(&table.name))
                    .collect()
            })
        }),
        Method::GetTableDescriptorsByNamespace => answer!(GetTableDescriptorsByNamespace, |args| {
            of_namespace(server, &args.name)
                .map(|tables| tables.iter().map(|(table, _)| schema::to_table(table)).collect())
        }),
        Method::GetTableNamesByNamespace => answer!(GetTableNamesByNamespace, |args| {
            of_namespace(server, &args.name).map(|tables| {
                tables
                    .iter()
                    .map(|(table, _)| schema::to_table_name(&table.name))
                    .collect()
            })
        }),
        Method::CreateTable => on_pool!(CreateTable, |server, args| {
            let splits = args
                .split_keys
                .unwrap_or_default()
                .iter()
                .map(|key| key.to_vec())
                .collect();
            Ok(server
                .engine()
                .create_table(schema::for_creation(schema::table(&args.desc)?), splits)?)
        }),
        Method::DeleteTable => on_pool!(DeleteTable, |server, args| {
            let table = schema::table_name(&args.table_name)?;
            server.engine().drop_table(&table)?;
            quotas::forget_table(server, table)
        }),
        Method::TruncateTable => on_pool!(TruncateTable, |server, args| {
            Ok(server
                .engine()
                .truncate_table(&schema::table_name(&args.table_name)?, args.preserve_splits)?)
        }),
        Method::EnableTable => on_pool!(EnableTable, |server, args| {
            Ok(server
                .engine()
                .enable_table(&schema::table_name(&args.table_name)?)?)
        }),
        Method::DisableTable => on_pool!(DisableTable, |server, args| {
            Ok(server
                .engine()
                .disable_table(&schema::table_name(&args.table_name)?)?)
        }),
        Method::IsTableEnabled => {
            answer!(IsTableEnabled, |args| state(server, &args.table_name)
                .map(|state| state == TableState::Enabled));
        }
        Method::IsTableDisabled => {
            answer!(IsTableDisabled, |args| state(server, &args.table_name)
                .map(|state| state == TableState::Disabled));
        }
        Method::IsTableAvailable => answer!(IsTableAvailable, |args| is_available(server, &args.table_name)),
        Method::IsTableAvailableWithSplit => answer!(IsTableAvailableWithSplit, |args| {
            is_available_with(
                server,
                &args.table_name,
                args.split_keys.as_deref().unwrap_or_default(),
            )
        }),
        Method::AddColumnFamily => on_pool!(AddColumnFamily, |server, args| {
            Ok(server.engine().add_family(
                &schema::table_name(&args.table_name)?,
                schema::family(&args.column)?,
            )?)
        }),
        Method::ModifyColumnFamily => on_pool!(ModifyColumnFamily, |server, args| {
            Ok(server.engine().alter_family(
                &schema::table_name(&args.table_name)?,
                schema::family(&args.column)?,
            )?)
        }),
        Method::DeleteColumnFamily => on_pool!(DeleteColumnFamily, |server, args| {
            Ok(server
                .engine()
                .drop_family(&schema::table_name(&args.table_name)?, &args.column)?)
        }),
        Method::ModifyTable => on_pool!(ModifyTable, |server, args| {
            Ok(server.engine().alter_table(schema::table(&args.desc)?)?)
        }),
        Method::CreateNamespace => on_pool!(CreateNamespace, |server, args| {
            Ok(server
                .engine()
                .create_namespace(schema::namespace(&args.namespace_desc))?)
        }),
        Method::ModifyNamespace => on_pool!(ModifyNamespace, |server, args| {
            Ok(server
                .engine()
                .alter_namespace(schema::namespace(&args.namespace_desc))?)
        }),
        Method::DeleteNamespace => on_pool!(DeleteNamespace, |server, args| {
            server.engine().drop_namespace(&args.name)?;
            quotas::forget_namespace(server, &args.name)
        }),
        Method::GetNamespaceDescriptor => {
            answer!(GetNamespaceDescriptor, |args| namespace(server, &args.name));
        }
        Method::ListNamespaceDescriptors => answer!(ListNamespaceDescriptors, |_args| {
            Ok(server
                .engine()
                .namespaces()
                .iter()
                .map(schema::to_namespace)
                .collect())
        }),
        Method::ListNamespaces => answer!(ListNamespaces, |_args| {
            Ok(server
                .engine()
                .namespaces()
                .into_iter()
                .map(|namespace| namespace.name)
                .collect())
        }),
        Method::GetThriftServerType => {
            answer!(GetThriftServerType, |_args| Ok(thrift2::TThriftServerType::TWO));
        }
        Method::GetClusterId => answer!(GetClusterId, |_args| Ok(server.engine().cluster_id().to_string())),
        Method::GetSlowLogResponses => answer!(GetSlowLogResponses, |args| {
            slow_log::responses(server, args.server_names.as_ref(), args.log_query_filter.as_ref())
        }),
        Method::ClearSlowLogResponses => answer!(ClearSlowLogResponses, |args| {
            slow_log::clear(server, args.server_names.as_ref())
        }),
        Method::Grant => answer!(Grant, |args| access::change(&args.info)),
        Method::Revoke => answer!(Revoke, |args| access::change(&args.info)),

        // `call` answers these and does not hand them on. They are listed so that a new method cannot be
        // forgotten.
        Method::Get
        | Method::Put
        | Method::PutMultiple
        | Method::GetMultiple
        | Method::Increment
        | Method::GetScannerRows
        | Method::GetScannerResults => {
            reply.application(
                method.name(),
                &TApplicationException::internal_error(method.name()),
            );
        }
    }
    Ok(())
}
