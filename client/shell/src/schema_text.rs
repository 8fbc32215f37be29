//! Schemas from text: `{NAME => 'f', VERSIONS => '3'}`. `basalt_idl::describe` is the other way.

use basalt_idl::describe::{FAMILY_ATTRIBUTES, FOREVER, TABLE_ATTRIBUTES};
use bytes::Bytes;

use super::arguments::{Options, bytes, text};
use super::value::Value;
use super::{ShellError, ShellResult, units};
use basalt_client::{
    BloomType, Compression, DataBlockEncoding, Durability, FamilySchema, KeepDeletedCells, TableSchema,
};

/// The names of everything a family can be given.
const FAMILY_NAMES: [&str; 22] = [
    "NAME",
    "VERSIONS",
    "MIN_VERSIONS",
    "TTL",
    "BLOOMFILTER",
    "COMPRESSION",
    "DATA_BLOCK_ENCODING",
    "KEEP_DELETED_CELLS",
    "BLOCKSIZE",
    "BLOCKCACHE",
    "IN_MEMORY",
    "REPLICATION_SCOPE",
    "DFS_REPLICATION",
    "COMPRESS_TAGS",
    "CACHE_DATA_ON_WRITE",
    "CACHE_INDEX_ON_WRITE",
    "CACHE_BLOOMS_ON_WRITE",
    "EVICT_BLOCKS_ON_CLOSE",
    "CONFIGURATION",
    "METADATA",
    "INDEX_BLOCK_ENCODING",
    "NEW_VERSION_BEHAVIOR",
];

fn named<T>(
    options: &mut Options,
    key: &str,
    from_name: fn(&str) -> Option<T>,
    known: &[(&str, i32)],
) -> ShellResult<Option<T>> {
    let Some(name) = options.text(key)? else {
        return Ok(None);
    };
    if let Some(value) = from_name(&name.to_ascii_uppercase()) {
        return Ok(Some(value));
    }
    let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let known = known.join(", ");
    Err(ShellError::Arguments(format!(
        "{key} is '{name}', which is none of {known}"
    )))
}

/// Takes TTL: seconds as a number or in words such as `7 DAYS`, or FOREVER.
fn time_to_live(options: &mut Options) -> ShellResult<Option<i32>> {
    let Some(given) = options.text("TTL")? else {
        return Ok(None);
    };
    if given.trim().eq_ignore_ascii_case("FOREVER") {
        return Ok(Some(FOREVER));
    }
    let seconds = units::seconds(&given, "TTL")?;
    let seconds = i32::try_from(seconds).ok().filter(|seconds| *seconds > 0);
    seconds
        .map(Some)
        .ok_or_else(|| ShellError::Arguments(format!("TTL is seconds from 1 to {}, or FOREVER", i32::MAX)))
}

/// Takes BLOCKSIZE: bytes as a number or in words such as `65536 B (64KB)`.
fn block_size(options: &mut Options) -> ShellResult<Option<i32>> {
    let Some(given) = options.text("BLOCKSIZE")? else {
        return Ok(None);
    };
    let bytes = units::bytes(&given, "BLOCKSIZE")?;
    let size = i32::try_from(bytes);
    size.map(Some)
        .map_err(|_| ShellError::Arguments(format!("BLOCKSIZE is {bytes}, outside of 32 bits")))
}

/// Attributes of families and tables that are sizes. The server expects a number of bytes.
const SIZES: [&str; 3] = ["MOB_THRESHOLD", "MAX_FILESIZE", "MEMSTORE_FLUSHSIZE"];

/// Takes the attributes with these names; sizes are converted to bytes.
fn attributes(options: &mut Options, names: &[&str]) -> ShellResult<Vec<(Bytes, Bytes)>> {
    let mut found = Vec::new();
    for key in names {
        let Some(value) = options.text(key)? else { continue };
        let value = if SIZES.contains(key) {
            units::bytes(&value, key)?.to_string()
        } else {
            value
        };
        found.push((Bytes::from((*key).to_owned()), Bytes::from(value)));
    }
    Ok(found)
}

/// Takes METADATA: pairs of names and values.
fn metadata(options: &mut Options) -> ShellResult<Vec<(Bytes, Bytes)>> {
    let pairs = options.bytes_by_name("METADATA")?;
    let pairs = pairs.into_iter();
    Ok(pairs.map(|(name, value)| (name.into(), value.into())).collect())
}

/// Applies options to a family. `NAME` has been taken.
pub(super) fn set_family(family: &mut FamilySchema, mut options: Options) -> ShellResult<()> {
    let set = &mut family.descriptor;
    macro_rules! assign {
        ($field:ident, $value:expr) => {
            if let Some(value) = $value? {
                set.$field = Some(value);
            }
        };
    }
    assign!(max_versions, options.integer32("VERSIONS"));
    assign!(min_versions, options.integer32("MIN_VERSIONS"));
    assign!(time_to_live, time_to_live(&mut options));
    assign!(block_size, block_size(&mut options));
    assign!(scope, options.integer32("REPLICATION_SCOPE"));
    assign!(block_cache_enabled, options.boolean("BLOCKCACHE"));
    assign!(in_memory, options.boolean("IN_MEMORY"));
    assign!(compress_tags, options.boolean("COMPRESS_TAGS"));
    assign!(cache_data_on_write, options.boolean("CACHE_DATA_ON_WRITE"));
    assign!(cache_indexes_on_write, options.boolean("CACHE_INDEX_ON_WRITE"));
    assign!(cache_blooms_on_write, options.boolean("CACHE_BLOOMS_ON_WRITE"));
    assign!(evict_blocks_on_close, options.boolean("EVICT_BLOCKS_ON_CLOSE"));
    assign!(
        bloomn_filter_type,
        named(
            &mut options,
            "BLOOMFILTER",
            BloomType::from_name,
            BloomType::DESCRIPTOR.values
        )
    );
    assign!(
        compression_type,
        named(
            &mut options,
            "COMPRESSION",
            Compression::from_name,
            Compression::DESCRIPTOR.values
        )
    );
    assign!(
        data_block_encoding,
        named(
            &mut options,
            "DATA_BLOCK_ENCODING",
            DataBlockEncoding::from_name,
            DataBlockEncoding::DESCRIPTOR.values
        )
    );
    assign!(
        keep_deleted_cells,
        named(
            &mut options,
            "KEEP_DELETED_CELLS",
            KeepDeletedCells::from_name,
            KeepDeletedCells::DESCRIPTOR.values
        )
    );
    if let Some(replicas) = options.integer32("DFS_REPLICATION")? {
        let replicas = i16::try_from(replicas).map_err(|_| {
            ShellError::Arguments(format!("DFS_REPLICATION is {replicas}, above {}", i16::MAX))
        })?;
        set.dfs_replication = Some(replicas);
    }
    for (key, value) in options.texts_by_name("CONFIGURATION")? {
        set.configuration.get_or_insert_default().insert(key, value);
    }
    let mut all = metadata(&mut options)?;
    all.extend(attributes(&mut options, &FAMILY_ATTRIBUTES)?);
    for (key, value) in all {
        set.attributes.get_or_insert_default().insert(key, value);
    }
    options.end(&FAMILY_NAMES)
}

/// Applies options to a table, given directly or as `describe` prints them: `TABLE_ATTRIBUTES =>
/// {...}`.
pub(super) fn set_table(table: &mut TableSchema, mut options: Options) -> ShellResult<()> {
    match options.take("TABLE_ATTRIBUTES") {
        None => {}
        Some(Value::Hash(pairs)) => set_table(table, Options::new(pairs)?)?,
        Some(_) => {
            let text = "TABLE_ATTRIBUTES takes { KEY => value }";
            return Err(ShellError::Arguments(text.to_owned()));
        }
    }
    if options
        .keys()
        .any(|key| key.to_ascii_lowercase().starts_with("coprocessor"))
    {
        let text = "coprocessors are not supported: they are Java code that runs inside HBase";
        return Err(ShellError::Arguments(text.to_owned()));
    }
    let durability = named(
        &mut options,
        "DURABILITY",
        Durability::from_name,
        Durability::DESCRIPTOR.values,
    )?;
    if let Some(durability) = durability {
        table.descriptor.durability = Some(durability);
        // A table that is altered comes with the raw value, which would stand beside the typed one.
        if let Some(attributes) = &mut table.descriptor.attributes {
            attributes.remove(&b"DURABILITY"[..]);
        }
    }
    let configuration = options.texts_by_name("CONFIGURATION")?;
    let configuration = configuration.into_iter();
    let mut all: Vec<(Bytes, Bytes)> = configuration
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
    all.extend(metadata(&mut options)?);
    all.extend(attributes(&mut options, &TABLE_ATTRIBUTES)?);
    for (key, value) in all {
        table
            .descriptor
            .attributes
            .get_or_insert_default()
            .insert(key, value);
    }
    let mut known = TABLE_ATTRIBUTES.to_vec();
    known.extend([
        "DURABILITY",
        "CONFIGURATION",
        "METADATA",
        "NAME",
        "TABLE_ATTRIBUTES",
    ]);
    options.end(&known)
}

/// A family from the value of an argument: its name, or a hash with `NAME`.
pub(super) fn family_name(options: &mut Options) -> ShellResult<Option<Vec<u8>>> {
    let Some(name) = options.take("NAME") else {
        return Ok(None);
    };
    let name = bytes(name, "NAME")?;
    // `f:` was the way to write a family in old versions and still works in HBase.
    Ok(Some(name.strip_suffix(b":").map(<[u8]>::to_vec).unwrap_or(name)))
}

/// Text for an attribute that is unset.
pub(super) fn attribute_names(value: Value) -> ShellResult<Vec<String>> {
    let names = super::arguments::list(value, "NAME")?;
    names.into_iter().map(|name| text(name, "NAME")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(source: &str) -> Options {
        match crate::program::command(&format!("x {source}"))
            .arguments
            .remove(0)
        {
            Value::Hash(pairs) => Options::new(pairs).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn set_options_are_described() {
        let mut family = FamilySchema::new("f");
        let source = "VERSIONS => '3', TTL => 90000, COMPRESSION => 'zstd', BLOOMFILTER => ROWCOL, \
                      IN_MEMORY => 'TRUE', CONFIGURATION => {'a' => 'b'}, IS_MOB => true";
        set_family(&mut family, options(source)).unwrap();
        let text = basalt_idl::thrift2::describe::describe_family(&family.descriptor);
        for part in [
            "VERSIONS => '3'",
            "TTL => '90000 SECONDS (1 DAY 1 HOUR)'",
            "COMPRESSION => 'ZSTD'",
            "BLOOMFILTER => 'ROWCOL'",
            "IN_MEMORY => 'true'",
            "IS_MOB => 'true', CONFIGURATION => {'a' => 'b'}}",
        ] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
    }

    #[test]
    fn descriptions_are_read_back() {
        let mut family = FamilySchema::new("f");
        let source = "VERSIONS => 3, TTL => '1 DAY 1 HOUR', COMPRESSION => 'ZSTD', BLOOMFILTER => NONE, BLOCKSIZE => '64KB', \
                      IN_MEMORY => true, BLOCKCACHE => false, MIN_VERSIONS => 1, REPLICATION_SCOPE => 1, DFS_REPLICATION => 2, \
                      KEEP_DELETED_CELLS => 'TTL', DATA_BLOCK_ENCODING => 'FAST_DIFF', CACHE_DATA_ON_WRITE => true, \
                      CACHE_INDEX_ON_WRITE => true, CACHE_BLOOMS_ON_WRITE => true, EVICT_BLOCKS_ON_CLOSE => true, \
                      COMPRESS_TAGS => false, INDEX_BLOCK_ENCODING => 'PREFIX_TREE', IS_MOB => true, MOB_THRESHOLD => '100KB', \
                      CONFIGURATION => {'a' => \"it's #1 \\\\ \u{e9}\"}, METADATA => {'k \\'' => \"\\x00\\xff\"}";
        set_family(&mut family, options(source)).unwrap();
        let text = basalt_idl::thrift2::describe::describe_family(&family.descriptor);
        let mut again = options(&text);
        let mut pasted = FamilySchema::new(family_name(&mut again).unwrap().unwrap());
        set_family(&mut pasted, again).unwrap();
        assert_eq!(pasted, family, "{text}");

        let mut table = TableSchema::new("t").unwrap();
        let source =
            "MAX_FILESIZE => '1GB', DURABILITY => 'SYNC_WAL', READONLY => true, METADATA => {'it''s' => 'x'}";
        set_table(&mut table, options(&source.replace("''", "\\'"))).unwrap();
        let text = basalt_idl::thrift2::describe::describe_table("t", &table.descriptor);
        let mut pasted = TableSchema::new("t").unwrap();
        set_table(&mut pasted, options(text.strip_prefix("t, ").unwrap())).unwrap();
        assert_eq!(pasted, table, "{text}");
    }

    #[test]
    fn bad_settings_are_named() {
        for (source, part) in [
            (
                "COMPRESSION => 'RAR'",
                "COMPRESSION is 'RAR', which is none of LZO, GZ, NONE",
            ),
            ("VERSION => 3", "unknown option VERSION; known are NAME, VERSIONS"),
            ("'versions' => 3", "did you mean VERSIONS?"),
            ("TTL => 0", "TTL is seconds from 1 to 2147483647, or FOREVER"),
            (
                "VERSIONS => 'many'",
                "VERSIONS is a string instead of a whole number",
            ),
            ("BLOCKSIZE => 5000000000", "outside of 32 bits"),
        ] {
            let error = set_family(&mut FamilySchema::new("f"), options(source)).unwrap_err();
            assert!(error.to_string().contains(part), "{error} lacks {part}");
        }
    }
}
