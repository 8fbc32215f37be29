//! Faults as a test gives them, and their checks.
//!
//! As JSON, a list is `{"faults": [...]}`, and a fault is
//! `{"method": "Get", "fault": "delay", "calls": 3, "table": "ns:t", "delay_ms": 200}`. An error names
//! the fault's position, the member, and the allowed values.

use std::time::Duration;

use basalt_engine::schema::{Escaped, TableName};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Fault, Kind, Methods};

/// Most faults that can be armed together.
pub(super) const FAULTS_MAX: usize = 100;
/// Most calls that one fault is for.
const CALLS_MAX: u32 = 1_000_000;
/// Longest delay of one call.
const DELAY_MS_MAX: u64 = 600_000;

/// A fault as a test gives it, in any protocol.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    pub(crate) method: String,
    pub(crate) fault: String,
    pub(crate) calls: i64,
    pub(crate) table: Option<String>,
    pub(crate) delay_ms: Option<i64>,
    #[serde(default, deserialize_with = "text_as_bytes")]
    pub(crate) split_row: Option<Vec<u8>>,
}

fn text_as_bytes<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
    Option::<String>::deserialize(from).map(|text| text.map(String::into_bytes))
}

impl Given {
    pub(crate) fn check(self) -> Result<Fault, String> {
        let kind = self.kind()?;
        Ok(Fault {
            methods: self.methods(&kind)?,
            table: self.table()?,
            calls: self.calls()?,
            kind,
        })
    }

    fn methods(&self, kind: &Kind) -> Result<Methods, String> {
        let names = || Methods::names().join(", ");
        let methods = Methods::named(&self.method)
            .ok_or_else(|| format!("method is {:?}, and must be one of {}", self.method, names()))?;
        if kind.needs_scan() && !methods.contain_fetches() {
            return Err(format!(
                "method is {:?}, and must be *, Scan, scannerGet, scannerGetList or getScannerRows: the fault {} happens between \
                 two results of a scan",
                self.method, self.fault
            ));
        }
        Ok(methods)
    }

    fn calls(&self) -> Result<u32, String> {
        u32::try_from(self.calls)
            .ok()
            .filter(|calls| (1..=CALLS_MAX).contains(calls))
            .ok_or_else(|| format!("calls is {}, and must be from 1 to {CALLS_MAX}", self.calls))
    }

    fn table(&self) -> Result<Option<TableName>, String> {
        let parse = |name: &String| TableName::parse(name.as_bytes());
        self.table.as_ref().map(parse).transpose().map_err(|error| {
            format!(
                "table is {:?}, and must be the name of a table: {error}",
                self.table.as_deref().unwrap_or_default()
            )
        })
    }

    fn kind(&self) -> Result<Kind, String> {
        let kind = match self.fault.as_str() {
            "region_too_busy" => Kind::RegionTooBusy,
            "not_serving_region" => Kind::NotServingRegion,
            "delay" => Kind::Delay(self.delay()?),
            "drop_connection" => Kind::DropConnection,
            "drop_reply" => Kind::DropReply,
            "split" => Kind::Split(self.split_row.clone()),
            "move" => Kind::Move,
            other => {
                let names = Kind::NAMES.join(", ");
                return Err(format!("fault is {other:?}, and must be one of {names}"));
            }
        };
        let has = |member: &str, of: &str| Err(format!("{member} is for the fault {of} only: leave it out"));
        if self.delay_ms.is_some() && !matches!(kind, Kind::Delay(_)) {
            return has("delay_ms", "delay");
        }
        if self.split_row.is_some() && !matches!(kind, Kind::Split(_)) {
            return has("split_row", "split");
        }
        Ok(kind)
    }

    fn delay(&self) -> Result<Duration, String> {
        let allowed = format!("must be from 1 to {DELAY_MS_MAX} for the fault delay");
        let given = self
            .delay_ms
            .ok_or_else(|| format!("delay_ms is missing, and {allowed}"))?;
        u64::try_from(given)
            .ok()
            .filter(|ms| (1..=DELAY_MS_MAX).contains(ms))
            .map(Duration::from_millis)
            .ok_or_else(|| format!("delay_ms is {given}, and {allowed}"))
    }
}

/// Checks a list of faults. The error names the position of the first wrong one.
pub(crate) fn check_all(
    given: impl ExactSizeIterator<Item = Result<Given, String>>,
) -> Result<Vec<Fault>, String> {
    let count = given.len();
    if count > FAULTS_MAX {
        return Err(format!(
            "{count} faults are given, and at most {FAULTS_MAX} can be armed together"
        ));
    }
    let checked = given.enumerate().map(|(index, given)| {
        given
            .and_then(Given::check)
            .map_err(|error| format!("faults[{index}]: {error}"))
    });
    checked.collect()
}

/// Reads the body of a request.
pub(crate) fn from_json(body: &[u8]) -> Result<Vec<Fault>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        faults: Vec<Value>,
    }
    let body: Body = serde_json::from_slice(body).map_err(|error| {
        format!(
            "the body must be like {{\"faults\": [{{\"method\": \"Get\", \"fault\": \"region_too_busy\", \"calls\": 3}}]}}, with an \
             empty list to clear all: {error}"
        )
    })?;
    let read = |value| serde_json::from_value(value).map_err(|error| error.to_string());
    check_all(body.faults.into_iter().map(read))
}

/// The faults that are armed, each with the calls that are left.
pub(crate) fn to_json(faults: &[Fault]) -> Value {
    json!({ "faults": faults.iter().map(one_to_json).collect::<Vec<_>>() })
}

fn one_to_json(fault: &Fault) -> Value {
    let mut members = Map::new();
    members.insert("method".to_owned(), fault.methods.name().into());
    members.insert("fault".to_owned(), fault.kind.name().into());
    members.insert("calls".to_owned(), fault.calls.into());
    if let Some(table) = &fault.table {
        members.insert("table".to_owned(), table.to_string().into());
    }
    match &fault.kind {
        Kind::Delay(delay) => {
            members.insert("delay_ms".to_owned(), (delay.as_millis() as u64).into());
        }
        Kind::Split(Some(row)) => {
            let text = String::from_utf8(row.clone()).unwrap_or_else(|_| Escaped(row).to_string());
            members.insert("split_row".to_owned(), text.into());
        }
        _ => {}
    }
    members.into()
}
