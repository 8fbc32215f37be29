//! Names of tables, namespaces and families, and HBase's rules for them.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::Escaped;
use crate::error::{Error, Result};

/// Namespace of tables whose name has no `namespace:` in front.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Namespace of system tables.
pub const SYSTEM_NAMESPACE: &str = "hbase";

/// The system table of regions, in the system namespace.
pub const META_TABLE: &str = "meta";

/// The system table of namespaces, in the system namespace.
pub const NAMESPACE_TABLE: &str = "namespace";

/// Longest name of a snapshot: what a file system takes as the name of a directory.
pub const SNAPSHOT_NAME_MAX_BYTES: usize = 255;

/// A table's name: namespace and qualifier. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    /// `None`: the default one. Nearly every call names a table in it, and all threads would count their shares of one text.
    namespace: Option<Arc<str>>,
    qualifier: Arc<str>,
}

impl TableName {
    /// A name of checked parts. An empty namespace means `default`.
    pub fn new(namespace: &str, qualifier: &str) -> Result<Self> {
        let namespace = Some(namespace).filter(|name| !name.is_empty() && *name != DEFAULT_NAMESPACE);
        namespace.map_or(Ok(()), check_namespace_name)?;
        check_qualifier(["Table", "Namespaces and table", "User-space table"], qualifier)?;
        Ok(Self {
            namespace: namespace.map(Arc::from),
            qualifier: qualifier.into(),
        })
    }

    /// Parses `namespace:qualifier` or `qualifier`. Split at the last colon, as HBase does.
    pub fn parse(full: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(full).map_err(|_| {
            Error::InvalidArgument(format!("Illegal table name, not ASCII: {}", Escaped(full)))
        })?;
        match text.rsplit_once(':') {
            Some(("", _)) => Err(Error::InvalidArgument(format!(
                "Namespace must not be empty in table name {text}"
            ))),
            Some((namespace, qualifier)) => Self::new(namespace, qualifier),
            None => Self::new(DEFAULT_NAMESPACE, text),
        }
    }

    /// The namespace, `default` spelled out.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }

    /// The part after the namespace.
    pub fn qualifier(&self) -> &str {
        &self.qualifier
    }

    /// Whether it lies in the system namespace.
    pub fn is_system(&self) -> bool {
        self.namespace() == SYSTEM_NAMESPACE
    }

    /// Whether it is `hbase:meta`.
    pub fn is_meta(&self) -> bool {
        self.is_system() && &*self.qualifier == META_TABLE
    }

    /// HBase's order of tables in lists: as text, with `default:` spelled out.
    pub fn cmp_as_text(&self, other: &Self) -> Ordering {
        let text = |name: &Self| format!("{}:{}", name.namespace(), name.qualifier);
        text(self).cmp(&text(other))
    }
}

/// By namespace, then by qualifier.
impl Ord for TableName {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_namespace = self.namespace().cmp(other.namespace());
        by_namespace.then_with(|| self.qualifier().cmp(other.qualifier()))
    }
}

impl PartialOrd for TableName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The full name; `default:` is never printed.
impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}:")?;
        }
        f.write_str(&self.qualifier)
    }
}

impl fmt::Debug for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// HBase's rule for namespaces: letters, digits and underscore.
pub fn check_namespace_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::InvalidArgument("Namespace name must not be empty".into()));
    }
    match name
        .char_indices()
        .find(|(_, c)| !(c.is_ascii_alphanumeric() || *c == '_'))
    {
        None => Ok(()),
        Some((at, bad)) => Err(Error::InvalidArgument(format!(
            "Illegal character <{bad}> at {at}. Namespaces may only contain 'alphanumeric characters' and '_': {name}"
        ))),
    }
}

/// HBase's rule for the names of snapshots, which is that of table qualifiers (`TableName.isLegalTableQualifierName`): letters,
/// digits, `_`, `-` and `.`, the last two not first. At most [`SNAPSHOT_NAME_MAX_BYTES`], since a directory is called so.
pub fn check_snapshot_name(name: &str) -> Result<()> {
    if name.len() > SNAPSHOT_NAME_MAX_BYTES {
        return Err(Error::InvalidArgument(format!(
            "Snapshot name of {} bytes is longer than {SNAPSHOT_NAME_MAX_BYTES}",
            name.len()
        )));
    }
    check_qualifier(["Snapshot"; 3], name)
}

/// The rule for what stands behind the namespace in a table's name. `what` it is called in the three refusals.
fn check_qualifier(what: [&str; 3], qualifier: &str) -> Result<()> {
    let [of_none, of_first, of_rest] = what;
    match qualifier.bytes().next() {
        None => {
            return Err(Error::InvalidArgument(format!(
                "{of_none} qualifier must not be empty"
            )));
        }
        Some(first @ (b'.' | b'-')) => {
            return Err(Error::InvalidArgument(format!(
                "Illegal first character <{}> at 0. {of_first} qualifiers can only start with \
                 alphanumeric characters or '_': {qualifier}",
                char::from(first)
            )));
        }
        Some(_) => {}
    }
    match qualifier
        .char_indices()
        .find(|(_, c)| !(c.is_ascii_alphanumeric() || "_-.".contains(*c)))
    {
        None => Ok(()),
        Some((at, bad)) => Err(Error::InvalidArgument(format!(
            "Illegal character code:{}, <{bad}> at {at}. {of_rest} qualifiers can only contain alphanumeric \
             characters, '_', '-' and '.': {qualifier}",
            u32::from(bad)
        ))),
    }
}

/// HBase's rule for family names: not empty, at most 127 bytes, no leading dot, no control character, no `:` `/` `\`.
pub fn check_family_name(name: &[u8]) -> Result<()> {
    let refuse = |why: String| Err(Error::InvalidArgument(format!("{why}: {}", Escaped(name))));
    if name.is_empty() {
        return refuse("Column family name can not be empty".into());
    }
    if name.len() > crate::cell::FAMILY_MAX_BYTES {
        return refuse(format!(
            "Column family name is longer than {} bytes",
            crate::cell::FAMILY_MAX_BYTES
        ));
    }
    if name[0] == b'.' {
        return refuse("Column families cannot start with period".into());
    }
    if let Some(bad) = name
        .iter()
        .find(|byte| byte.is_ascii_control() || matches!(byte, b':' | b'\\' | b'/'))
    {
        return refuse(format!(
            "Illegal character <{}>. Column families cannot contain control characters, colons or slashes",
            Escaped(&[*bad])
        ));
    }
    if name == b"recovered.edits" {
        return refuse("Column family name is reserved".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names_follow_hbases_rules() {
        for (given, printed) in [
            ("t", "t"),
            ("default:t", "t"),
            ("ns:t.a-b_1", "ns:t.a-b_1"),
            ("_x", "_x"),
        ] {
            assert_eq!(TableName::parse(given.as_bytes()).unwrap().to_string(), printed);
        }
        for bad in [
            "", ":t", "a/b", ".t", "-t", "n-s:t", "a:b:c", "t\u{e9}", "t ", "ns:",
        ] {
            assert!(TableName::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(TableName::parse(b"\xff").is_err());
    }

    /// A snapshot's name is a directory's: none leads anywhere else.
    #[test]
    fn snapshot_names_follow_hbases_rules() {
        for good in ["s", "s-1.x_2", "_", "1", "a..b", &"x".repeat(255)] {
            check_snapshot_name(good).unwrap();
        }
        for (bad, words) in [
            ("", "Snapshot qualifier must not be empty"),
            (
                "..",
                "Illegal first character <.> at 0. Snapshot qualifiers can only start",
            ),
            ("-s", "Illegal first character <-> at 0."),
            (
                "a/../../b",
                "Illegal character code:47, </> at 1. Snapshot qualifiers can only contain",
            ),
            ("ns:s", "Illegal character code:58, <:> at 2."),
            ("a b", "Illegal character code:32, < > at 1."),
            ("\u{e9}", "Illegal character code:233"),
            (&"x".repeat(256), "Snapshot name of 256 bytes is longer than 255"),
        ] {
            let refused = check_snapshot_name(bad).unwrap_err().to_string();
            assert!(refused.starts_with(words), "{bad}: {refused}");
        }
    }

    #[test]
    fn family_names_follow_hbases_rules() {
        assert!(check_family_name(b"f").is_ok());
        assert!(check_family_name(&[b'f'; 127]).is_ok());
        for bad in [
            &b""[..],
            b".f",
            b"a:b",
            b"a/b",
            b"a\\b",
            b"a\0",
            b"recovered.edits",
            &[b'f'; 128],
        ] {
            assert!(check_family_name(bad).is_err(), "{}", Escaped(bad));
        }
    }
}
