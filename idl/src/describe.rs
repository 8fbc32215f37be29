//! Descriptors as text, in the form and order of `describe` in the shell of HBase 2.6.
//!
//! A descriptor is given as HBase's raw values by their names, whatever the interface that it came by:
//! [`thrift2`](crate::thrift2) turns its typed fields into raw values, the server has them as they are.
//! Every setting is printed, so that the text can be pasted behind `create` or `alter`. A string that
//! cannot stand in single quotes is printed in double quotes, with the shell's escapes.

use std::collections::BTreeMap;

use bytes::Bytes;

/// Raw values of a table or a family.
pub type Values = BTreeMap<Bytes, Bytes>;

/// Time to live that means forever, in seconds.
pub const FOREVER: i32 = i32::MAX;

/// Family settings that HBase gives back with every descriptor, with the values of one that sets nothing, in
/// the order in which `describe` prints them.
const FAMILY_DEFAULTS: [(&str, &str); 12] = [
    ("INDEX_BLOCK_ENCODING", "NONE"),
    ("VERSIONS", "1"),
    ("KEEP_DELETED_CELLS", "FALSE"),
    ("DATA_BLOCK_ENCODING", "NONE"),
    ("TTL", "2147483647"),
    ("MIN_VERSIONS", "0"),
    ("REPLICATION_SCOPE", "0"),
    ("BLOOMFILTER", "ROW"),
    ("IN_MEMORY", "false"),
    ("COMPRESSION", "NONE"),
    ("BLOCKCACHE", "true"),
    ("BLOCKSIZE", "65536"),
];

/// Family settings that are printed where they differ from these defaults.
const FAMILY_CHOICES: [(&str, &str); 6] = [
    ("CACHE_DATA_ON_WRITE", "false"),
    ("CACHE_INDEX_ON_WRITE", "false"),
    ("CACHE_BLOOMS_ON_WRITE", "false"),
    ("EVICT_BLOCKS_ON_CLOSE", "false"),
    ("COMPRESS_TAGS", "true"),
    ("DFS_REPLICATION", "0"),
];

/// Family settings without a field of their own in the interface, which travel as attributes.
pub const FAMILY_ATTRIBUTES: [&str; 12] = [
    "INDEX_BLOCK_ENCODING",
    "COMPRESSION_COMPACT",
    "COMPRESSION_COMPACT_MAJOR",
    "COMPRESSION_COMPACT_MINOR",
    "ENCRYPTION",
    "IS_MOB",
    "MOB_THRESHOLD",
    "MOB_COMPACT_PARTITION_POLICY",
    "NEW_VERSION_BEHAVIOR",
    "IN_MEMORY_COMPACTION",
    "STORAGE_POLICY",
    "PREFETCH_BLOCKS_ON_OPEN",
];

/// Table settings, which all travel as attributes.
pub const TABLE_ATTRIBUTES: [&str; 16] = [
    "MAX_FILESIZE",
    "READONLY",
    "MEMSTORE_FLUSHSIZE",
    "REGION_REPLICATION",
    "PRIORITY",
    "SPLIT_POLICY",
    "FLUSH_POLICY",
    "COMPACTION_ENABLED",
    "SPLIT_ENABLED",
    "MERGE_ENABLED",
    "NORMALIZATION_ENABLED",
    "NORMALIZER_TARGET_REGION_COUNT",
    "NORMALIZER_TARGET_REGION_SIZE_MB",
    "REGION_MEMSTORE_REPLICATION",
    "OWNER",
    "ERASURE_CODING_POLICY",
];

/// Bytes as HBase prints them (`Bytes.toStringBinary`): printable ASCII as it is, everything else and the
/// backslash as `\xNN`.
pub fn printable(bytes: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b' '..=b'~' if *byte != b'\\' => text.push(char::from(*byte)),
            _ => {
                text.push_str("\\x");
                text.push(char::from(HEX[usize::from(byte >> 4)]));
                text.push(char::from(HEX[usize::from(byte & 0xf)]));
            }
        }
    }
    text
}

/// Bytes as a string of the shell: in single quotes if no byte needs an escape, otherwise in double
/// quotes with escapes.
fn quoted(bytes: &[u8]) -> String {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'\'' | b'\\');
    if bytes.iter().all(is_plain) {
        return format!("'{}'", String::from_utf8_lossy(bytes));
    }
    let escaped = printable(bytes).replace('"', "\\\"").replace('#', "\\#");
    format!("\"{escaped}\"")
}

/// Settings as a hash of the shell.
fn hash<K: AsRef<[u8]>, V: AsRef<[u8]>>(settings: impl Iterator<Item = (K, V)>) -> String {
    let pair = |(key, value): (K, V)| format!("{} => {}", quoted(key.as_ref()), quoted(value.as_ref()));
    let pairs: Vec<String> = settings.map(pair).collect();
    format!("{{{}}}", pairs.join(", "))
}

/// A family in the form and order of `describe` in HBase 2.6.
pub fn family(name: &[u8], values: &Values, configuration: &BTreeMap<String, String>) -> String {
    let value = |name: &str| values.get(name.as_bytes());
    let mut parts = vec![format!("NAME => {}", quoted(name))];
    for (name, default) in FAMILY_DEFAULTS {
        let value = value(name).map_or(default.as_bytes(), |value| value);
        parts.push(format!("{name} => {}", with_units(name, value)));
    }
    for (name, default) in FAMILY_CHOICES {
        let chosen = value(name).filter(|value| !value.eq_ignore_ascii_case(default.as_bytes()));
        parts.extend(chosen.map(|value| format!("{name} => {}", quoted(value))));
    }
    // Settings without a place in HBase's fixed order are shown when they were set explicitly.
    for name in FAMILY_ATTRIBUTES
        .iter()
        .filter(|name| **name != "INDEX_BLOCK_ENCODING")
    {
        parts.extend(value(name).map(|value| format!("{name} => {}", quoted(value))));
    }
    let typed = FAMILY_DEFAULTS
        .iter()
        .chain(&FAMILY_CHOICES)
        .map(|(name, _)| name);
    let known: Vec<&str> = typed
        .chain(&FAMILY_ATTRIBUTES)
        .chain(&["NAME"])
        .copied()
        .collect();
    let is_known = |name: &[u8]| known.iter().any(|known| known.as_bytes() == name);
    let mut others = values.iter().filter(|(name, _)| !is_known(name)).peekable();
    if others.peek().is_some() {
        parts.push(format!("METADATA => {}", hash(others)));
    }
    if !configuration.is_empty() {
        parts.push(format!("CONFIGURATION => {}", hash(configuration.iter())));
    }
    format!("{{{}}}", parts.join(", "))
}

/// The settings of the table of that name, as the part of `describe` in front of the families.
pub fn table(name: &str, values: &Values) -> String {
    let mut parts = Vec::new();
    let durability = values.get(&b"DURABILITY"[..]);
    if let Some(durability) = durability.filter(|set| *set != "USE_DEFAULT") {
        parts.push(format!("DURABILITY => {}", quoted(durability)));
    }
    let mut others = Vec::new();
    for (key, value) in values {
        // HBase does not show attributes that every table has.
        if (key == "IS_META" && value == "false") || key == "DURABILITY" {
            continue;
        }
        match TABLE_ATTRIBUTES.iter().find(|name| name.as_bytes() == key) {
            Some(name) => parts.push(format!("{name} => {}", quoted(value))),
            None => others.push((key, value)),
        }
    }
    if !others.is_empty() {
        parts.push(format!("METADATA => {}", hash(others.into_iter())));
    }
    if parts.is_empty() {
        return name.to_owned();
    }
    format!("{name}, {{TABLE_ATTRIBUTES => {{{}}}}}", parts.join(", "))
}

/// A value as HBase prints it; a time to live and a block size with what they come to.
fn with_units(name: &str, value: &[u8]) -> String {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    match (name, number) {
        ("TTL", Some(ttl)) => format!("'{}'", seconds(ttl)),
        ("BLOCKSIZE", Some(size)) => format!("'{size} B{}'", binary_units(size)),
        _ => quoted(value),
    }
}

/// A time to live as HBase prints it.
fn seconds(ttl: i32) -> String {
    if ttl == FOREVER {
        return "FOREVER".to_owned();
    }
    let units = [("DAY", 86_400), ("HOUR", 3_600), ("MINUTE", 60), ("SECOND", 1)];
    let mut left = ttl;
    let mut parts = Vec::new();
    for (name, size) in units {
        let count = left / size;
        left %= size;
        if count > 0 {
            parts.push(format!("{count} {name}{}", if count == 1 { "" } else { "S" }));
        }
    }
    format!("{ttl} SECONDS ({})", parts.join(" "))
}

/// A size in the largest unit that it is a multiple of, in parentheses.
fn binary_units(size: i32) -> String {
    match size {
        size if size > 0 && size % (1 << 20) == 0 => format!(" ({}MB)", size >> 20),
        size if size > 0 && size % (1 << 10) == 0 => format!(" ({}KB)", size >> 10),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_printed_as_hbase_does() {
        assert_eq!(
            family(b"f", &Values::new(), &BTreeMap::new()),
            "{NAME => 'f', INDEX_BLOCK_ENCODING => 'NONE', VERSIONS => '1', KEEP_DELETED_CELLS => 'FALSE', \
             DATA_BLOCK_ENCODING => 'NONE', TTL => 'FOREVER', MIN_VERSIONS => '0', REPLICATION_SCOPE => '0', \
             BLOOMFILTER => 'ROW', IN_MEMORY => 'false', COMPRESSION => 'NONE', BLOCKCACHE => 'true', \
             BLOCKSIZE => '65536 B (64KB)'}"
        );
    }

    #[test]
    fn strings_are_quoted_so_that_the_shell_reads_them() {
        for (bytes, expected) in [
            (&b"plain #{x} \"y\""[..], "'plain #{x} \"y\"'"),
            (b"it's #{x}", "\"it's \\#{x}\""),
            (b"\x00\\\"'", "\"\\x00\\x5C\\\"'\""),
            ("\u{e9}".as_bytes(), "\"\\xC3\\xA9\""),
            (b"", "''"),
        ] {
            assert_eq!(quoted(bytes), expected);
        }
    }

    #[test]
    fn times_and_sizes_are_printed_in_their_largest_units() {
        assert_eq!(seconds(90_061), "90061 SECONDS (1 DAY 1 HOUR 1 MINUTE 1 SECOND)");
        assert_eq!(seconds(7_200), "7200 SECONDS (2 HOURS)");
        assert_eq!(binary_units(3 << 20), " (3MB)");
        assert_eq!(binary_units(1_000), "");
    }

    #[test]
    fn bytes_are_printed_as_hbase_does() {
        assert_eq!(printable(b"a~ \\\x00\xff"), "a~ \\x5C\\x00\\xFF");
    }
}
