//! Descriptors as text, in the form and order of `describe` in the shell of HBase 2.6.

use super::{
    TBloomFilterType, TColumnFamilyDescriptor, TCompressionAlgorithm, TDataBlockEncoding, TDurability,
    TKeepDeletedCells, TTableDescriptor,
};

/// Time to live that means forever, in seconds.
pub const FOREVER: i32 = i32::MAX;

/// Family settings without a field of their own in the interface, which travel as attributes.
pub const FAMILY_ATTRIBUTES: [&str; 11] = [
    "INDEX_BLOCK_ENCODING",
    "COMPRESSION_COMPACT",
    "COMPRESSION_COMPACT_MAJOR",
    "COMPRESSION_COMPACT_MINOR",
    "ENCRYPTION",
    "IS_MOB",
    "MOB_THRESHOLD",
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

/// Bytes as HBase prints them (`Bytes.toStringBinary`): printable ASCII as it is, everything else and the backslash as `\xNN`.
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

/// A family in the form and order of `describe` in HBase 2.6.
pub fn describe_family(family: &TColumnFamilyDescriptor) -> String {
    let attribute = |name: &[u8]| {
        family
            .attributes
            .as_ref()
            .and_then(|all| all.get(name))
            .map(|value| printable(value))
    };
    let or = |value: Option<String>, default: &str| value.unwrap_or_else(|| default.to_owned());
    let block_bytes = family.block_size.unwrap_or(65_536);
    let fields = [
        ("NAME", printable(&family.name)),
        (
            "INDEX_BLOCK_ENCODING",
            or(attribute(b"INDEX_BLOCK_ENCODING"), "NONE"),
        ),
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
    let mut parts: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{name} => '{value}'"))
        .collect();
    // Settings without a place in HBase's fixed order are shown when somebody chose them.
    for name in FAMILY_ATTRIBUTES
        .iter()
        .filter(|name| **name != "INDEX_BLOCK_ENCODING")
    {
        parts.extend(attribute(name.as_bytes()).map(|value| format!("{name} => '{value}'")));
    }
    if let Some(settings) = family
        .configuration
        .as_ref()
        .filter(|settings| !settings.is_empty())
    {
        let settings: Vec<String> = settings
            .iter()
            .map(|(key, value)| format!("'{key}' => '{value}'"))
            .collect();
        parts.push(format!("CONFIGURATION => {{{}}}", settings.join(", ")));
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
        let (key, value) = (printable(key), printable(value));
        // HBase does not show what every table has.
        if (key == "IS_META" && value == "false") || key == "DURABILITY" {
            continue;
        }
        if TABLE_ATTRIBUTES.contains(&key.as_str()) {
            parts.push(format!("{key} => '{value}'"));
        } else {
            others.push(format!("'{key}' => '{value}'"));
        }
    }
    if !others.is_empty() {
        parts.push(format!("METADATA => {{{}}}", others.join(", ")));
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
