//! Procedures that clients start by their names: ExecProcedure and IsProcedureDone.
//!
//! | signature | instance | configuration | does |
//! | --- | --- | --- | --- |
//! | `flush-table-proc` | the table | | flushes it: clients before HBase 2.6 |
//! | `online-snapshot` | the snapshot | `table` | takes a snapshot of the table, with a flush |
//!
//! Each is done when ExecProcedure returns. The texts of refusals are HBase's.

use basalt_engine::schema::TableName;
use basalt_idl::native::messages as pb;

use crate::server::Failed;
use crate::service::admin::{cluster, snapshots, tables};
use crate::service::{AdminCall, Failure};

/// Time limit that clients apply when they wait for an operation, ms. HBase's own value.
pub(super) const EXPECTED_TIMEOUT_MS: i64 = 300_000;

/// The exception of an operation that failed, as part of its result.
pub(super) fn exception(failed: Failed) -> pb::ForeignExceptionMessage {
    pb::ForeignExceptionMessage {
        source: Some("master".to_owned()),
        generic_exception: Some(pb::GenericExceptionMessage {
            class_name: Some(failed.class.to_owned()),
            message: Some(failed.text),
            ..pb::GenericExceptionMessage::default()
        }),
    }
}

/// Runs a procedure.
pub(super) fn exec(
    call: &AdminCall,
    request: &pb::ExecProcedureRequest,
) -> Result<pb::ExecProcedureResponse, Failure> {
    match cluster::ask(call, |_| Procedure::of(&request.procedure))?? {
        Procedure::Flush(table) => {
            tables::flush(call, &table, &flushed_families(&request.procedure.configuration))?;
        }
        Procedure::Snapshot { name, table } => snapshots::take(call, &table, &name, true, 0)?,
    }
    Ok(pb::ExecProcedureResponse {
        expected_timeout: Some(EXPECTED_TIMEOUT_MS),
        return_data: None,
    })
}

/// The families that clients before 2.6 name in the properties of a flush.
fn flushed_families(configuration: &[pb::NameStringPair]) -> Vec<&str> {
    let named = configuration.iter().filter(|pair| pair.name == "family");
    let families = named.flat_map(|pair| pair.value.split(','));
    families
        .map(str::trim)
        .filter(|family| !family.is_empty())
        .collect()
}

/// Whether a procedure is done: always, as a snapshot if there is one of that name.
pub(super) fn is_done(
    call: &AdminCall,
    request: pb::IsProcedureDoneRequest,
) -> Result<pb::IsProcedureDoneResponse, Failure> {
    let asked = request.procedure.unwrap_or_default();
    let procedure = cluster::ask(call, |_| Procedure::of(&asked))??;
    if let Procedure::Snapshot { name, .. } = procedure {
        let snapshots = snapshots::list(call)?;
        if !snapshots.iter().any(|snapshot| snapshot.name == name) {
            return Err(Failure::unknown_snapshot(&name));
        }
    }
    Ok(pb::IsProcedureDoneResponse {
        done: Some(true),
        snapshot: Some(asked),
    })
}

/// A procedure with its arguments.
#[derive(Debug, PartialEq, Eq)]
enum Procedure {
    Flush(TableName),
    Snapshot { name: String, table: TableName },
}

impl Procedure {
    fn of(description: &pb::ProcedureDescription) -> Result<Self, Failure> {
        let instance = description.instance.as_deref();
        match description.signature.as_str() {
            "flush-table-proc" => Ok(Self::Flush(TableName::parse(
                instance.unwrap_or_default().as_bytes(),
            )?)),
            "online-snapshot" => {
                let name = instance.ok_or_else(|| Failure::plain_io("Snapshot name is not defined"))?;
                let mut options = description.configuration.iter();
                let table = options.find(|option| option.name.eq_ignore_ascii_case("table"));
                let table = table.ok_or_else(|| Failure::plain_io("Snapshot table is not defined"))?;
                Ok(Self::Snapshot {
                    name: name.to_owned(),
                    table: TableName::parse(table.value.as_bytes())?,
                })
            }
            other => Err(Failure::do_not_retry(format!(
                "The procedure is not registered: {}; flush-table-proc and online-snapshot are",
                other.escape_debug()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(signature: &str, instance: Option<&str>, table: Option<&str>) -> pb::ProcedureDescription {
        pb::ProcedureDescription {
            signature: signature.to_owned(),
            instance: instance.map(str::to_owned),
            configuration: table
                .map(|table| pb::NameStringPair {
                    name: "Table".to_owned(),
                    value: table.to_owned(),
                })
                .into_iter()
                .collect(),
            ..pb::ProcedureDescription::default()
        }
    }

    #[test]
    fn procedures_are_known_by_their_signatures() {
        let of = |signature, instance, table| Procedure::of(&description(signature, instance, table));
        let table = TableName::parse(b"ns:t").unwrap();
        assert_eq!(
            of("flush-table-proc", Some("ns:t"), None).unwrap(),
            Procedure::Flush(table.clone())
        );
        assert_eq!(
            of("online-snapshot", Some("s"), Some("ns:t")).unwrap(),
            Procedure::Snapshot {
                name: "s".to_owned(),
                table
            }
        );
        for (signature, instance, table, text) in [
            (
                "rolllog-proc",
                None,
                None,
                "The procedure is not registered: rolllog-proc",
            ),
            ("online-snapshot", None, Some("t"), "Snapshot name is not defined"),
            (
                "online-snapshot",
                Some("s"),
                None,
                "Snapshot table is not defined",
            ),
        ] {
            let failure = of(signature, instance, table).unwrap_err();
            assert!(failure.message().starts_with(text), "{}", failure.message());
        }
    }
}
