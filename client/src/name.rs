//! Table names, with HBase's rules.

use std::fmt;
use std::str::FromStr;

use basalt_idl::thrift2::TTableName;
use bytes::Bytes;

use crate::error::Error;

/// The namespace of tables that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// A table name: `name` in the namespace `default`, or `namespace:name`.
///
/// HBase's rules: a namespace has letters and digits of any script and `_`; a name also `.` and
/// `-`, but not first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    namespace: String,
    qualifier: String,
}

impl TableName {
    /// The namespace, `default` spelled out.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name within the namespace.
    pub fn qualifier(&self) -> &str {
        &self.qualifier
    }

    /// The full name as calls on rows want it.
    pub(crate) fn to_bytes(&self) -> Bytes {
        Bytes::from(self.to_string())
    }
}

impl FromStr for TableName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |what: &str| Err(Error::InvalidRequest(format!("table name '{text}' {what}")));
        let (namespace, qualifier) = text.rsplit_once(':').unwrap_or((DEFAULT_NAMESPACE, text));
        if qualifier.is_empty() {
            return wrong("is empty");
        }
        if qualifier.starts_with(['.', '-']) {
            return wrong("starts with '.' or '-'");
        }
        if !qualifier
            .chars()
            .all(|c| c.is_alphanumeric() || "_.-".contains(c))
        {
            return wrong("has a character other than letters, digits, '_', '.' and '-'");
        }
        if namespace.is_empty() || !namespace.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return wrong("has a namespace with a character other than letters, digits and '_', or none");
        }
        Ok(TableName {
            namespace: namespace.to_owned(),
            qualifier: qualifier.to_owned(),
        })
    }
}

/// The full name, without `default:`, as HBase prints it.
impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace == DEFAULT_NAMESPACE {
            f.write_str(&self.qualifier)
        } else {
            write!(f, "{}:{}", self.namespace, self.qualifier)
        }
    }
}

impl From<&TableName> for TTableName {
    fn from(name: &TableName) -> Self {
        TTableName {
            ns: Some(Bytes::from(name.namespace.clone())),
            qualifier: Bytes::from(name.qualifier.clone()),
        }
    }
}

/// A name in a server's answer. Not checked again: the server only has valid names.
impl From<&TTableName> for TableName {
    fn from(name: &TTableName) -> Self {
        let namespace = match &name.ns {
            Some(ns) if !ns.is_empty() => String::from_utf8_lossy(ns).into_owned(),
            _ => DEFAULT_NAMESPACE.to_owned(),
        };
        TableName {
            namespace,
            qualifier: String::from_utf8_lossy(&name.qualifier).into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TableName;

    #[test]
    fn names_are_printed_without_the_default_namespace() {
        for (text, printed) in [("t", "t"), ("default:t", "t"), ("ns:t.a-b_1", "ns:t.a-b_1")] {
            assert_eq!(text.parse::<TableName>().unwrap().to_string(), printed);
        }
    }

    #[test]
    fn names_may_be_of_any_script() {
        for text in ["\u{8868}", "\u{43f}\u{440}:\u{442}_\u{e9}.x", "\u{6f1}"] {
            assert_eq!(text.parse::<TableName>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn bad_names_are_refused() {
        for text in ["", ":t", "ns:", ".t", "-t", "a b", "n.s:t", "a:b:c"] {
            assert!(text.parse::<TableName>().is_err(), "{text}");
        }
    }
}
