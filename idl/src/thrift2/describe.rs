//! Descriptors as text, in the form and order of `describe` in the shell of HBase 2.6.
//!
//! Every setting of a descriptor is printed, so that the text can be pasted behind `create` or
//! `alter`. A string that cannot stand in single quotes is printed in double quotes, with the
//! shell's escapes.

use super::{
    TBloomFilterType, TColumnFamilyDescriptor, TCompressionAlgorithm, TDataBlockEncoding, TDurability,
    TKeepDeletedCells, TTableDescriptor,
};

/// Time to live that means forever, in seconds.
pub const FOREVER: i32 = i32::MAX;

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

/// Attribute names of typed fields. Their attributes are not printed again as metadata.
const FAMILY_FIELDS: [&str; 18] = [
    "VERSIONS",
    "MIN_VERSIONS",
    "KEEP_DELETED_CELLS",
    "DATA_BLOCK_ENCODING",
    "TTL",
    "REPLICATION_SCOPE",
    "BLOOMFILTER",
    "IN_MEMORY",
    "COMPRESSION",
    "BLOCKCACHE",
    "BLOCKSIZE",
    "CACHE_DATA_ON_WRITE",
    "CACHE_INDEX_ON_WRITE",
    "CACHE_BLOOMS_ON_WRITE",
    "EVICT_BLOCKS_ON_CLOSE",
    "COMPRESS_TAGS",
    "DFS_REPLICATION",
    "NAME",
];

/// Typed settings that are not in HBase's fixed order and differ from their defaults.
fn chosen_fields(family: &TColumnFamilyDescriptor) -> Vec<String> {
    let flags = [
        ("CACHE_DATA_ON_WRITE", family.cache_data_on_write, false),
        ("CACHE_INDEX_ON_WRITE", family.cache_indexes_on_write, false),
        ("CACHE_BLOOMS_ON_WRITE", family.cache_blooms_on_write, false),
        ("EVICT_BLOCKS_ON_CLOSE", family.evict_blocks_on_close, false),
        ("COMPRESS_TAGS", family.compress_tags, true),
    ];
    let chosen = flags.into_iter().filter_map(|(name, set, default)| {
        let set = set.filter(|set| *set != default)?;
        Some(format!("{name} => '{set}'"))
    });
    let replicas = family.dfs_replication.filter(|replicas| *replicas != 0);
    chosen
        .chain(replicas.map(|replicas| format!("DFS_REPLICATION => '{replicas}'")))
        .collect()
}

/// A family in the form and order of `describe` in HBase 2.6.
pub fn describe_family(family: &TColumnFamilyDescriptor) -> String {
    let attributes = family.attributes.iter().flatten();
    let attribute = |name: &[u8]| {
        let value = family.attributes.as_ref().and_then(|all| all.get(name));
        value.map(|value| quoted(value))
    };
    let block_bytes = family.block_size.unwrap_or(65_536);
    let fields = [
        ("VERSIONS", family.max_versions.unwrap_or(1).to_string()),
        (
            "KEEP_DELETED_CELLS",
            family
                .keep_deleted_cells
                .unwrap_or(TKeepDeletedCells::FALSE)
                .to_string(),
        ),
        (
            "DATA_BLOCK_ENCODING",
            family
                .data_block_encoding
                .unwrap_or(TDataBlockEncoding::NONE)
                .to_string(),
        ),
        ("TTL", seconds(family.time_to_live.unwrap_or(FOREVER))),
        ("MIN_VERSIONS", family.min_versions.unwrap_or(0).to_string()),
        ("REPLICATION_SCOPE", family.scope.unwrap_or(0).to_string()),
        (
            "BLOOMFILTER",
            family
                .bloomn_filter_type
                .unwrap_or(TBloomFilterType::ROW)
                .to_string(),
        ),
        ("IN_MEMORY", family.in_memory.unwrap_or(false).to_string()),
        (
            "COMPRESSION",
            family
                .compression_type
                .unwrap_or(TCompressionAlgorithm::NONE)
                .to_string(),
        ),
        (
            "BLOCKCACHE",
            family.block_cache_enabled.unwrap_or(true).to_string(),
        ),
        (
            "BLOCKSIZE",
            format!("{block_bytes} B{}", binary_units(block_bytes)),
        ),
    ];
    let encoding = attribute(b"INDEX_BLOCK_ENCODING").unwrap_or_else(|| "'NONE'".to_owned());
    let mut parts = vec![
        format!("NAME => {}", quoted(&family.name)),
        format!("INDEX_BLOCK_ENCODING => {encoding}"),
    ];
    parts.extend(fields.iter().map(|(name, value)| format!("{name} => '{value}'")));
    parts.extend(chosen_fields(family));
    // Settings without a place in HBase's fixed order are shown when they were set explicitly.
    for name in FAMILY_ATTRIBUTES
        .iter()
        .filter(|name| **name != "INDEX_BLOCK_ENCODING")
    {
        parts.extend(attribute(name.as_bytes()).map(|value| format!("{name} => {value}")));
    }
    let is_known = |name: &[u8]| {
        let mut known = FAMILY_ATTRIBUTES.iter().chain(&FAMILY_FIELDS);
        known.any(|known| known.as_bytes() == name)
    };
    let mut others = attributes.filter(|(name, _)| !is_known(name)).peekable();
    if others.peek().is_some() {
        parts.push(format!("METADATA => {}", hash(others)));
    }
    if let Some(settings) = family
        .configuration
        .as_ref()
        .filter(|settings| !settings.is_empty())
    {
        parts.push(format!("CONFIGURATION => {}", hash(settings.iter())));
    }
    format!("{{{}}}", parts.join(", "))
}

/// The settings of the table of that name, as the part of `describe` in front of the families.
pub fn describe_table(name: &str, table: &TTableDescriptor) -> String {
    let mut parts = Vec::new();
    if let Some(durability) = table.durability.filter(|set| *set != TDurability::USE_DEFAULT) {
        parts.push(format!("DURABILITY => '{durability}'"));
    }
    let mut others = Vec::new();
    for (key, value) in table.attributes.iter().flatten() {
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
        let family = TColumnFamilyDescriptor {
            name: bytes::Bytes::from_static(b"f"),
            ..TColumnFamilyDescriptor::default()
        };
        assert_eq!(
            describe_family(&family),
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
