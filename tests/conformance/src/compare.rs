//! Are two answers the same?
//!
//! Results are compared byte for byte and exceptions by type and `canRetry`, after [`normal`] has
//! removed the parts that two servers cannot have in common:
//!
//! - timestamps from a server's clock are [`Value::Now`];
//! - ids, names and addresses of regions and servers, which hold times and ports, also in rows of
//!   `hbase:meta`;
//! - the wording of exceptions, also of those inside native answers; class and retry flag stay;
//! - in lists of all tables and namespaces, those that the script did not make.

use basalt_calls::{Answer, Value};
use basalt_idl::call::MethodDescriptor;

/// Fields whose values belong to one server.
const OWN: [&str; 11] = [
    "id",
    "name",
    "serverName",
    "port",
    "regionId",
    "hostName",
    "startCode",
    "version",
    "message",
    "tags",
    "location",
];

/// Milliseconds since 1970 that a clock may show: after 2001 and before 5138.
const CLOCK_MS: std::ops::Range<i64> = 1_000_000_000_000..100_000_000_000_000;

/// The answer without the parts that two servers cannot have in common.
pub fn normal(method: &'static MethodDescriptor, answer: &Answer) -> Answer {
    match answer {
        Answer::Success(value) => {
            let mut value = value.clone();
            if LISTS.contains(&method.name) {
                keep_own_names(&mut value);
            }
            value.for_each_mut(&mut normalize);
            Answer::Success(value)
        }
        Answer::Thrown(name, value) => {
            let mut value = value.clone();
            if let Value::Struct(fields) = &mut value {
                fields.retain(|(field, _)| *field != "message");
            }
            Answer::Thrown(name, value)
        }
        Answer::Application(exception) => Answer::Application(basalt_idl::TApplicationException {
            message: None,
            ..exception.clone()
        }),
    }
}

fn normalize(value: &mut Value) {
    if let Value::Bytes(bytes) = value {
        hide_region_id(bytes);
    }
    let Value::Struct(fields) = value else { return };
    let region = fields
        .iter()
        .any(|(name, _)| matches!(*name, "startKey" | "hostName" | "regionInfo"));
    if region {
        fields.retain(|(name, _)| !OWN.contains(name));
    }
    if fields.iter().any(|(name, _)| *name == "class") {
        fields.retain(|(name, _)| *name != "message");
    }
    for (name, value) in fields {
        if *name == "timestamp"
            && let Value::Int(ms) = value
            && CLOCK_MS.contains(ms)
        {
            *value = Value::Now;
        }
    }
}

/// Digits of the time in a region's name, and of the hash behind it.
const REGION_ID_DIGITS: usize = 13;
const REGION_HASH_DIGITS: usize = 32;

/// Takes id and hash out of a region's name: `table,start,id.hash.`
fn hide_region_id(name: &mut Vec<u8>) {
    let Some(named) = name.strip_suffix(b".") else {
        return;
    };
    let Some(hash) = named.len().checked_sub(REGION_HASH_DIGITS) else {
        return;
    };
    let Some(id) = hash.checked_sub(REGION_ID_DIGITS + 1) else {
        return;
    };
    let is_name = named[hash..].iter().all(u8::is_ascii_hexdigit)
        && named[hash - 1] == b'.'
        && named[id..hash - 1].iter().all(u8::is_ascii_digit);
    if is_name {
        name.truncate(id);
    }
}

/// Methods that list everything on the server.
const LISTS: [&str; 8] = [
    "listTables",
    "getTableNames",
    "getTableNamesWithIsTableEnabled",
    "getTableNamesByPattern",
    "getTableDescriptorsByPattern",
    "listNamespaces",
    "listNamespaceDescriptors",
    "listNamespaceTables",
];

fn keep_own_names(value: &mut Value) {
    let own = |value: &Value| {
        let text = value.to_string();
        text.contains("tbl") || text.contains("nsp")
    };
    match value {
        Value::List(values) => {
            values.retain(own);
            values.sort();
        }
        Value::Map(pairs) => pairs.retain(|(key, _)| own(key)),
        // A reply of REST.
        Value::Struct(fields) => {
            let names = fields.iter_mut().filter(|(name, _)| *name == "names");
            names.for_each(|(_, names)| keep_own_names(names));
        }
        _ => {}
    }
}

/// Whether the answers are the same.
pub fn same(method: &'static MethodDescriptor, one: &Answer, other: &Answer) -> bool {
    normal(method, one) == normal(method, other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use basalt_calls::Api;

    fn answer(class: &str, do_not_retry: bool, message: &str) -> Answer {
        Answer::Thrown(
            "rpc",
            Value::Struct(vec![
                ("class", class.into()),
                ("doNotRetry", do_not_retry.into()),
                ("message", message.into()),
            ]),
        )
    }

    /// Native clients go by class and flag, so both count; the text does not.
    #[test]
    fn native_exceptions_differ_by_class_and_flag() {
        let method = Api::Native.method("get").expect("a native call");
        let one = answer("java.io.IOException", false, "one");
        assert!(same(method, &one, &answer("java.io.IOException", false, "two")));
        assert!(!same(method, &one, &answer("java.io.IOException", true, "one")));
        assert!(!same(method, &one, &answer("java.io.EOFException", false, "one")));
    }

    /// The exception of one action differs by its class, not by its text.
    #[test]
    fn exceptions_inside_answers_differ_by_class() {
        let method = Api::Native.method("multi").expect("a native call");
        let failed = |class: &str, message: &str| {
            let exception = Value::Struct(vec![("class", class.into()), ("message", message.into())]);
            Answer::Success(Value::Struct(vec![("exception", exception)]))
        };
        assert!(same(method, &failed("A", "one"), &failed("A", "two")));
        assert!(!same(method, &failed("A", "one"), &failed("B", "one")));
    }
}
