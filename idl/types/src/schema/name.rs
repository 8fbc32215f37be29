//! Names of tables, namespaces and families, and HBase's rules for them.

use super::limits::{FAMILY_NAME, NAMESPACE_NAME, SNAPSHOT_NAME, TABLE_QUALIFIER};
use crate::error::{Error, Result};
use crate::name::{DEFAULT_NAMESPACE, TableName};
use crate::seeded;
use crate::text::{Brief, Cut, Escaped};

/// The system table of namespaces, in the system namespace.
pub const NAMESPACE_TABLE: &str = "namespace";

/// Qualifier of the system table of rights, `hbase:acl`.
pub const ACL_TABLE: &str = "acl";

/// The rules for a name. Its parts are read in `crate::name`.
impl TableName {
    /// A name of checked parts. An empty namespace means `default`.
    #[inline]
    pub fn new(namespace: &str, qualifier: &str) -> Result<Self> {
        let qualifier_shown = format_args!("table qualifier {}", Brief(qualifier.as_bytes()));
        TABLE_QUALIFIER.check(qualifier.len(), qualifier_shown)?;
        check_namespace_length(namespace)?;
        Self::stored(namespace, qualifier)
    }

    /// Makes a name that is stored already: it may exceed the newer limits of [`Self::new`].
    #[inline]
    pub fn stored(namespace: &str, qualifier: &str) -> Result<Self> {
        let namespace = Some(namespace).filter(|name| !name.is_empty() && *name != DEFAULT_NAMESPACE);
        namespace.map_or(Ok(()), check_namespace_characters)?;
        check_qualifier(["Table", "User-space table"], qualifier)?;
        Ok(Self::of_parts(namespace, qualifier))
    }

    /// Parses `namespace:qualifier` or `qualifier`. Split at the last colon, as HBase does.
    pub fn parse(full: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(full)
            .map_err(|_| Error::InvalidArgument(format!("Illegal table name, not UTF-8: {}", Cut(full))))?;
        match text.rsplit_once(':') {
            Some(("", _)) => Err(Error::InvalidArgument(format!(
                "Namespace must not be empty in table name {text}"
            ))),
            Some((namespace, qualifier)) => Self::new(namespace, qualifier),
            None => Self::new(DEFAULT_NAMESPACE, text),
        }
    }
}

/// As [`TableName::parse`] does.
impl std::str::FromStr for TableName {
    type Err = Error;

    fn from_str(full: &str) -> Result<Self> {
        Self::parse(full.as_bytes())
    }
}

/// HBase's rule for namespaces (`TableName.isLegalNamespaceName`): letters and digits of any
/// script, and underscore. At most [`NAMESPACE_NAME`].
#[inline]
pub fn check_namespace_name(name: &str) -> Result<()> {
    if !seeded::is_on("long-namespaces-accepted") {
        check_namespace_length(name)?;
    }
    check_namespace_characters(name)
}

fn check_namespace_length(name: &str) -> Result<()> {
    NAMESPACE_NAME.check(
        name.len(),
        format_args!("namespace name {}", Brief(name.as_bytes())),
    )
}

/// Checks the rule without the limit, for names that are stored already.
pub fn check_namespace_characters(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::InvalidArgument("Namespace name must not be empty".into()));
    }
    match first_other(name, "_") {
        None => Ok(()),
        Some((at, bad)) => Err(Error::InvalidArgument(format!(
            "Illegal character <{bad}> at {at}. Namespaces may only contain 'alphanumeric characters' from any language and \
             digits: {}",
            Brief(name.as_bytes())
        ))),
    }
}

/// HBase's rule for the names of snapshots, which is that of table qualifiers
/// (`TableName.isLegalTableQualifierName`). At most [`SNAPSHOT_NAME`], since it names a directory.
#[inline]
pub fn check_snapshot_name(name: &str) -> Result<()> {
    SNAPSHOT_NAME.check(
        name.len(),
        format_args!("snapshot name {}", Brief(name.as_bytes())),
    )?;
    check_qualifier(["Snapshot"; 2], name)
}

/// The rule for the part after the namespace in a table's name: letters and digits of any script,
/// `_`, `-` and `.`, the last two not first. `what` names it in errors: the first for an empty
/// name, else the second.
fn check_qualifier(what: [&str; 2], qualifier: &str) -> Result<()> {
    let [of_none, of_some] = what;
    let refuse = |why: String| Err(Error::InvalidArgument(why));
    let shown = Brief(qualifier.as_bytes());
    match qualifier.bytes().next() {
        None => return refuse(format!("{of_none} qualifier must not be empty")),
        Some(first @ (b'.' | b'-')) => {
            return refuse(format!(
                "Illegal first character <{}> at 0. {of_some} qualifiers can only start with 'alphanumeric characters' from any \
                 language: {shown}",
                char::from(first)
            ));
        }
        Some(_) => {}
    }
    match first_other(qualifier, "_-.") {
        None => Ok(()),
        Some((at, bad)) => refuse(format!(
            "Illegal character code:{}, <{bad}> at {at}. {of_some} qualifiers may only contain 'alphanumeric characters' and \
             digits: {shown}",
            u32::from(bad)
        )),
    }
}

/// The first character that is neither a letter or digit of any script nor one of `others`, and its
/// position in Java's characters.
fn first_other(name: &str, others: &str) -> Option<(usize, char)> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || others.as_bytes().contains(byte);
    if name.as_bytes().iter().all(is_plain) {
        return None;
    }
    let mut at = 0;
    for letter in name.chars() {
        if !is_letter_or_digit(letter) && !others.contains(letter) {
            return Some((at, letter));
        }
        at += letter.len_utf16();
    }
    None
}

/// Java's `Character.isAlphabetic(c) || Character.isDigit(c)` of a 16-bit `char`: false for
/// characters beyond 16 bits.
fn is_letter_or_digit(letter: char) -> bool {
    letter.is_ascii_alphanumeric()
        || u32::from(letter) <= 0xffff && (letter.is_alphabetic() || is_decimal_digit(letter))
}

/// The zeros of all scripts within 16 bits except ASCII; nine digits follow each (Unicode's
/// category `Nd`).
const ZEROS: [u16; 36] = [
    0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66, 0x0de6,
    0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0,
    0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
];

fn is_decimal_digit(letter: char) -> bool {
    let code = u32::from(letter);
    let before = ZEROS.partition_point(|zero| u32::from(*zero) <= code);
    before > 0 && code - u32::from(ZEROS[before - 1]) < 10
}

/// HBase's rule for family names: not empty, at most 127 bytes, no leading dot, no control character, no `:`
/// `/` `\`.
pub fn check_family_name(name: &[u8]) -> Result<()> {
    let refuse = |why: String| Err(Error::InvalidArgument(format!("{why}: {}", Cut(name))));
    if name.is_empty() {
        return refuse("Column family name can not be empty".into());
    }
    FAMILY_NAME.check(name.len(), format_args!("column family name {}", Brief(name)))?;
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
            ("\u{8868}", "\u{8868}"),
            ("\u{442}\u{430}\u{431}\u{43b}", "\u{442}\u{430}\u{431}\u{43b}"),
            ("n\u{e9}:t_\u{e9}", "n\u{e9}:t_\u{e9}"),
            ("\u{661}\u{ff15}", "\u{661}\u{ff15}"),
        ] {
            assert_eq!(TableName::parse(given.as_bytes()).unwrap().to_string(), printed);
        }
        for bad in [
            "",
            ":t",
            "a/b",
            ".t",
            "-t",
            "n-s:t",
            "a:b:c",
            "t ",
            "ns:",
            "t\u{20ac}",
            "t\u{b2}",
            "\u{1d54b}",
            "n\u{3002}:t",
        ] {
            assert!(TableName::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(TableName::parse(b"\xff").is_err());
    }

    /// Goal: the refusals are HBase's, with the position in Java's characters.
    #[test]
    fn refusals_are_hbases() {
        let refusal = |name: &str| TableName::parse(name.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            refusal("\u{8868}\u{20ac}"),
            "Illegal character code:8364, <\u{20ac}> at 1. User-space table qualifiers may only contain 'alphanumeric characters' \
             and digits: \u{8868}\u{20ac}"
        );
        assert_eq!(
            refusal("-t"),
            "Illegal first character <-> at 0. User-space table qualifiers can only start with 'alphanumeric characters' from any \
             language: -t"
        );
        assert_eq!(
            refusal("n-s:t"),
            "Illegal character <-> at 1. Namespaces may only contain 'alphanumeric characters' from any language and digits: n-s"
        );
    }

    /// Goal: lengths count in bytes; a name at the limit is accepted, one byte more is refused, and
    /// stored names are read whatever their length.
    #[test]
    fn names_have_limits_in_bytes() {
        let letters = |bytes: usize| format!("{}{}", "x".repeat(bytes % 3), "\u{8868}".repeat(bytes / 3));
        let (longest, longer) = (letters(255), letters(256));
        TableName::new(&longest, &longest).unwrap();
        for (namespace, qualifier, limit) in [
            (&longer, &longest, "the limit 'namespace name' is 255 bytes"),
            (&longest, &longer, "the limit 'table qualifier' is 255 bytes"),
        ] {
            let refused = TableName::new(namespace, qualifier).unwrap_err().to_string();
            assert!(
                refused.contains("256 bytes") && refused.contains(limit),
                "{refused}"
            );
            TableName::stored(namespace, qualifier).unwrap();
        }
    }

    /// Goal: digits are those of Java: ten of each script, no fractions or superscripts.
    #[test]
    fn digits_come_in_tens() {
        for zero in ZEROS {
            let digit = |number: u32| char::from_u32(u32::from(zero) + number).unwrap();
            assert!((0..10).all(|number| digit(number).is_numeric() && is_letter_or_digit(digit(number))));
        }
        assert!(ZEROS.windows(2).all(|pair| pair[0] + 10 <= pair[1]));
        for other in ['\u{b2}', '\u{bd}', '\u{2460}', '\u{66a}'] {
            assert!(!is_letter_or_digit(other), "{other}");
        }
        assert!(is_letter_or_digit('\u{2163}'), "a Roman numeral is alphabetic");
    }

    /// A snapshot's name is a directory's: none leads anywhere else.
    #[test]
    fn snapshot_names_follow_hbases_rules() {
        for good in ["s", "s-1.x_2", "_", "1", "a..b", "\u{e9}", &"x".repeat(255)] {
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
                "Illegal character code:47, </> at 1. Snapshot qualifiers may only contain",
            ),
            ("ns:s", "Illegal character code:58, <:> at 2."),
            ("a b", "Illegal character code:32, < > at 1."),
            ("\u{20ac}", "Illegal character code:8364"),
            (&"x".repeat(256), "snapshot name xxx"),
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
