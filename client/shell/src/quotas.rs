//! `set_quota`, `list_quotas` and lists of sizes, with the words of HBase's shell (`hbase/quotas.rb`).

use std::collections::BTreeMap;

use bytes::Bytes;

use super::arguments::{Arguments, Options};
use super::escape::printable;
use super::session::{Outcome, Session};
use super::value::Value;
use super::{ShellError, ShellResult};
use basalt_client::TableName;
use basalt_client::admin::{QuotaScope, Throttle, ThrottleType, TimeUnit};

const KEYS: [&str; 8] = [
    "REGIONSERVER",
    "TYPE",
    "THROTTLE_TYPE",
    "USER",
    "TABLE",
    "NAMESPACE",
    "LIMIT",
    "SCOPE",
];

/// Numbers of requests: of both kinds, writes, reads.
const NUMBERS: [ThrottleType; 3] = [
    ThrottleType::REQUEST_NUMBER,
    ThrottleType::WRITE_NUMBER,
    ThrottleType::READ_NUMBER,
];
/// Bytes, in the same order.
const SIZES: [ThrottleType; 3] = [
    ThrottleType::REQUEST_SIZE,
    ThrottleType::WRITE_SIZE,
    ThrottleType::READ_SIZE,
];
/// Units of size, each 1024 times the one before.
const SIZE_UNITS: &str = "BKMGTP";

const TIME_UNITS: [(&str, TimeUnit); 4] = [
    ("sec", TimeUnit::SECONDS),
    ("min", TimeUnit::MINUTES),
    ("hour", TimeUnit::HOURS),
    ("day", TimeUnit::DAYS),
];

fn wrong<T>(text: impl Into<String>) -> ShellResult<T> {
    Err(ShellError::Arguments(text.into()))
}

impl Session {
    pub(super) async fn set_quota(&mut self, mut arguments: Arguments) -> Outcome {
        let options = arguments.options()?;
        arguments.end()?;
        let of_user = options.shown("USER");
        for quota in quotas(options)? {
            self.admin.set_quota(quota).await?;
        }
        if let Some(user) = of_user {
            self.output.note(&format!(
                "note: the quota counts for calls of {user}; calls without a user are those of the server's setting quota.user"
            ))?;
        }
        Ok(None)
    }

    pub(super) async fn list_quotas(&mut self, mut arguments: Arguments) -> Outcome {
        let mut options = arguments.options()?;
        arguments.end()?;
        let (user, table) = (options.text("USER")?, options.text("TABLE")?);
        let namespace = options.text("NAMESPACE")?;
        let limit = options.integer("LIMIT")?;
        options.end(&["USER", "TABLE", "NAMESPACE", "LIMIT"])?;
        let mut quotas = self.admin.quotas(user, table, namespace).await?;
        // HBase takes a limit of 0 or less for none.
        if let Some(limit @ 1..) = limit {
            quotas.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        self.output.header(&["OWNER", "QUOTAS"])?;
        for quota in &quotas {
            let columns = [owner_text(quota), quota_text(quota)];
            let columns = columns.each_ref().map(String::as_str);
            self.output.texts(&["owner", "quotas"], &columns)?;
        }
        self.print_count(quotas.len())?;
        Ok(None)
    }

    /// Disk usage of tables. HBase counts the reports of its servers for quotas of space; here
    /// every table is known.
    pub(super) async fn list_table_sizes(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        let mut sizes = BTreeMap::new();
        for region in self.admin.regions(None).await? {
            *sizes.entry(region.table_name).or_insert(0) += region.store_file_bytes;
        }
        let rows = sizes.iter().map(|(table, size)| (printable(table), *size));
        self.print_sizes("TABLE", rows)
    }

    /// Disk usage of snapshots. Files that a table, a clone or another snapshot has too are counted
    /// here as well.
    pub(super) async fn list_snapshot_sizes(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        let snapshots = self.admin.snapshots(None, None).await?;
        let rows = snapshots
            .into_iter()
            .map(|snapshot| (snapshot.name, snapshot.bytes));
        self.print_sizes("SNAPSHOT", rows)
    }

    fn print_sizes(&mut self, of: &'static str, sizes: impl Iterator<Item = (String, i64)>) -> Outcome {
        self.output.header(&[of, "SIZE"])?;
        let mut rows = 0;
        for (name, size) in sizes {
            let fields = [(of, Value::text(&name)), ("size", Value::Integer(size))];
            self.output.record(&[&name, &size.to_string()], &fields)?;
            rows += 1;
        }
        self.print_count(rows)?;
        Ok(None)
    }
}

/// The quotas that the options of `set_quota` set: one, or two without a limit where both the
/// number and the size of one kind are removed.
fn quotas(mut options: Options) -> ShellResult<Vec<Throttle>> {
    match options.text("TYPE")?.as_deref() {
        Some("THROTTLE") => {}
        Some("SPACE") => {
            return wrong(
                "there are no space quotas, only TYPE => THROTTLE; list_quota_table_sizes shows the sizes",
            );
        }
        Some(other) => return wrong(format!("TYPE is '{other}' and must be THROTTLE")),
        None if options.has("GLOBAL_BYPASS") => {
            return wrong(
                "there is no GLOBAL_BYPASS, since quotas of users, tables and namespaces all count; LIMIT => NONE takes one away",
            );
        }
        None => return wrong("set_quota needs TYPE => THROTTLE; see help 'set_quota'"),
    }
    let kind = match options.text("THROTTLE_TYPE")?.as_deref() {
        None => None,
        Some("REQUEST") => Some(0),
        Some("WRITE") => Some(1),
        Some("READ") => Some(2),
        Some(other) => {
            return wrong(format!(
                "THROTTLE_TYPE is '{other}' and must be READ, WRITE or REQUEST"
            ));
        }
    };
    let Some(limit) = options.text("LIMIT")? else {
        return wrong("set_quota needs LIMIT => '10req/sec', '10M/sec', ..., or NONE");
    };
    let scope = match options.text("SCOPE")?.as_deref() {
        None => None,
        Some("MACHINE") => Some(QuotaScope::MACHINE),
        Some("CLUSTER") => Some(QuotaScope::CLUSTER),
        Some(other) => return wrong(format!("SCOPE is '{other}' and must be MACHINE or CLUSTER")),
    };
    let table = options.text("TABLE")?.map(|name| name.parse::<TableName>());
    let owner = Throttle {
        user_name: options.text("USER")?,
        table_name: table.transpose()?.map(|name| Bytes::from(name.to_string())),
        ns_name: options.text("NAMESPACE")?,
        ..Throttle::default()
    };
    if options.has("REGIONSERVER") {
        return wrong("there is no quota of a server; set one for each TABLE or NAMESPACE");
    }
    options.end(&KEYS)?;
    if owner.user_name.is_none() && owner.table_name.is_none() && owner.ns_name.is_none() {
        return wrong("One of USER, TABLE or NAMESPACE must be specified");
    }
    if limit == "NONE" {
        let Some(kind) = kind else {
            return Ok(vec![owner]);
        };
        let without = |throttle_type| Throttle {
            throttle_type: Some(throttle_type),
            ..owner.clone()
        };
        return Ok(vec![without(NUMBERS[kind]), without(SIZES[kind])]);
    }
    let (amount, is_size, unit) = parse_limit(&limit)?;
    let types = if is_size { SIZES } else { NUMBERS };
    Ok(vec![Throttle {
        throttle_type: Some(types[kind.unwrap_or(0)]),
        soft_limit: Some(amount),
        time_unit: Some(unit),
        scope,
        ..owner
    }])
}

/// `10req/sec`, `5K/min`: how many, whether of bytes, and per what. Case does not matter, as in HBase.
fn parse_limit(text: &str) -> ShellResult<(i64, bool, TimeUnit)> {
    let invalid = || {
        let text = format!("LIMIT is '{text}' and must be like '10req/sec', '100M/min' or NONE");
        ShellError::Arguments(text)
    };
    let lower = text.to_ascii_lowercase();
    let (amount, unit) = lower.split_once('/').ok_or_else(invalid)?;
    let digits = amount.find(|c: char| !c.is_ascii_digit()).ok_or_else(invalid)?;
    let (digits, what) = amount.split_at(digits);
    let number: i64 = digits.parse().map_err(|_| invalid())?;
    let (_, unit) = *TIME_UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(invalid)?;
    if what == "cu" {
        return wrong(format!(
            "LIMIT is '{text}': there are no capacity units, limit requests (req) or bytes (K, M, G)"
        ));
    }
    let (amount, is_size) = if what == "req" {
        (Some(number), false)
    } else {
        let letter = what.to_ascii_uppercase();
        let power = SIZE_UNITS
            .find(&letter)
            .filter(|_| letter.len() == 1)
            .ok_or_else(invalid)?;
        (number.checked_mul(1 << (10 * power)), true)
    };
    match amount {
        None => wrong(format!("LIMIT is '{text}', more than 64 bits hold")),
        Some(0) => wrong("Invalid throttle limit, must be greater then 0"),
        Some(amount) => Ok((amount, is_size, unit)),
    }
}

fn owner_text(quota: &Throttle) -> String {
    let table = quota.table_name.as_ref().map(|name: &Bytes| printable(name));
    let parts = [
        ("USER", quota.user_name.clone()),
        ("TABLE", table),
        ("NAMESPACE", quota.ns_name.clone()),
    ];
    let texts = parts
        .into_iter()
        .filter_map(|(key, value)| Some(format!("{key} => {}", value?)));
    texts.collect::<Vec<_>>().join(", ")
}

/// As HBase prints its settings (`ThrottleSettings.toString`).
fn quota_text(quota: &Throttle) -> String {
    let kind = quota.throttle_type.unwrap_or(ThrottleType::REQUEST_NUMBER);
    let limit = quota.soft_limit.unwrap_or_default();
    let amount = if SIZES.contains(&kind) {
        let (mut amount, mut unit) = (limit, 0);
        while amount > 0 && amount % 1024 == 0 && unit + 1 < SIZE_UNITS.len() {
            amount /= 1024;
            unit += 1;
        }
        format!("{amount}{}", &SIZE_UNITS[unit..=unit])
    } else {
        format!("{limit}req")
    };
    let unit = TIME_UNITS
        .iter()
        .find(|(_, unit)| Some(*unit) == quota.time_unit)
        .map_or("sec", |(name, _)| *name);
    let scope = match quota.scope {
        Some(QuotaScope::CLUSTER) => "CLUSTER",
        _ => "MACHINE",
    };
    format!("TYPE => THROTTLE, THROTTLE_TYPE => {kind}, LIMIT => {amount}/{unit}, SCOPE => {scope}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::command;

    fn of(text: &str) -> ShellResult<Vec<Throttle>> {
        match command(text).arguments.pop() {
            Some(Value::Hash(pairs)) => quotas(Options::new(pairs)?),
            other => panic!("{other:?}"),
        }
    }

    /// Goal: the input of HBase's shell is accepted, and printed as HBase prints it.
    #[test]
    fn quotas_are_read_and_printed() {
        for (options, owner, text) in [
            (
                "USER => 'u1', LIMIT => '10req/sec'",
                "USER => u1",
                "REQUEST_NUMBER, LIMIT => 10req/sec, SCOPE => MACHINE",
            ),
            (
                "THROTTLE_TYPE => WRITE, USER => 'u1', TABLE => 'ns:t', LIMIT => '5K/min'",
                "USER => u1, TABLE => ns:t",
                "WRITE_SIZE, LIMIT => 5K/min, SCOPE => MACHINE",
            ),
            (
                "THROTTLE_TYPE => READ, USER => 'u1', NAMESPACE => 'ns', LIMIT => '1000B/hour', SCOPE => CLUSTER",
                "USER => u1, NAMESPACE => ns",
                "READ_SIZE, LIMIT => 1000B/hour, SCOPE => CLUSTER",
            ),
            (
                "TABLE => 't', LIMIT => '2048m/DAY'",
                "TABLE => t",
                "REQUEST_SIZE, LIMIT => 2G/day, SCOPE => MACHINE",
            ),
            (
                "THROTTLE_TYPE => READ, NAMESPACE => 'ns', LIMIT => '7Req/Sec'",
                "NAMESPACE => ns",
                "READ_NUMBER, LIMIT => 7req/sec, SCOPE => MACHINE",
            ),
        ] {
            let found = of(&format!("set_quota TYPE => THROTTLE, {options}")).unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!(owner_text(&found[0]), owner);
            assert_eq!(
                quota_text(&found[0]),
                format!("TYPE => THROTTLE, THROTTLE_TYPE => {text}")
            );
        }
        let types = |command: &str| -> Vec<_> {
            let quotas = of(command).unwrap();
            assert!(quotas.iter().all(|quota| quota.soft_limit.is_none()));
            quotas.iter().map(|quota| quota.throttle_type).collect()
        };
        assert_eq!(
            types("set_quota TYPE => THROTTLE, USER => 'u', LIMIT => NONE"),
            [None]
        );
        assert_eq!(
            types("set_quota TYPE => THROTTLE, THROTTLE_TYPE => WRITE, USER => 'u', LIMIT => 'NONE'"),
            [Some(ThrottleType::WRITE_NUMBER), Some(ThrottleType::WRITE_SIZE)]
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (options, text) in [
            ("TYPE => SPACE, TABLE => 't', LIMIT => '1G'", "no space quotas"),
            ("USER => 'u', GLOBAL_BYPASS => true", "GLOBAL_BYPASS"),
            ("USER => 'u', LIMIT => '1req/sec'", "needs TYPE"),
            ("TYPE => THROTTLE, LIMIT => '1req/sec'", "One of USER"),
            ("TYPE => THROTTLE, USER => 'u'", "needs LIMIT"),
            ("TYPE => THROTTLE, USER => 'u', LIMIT => '1req'", "'1req'"),
            ("TYPE => THROTTLE, USER => 'u', LIMIT => '1CU/sec'", "'1CU/sec'"),
            ("TYPE => THROTTLE, USER => 'u', LIMIT => '/sec'", "'/sec'"),
            ("TYPE => THROTTLE, USER => 'u', LIMIT => '0req/sec'", "greater"),
            (
                "TYPE => THROTTLE, USER => 'u', LIMIT => '9999999P/sec'",
                "64 bits",
            ),
            ("TYPE => THROTTLE, USER => 'u', LIMIT => '1req/week'", "week"),
            (
                "TYPE => THROTTLE, THROTTLE_TYPE => SCAN, USER => 'u', LIMIT => '1req/sec'",
                "SCAN",
            ),
            (
                "TYPE => THROTTLE, USER => 'u', LIMIT => '1req/sec', SCOPE => RACK",
                "RACK",
            ),
        ] {
            let error = of(&format!("set_quota {options}")).unwrap_err().to_string();
            assert!(error.contains(text), "{options}: {error}");
        }
    }
}
