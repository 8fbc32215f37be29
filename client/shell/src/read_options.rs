//! Columns and options of reads and writes: `get`, `scan`, `count`, `put`, `incr`, `append`,
//! `delete` and `deleteall`.
//!
//! Every option that the help of HBase's shell documents is read. Each belongs to one of three
//! groups:
//!
//! 1. It changes the cells that are read, printed or written.
//! 2. It is a hint to a cluster, such as CONSISTENCY. The value is checked, and sent if the Thrift
//!    interface has a field for it.
//! 3. It asks for something that Basalt or the interface lacks. It is refused with the reason, or
//!    the output says so.

use super::arguments::{Options, bytes, integer, list, text};
use super::converters::{Converter, Format, check_class};
use super::value::Value;
use super::{ShellError, ShellResult};
use basalt_client::{Consistency, Get, ReadType, Scan};

pub(super) const SCAN_OPTIONS: [&str; 29] = [
    "COLUMNS",
    "COLUMN",
    "STARTROW",
    "STOPROW",
    "ENDROW",
    "ROWPREFIXFILTER",
    "LIMIT",
    "REVERSED",
    "VERSIONS",
    "TIMERANGE",
    "TIMESTAMP",
    "FILTER",
    "RAW",
    "BATCH",
    "CACHE",
    "CACHE_BLOCKS",
    "MAXLENGTH",
    "FORMATTER",
    "FORMATTER_CLASS",
    "ATTRIBUTES",
    "AUTHORIZATIONS",
    "CONSISTENCY",
    "REGION_REPLICA_ID",
    "READ_TYPE",
    "ISOLATION_LEVEL",
    "MAX_RESULT_SIZE",
    "ALLOW_PARTIAL_RESULTS",
    "ALL_METRICS",
    "METRICS",
];
/// Options of `count` besides those of `scan`.
pub(super) const COUNT_OPTIONS: [&str; 1] = ["INTERVAL"];
pub(super) const GET_OPTIONS: [&str; 14] = [
    "COLUMN",
    "COLUMNS",
    "VERSIONS",
    "TIMESTAMP",
    "TIMERANGE",
    "FILTER",
    "MAXLENGTH",
    "FORMATTER",
    "FORMATTER_CLASS",
    "ATTRIBUTES",
    "AUTHORIZATIONS",
    "CONSISTENCY",
    "REGION_REPLICA_ID",
    "CACHE_BLOCKS",
];

fn wrong<T>(text: String) -> ShellResult<T> {
    Err(ShellError::Arguments(text))
}

/// `family`, or `family:qualifier`, split at the first colon.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ColumnName {
    pub(super) family: Vec<u8>,
    pub(super) qualifier: Option<Vec<u8>>,
}

/// Parses a column of a write: everything behind the first colon is the qualifier.
pub(super) fn column_name(text: Vec<u8>) -> ColumnName {
    match text.iter().position(|byte| *byte == b':') {
        Some(colon) => ColumnName {
            family: text[..colon].to_vec(),
            qualifier: Some(text[colon + 1..].to_vec()),
        },
        None => ColumnName {
            family: text,
            qualifier: None,
        },
    }
}

/// Parses a column of a read. If its last part is a converter, it is added to `format`.
pub(super) fn read_column(text: Vec<u8>, format: &mut Format) -> ShellResult<ColumnName> {
    let mut column = column_name(text);
    if let Some(qualifier) = &mut column.qualifier
        && let Some(colon) = qualifier.iter().rposition(|byte| *byte == b':')
        && let Some(converter) = Converter::from_part(&qualifier[colon + 1..])?
    {
        qualifier.truncate(colon);
        format
            .columns
            .push((column.family.clone(), qualifier.clone(), converter));
    }
    Ok(column)
}

/// Takes `COLUMNS` and `COLUMN`, each one name or several.
fn columns(options: &mut Options, format: &mut Format) -> ShellResult<Vec<ColumnName>> {
    let mut names = Vec::new();
    for key in ["COLUMNS", "COLUMN"] {
        if let Some(value) = options.take(key) {
            for name in list(value, key)? {
                names.push(read_column(name, format)?);
            }
        }
    }
    Ok(names)
}

fn time_range(options: &mut Options) -> ShellResult<Option<std::ops::Range<i64>>> {
    let Some(value) = options.take("TIMERANGE") else {
        return Ok(None);
    };
    if let Value::Array(ends) = value
        && let [from, to] = ends.as_slice()
    {
        let end = |value: &Value| integer(value, "TIMERANGE");
        return Ok(Some(end(from)?..end(to)?));
    }
    wrong("TIMERANGE takes two timestamps: [from, to]".to_owned())
}

/// Takes an option whose value is one of several words, in any case.
fn word<T: Copy>(options: &mut Options, key: &str, words: &[(&str, T)]) -> ShellResult<Option<T>> {
    let Some(given) = options.text(key)? else {
        return Ok(None);
    };
    let known = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(&given));
    if let Some((_, value)) = known {
        return Ok(Some(*value));
    }
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    wrong(format!(
        "{key} is '{given}', which is none of {}",
        words.join(", ")
    ))
}

/// Options that `get` and `scan` share.
struct Common {
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
    consistency: Option<Consistency>,
    replica_id: Option<i32>,
    authorizations: Option<Vec<String>>,
    cache_blocks: Option<bool>,
}

fn common(options: &mut Options, format: &mut Format) -> ShellResult<Common> {
    formatting(options, format)?;
    let authorizations = options.take("AUTHORIZATIONS").map(|labels| {
        let labels = list(labels, "AUTHORIZATIONS")?;
        labels
            .into_iter()
            .map(|label| text(label, "AUTHORIZATIONS"))
            .collect()
    });
    Ok(Common {
        attributes: options.bytes_by_name("ATTRIBUTES")?,
        consistency: word(
            options,
            "CONSISTENCY",
            &[
                ("STRONG", Consistency::STRONG),
                ("TIMELINE", Consistency::TIMELINE),
            ],
        )?,
        replica_id: options.integer32("REGION_REPLICA_ID")?,
        authorizations: authorizations.transpose()?,
        cache_blocks: options.boolean("CACHE_BLOCKS")?,
    })
}

fn formatting(options: &mut Options, format: &mut Format) -> ShellResult<()> {
    if let Some(class) = options.text("FORMATTER_CLASS")? {
        check_class(&class)?;
    }
    if let Some(name) = options.text("FORMATTER")? {
        format.formatter = Some(Converter::from_name(&name)?);
    }
    // HBase's -1 means no limit.
    let most = options.integer("MAXLENGTH")?;
    format.max_length = most.and_then(|most| usize::try_from(most).ok());
    Ok(())
}

macro_rules! with_common {
    ($request:ident, $common:ident) => {
        for (name, value) in $common.attributes {
            $request = $request.attribute(name, value);
        }
        if let Some(consistency) = $common.consistency {
            $request = $request.consistency(consistency);
        }
        if let Some(replica_id) = $common.replica_id {
            $request = $request.replica_id(replica_id);
        }
        if let Some(labels) = $common.authorizations {
            $request = $request.authorizations(labels);
        }
        if let Some(cache) = $common.cache_blocks {
            $request = $request.cache_blocks(cache);
        }
    };
}

/// Applies the options of one hash of `get`, all of which must be known. Adds columns to `names`.
pub(super) fn get_with(
    mut get: Get,
    mut options: Options,
    names: &mut Vec<ColumnName>,
    format: &mut Format,
) -> ShellResult<Get> {
    names.extend(columns(&mut options, format)?);
    if let Some(versions) = options.integer32("VERSIONS")? {
        get = get.versions(versions);
    }
    if let Some(at) = options.integer("TIMESTAMP")? {
        get = get.timestamp(at);
    }
    if let Some(range) = time_range(&mut options)? {
        get = get.time_range(range);
    }
    if let Some(filter) = options.bytes("FILTER")? {
        get = get.filter(filter);
    }
    let common = common(&mut options, format)?;
    with_common!(get, common);
    options.end(&GET_OPTIONS)?;
    Ok(get)
}

/// A scan with its output format, built from the options of `scan`.
#[derive(Debug, Default)]
pub(super) struct ScanRequest {
    pub(super) scan: Scan,
    pub(super) format: Format,
    /// Whether metrics of the scan are requested. The Thrift interface does not carry them.
    pub(super) wants_metrics: bool,
}

/// Takes the options that `scan` and `count` share. The caller checks that none is left.
pub(super) fn scan_from(options: &mut Options) -> ShellResult<ScanRequest> {
    let mut request = ScanRequest::default();
    let mut scan = Scan::new();
    for name in columns(options, &mut request.format)? {
        scan = match name.qualifier {
            Some(qualifier) => scan.column(name.family, qualifier),
            None => scan.family(name.family),
        };
    }
    scan = scan_range(scan, options)?;
    if let Some(versions) = options.integer32("VERSIONS")? {
        scan = scan.versions(versions);
    }
    if let Some(range) = time_range(options)? {
        scan = scan.time_range(range);
    }
    if let Some(at) = options.integer("TIMESTAMP")? {
        scan = scan.time_range(at..at.saturating_add(1));
    }
    if let Some(filter) = options.bytes("FILTER")? {
        scan = scan.filter(filter);
    }
    let common = common(options, &mut request.format)?;
    with_common!(scan, common);
    request.scan = scan_transfer(scan, options)?;
    request.wants_metrics = wants_metrics(options)?;
    Ok(request)
}

/// Applies the options that choose rows and their order.
fn scan_range(mut scan: Scan, options: &mut Options) -> ShellResult<Scan> {
    if let Some(row) = options.bytes("STARTROW")? {
        scan = scan.start_row(row);
    }
    for key in ["STOPROW", "ENDROW"] {
        if let Some(row) = options.bytes(key)? {
            scan = scan.stop_row(row);
        }
    }
    if let Some(prefix) = options.bytes("ROWPREFIXFILTER")? {
        scan = scan.prefix(prefix);
    }
    if let Some(limit) = options.integer32("LIMIT")? {
        scan = scan.limit(limit);
    }
    if let Some(reversed) = options.boolean("REVERSED")? {
        scan = scan.reversed(reversed);
    }
    if options.boolean("RAW")? == Some(true) {
        scan = scan.raw(true);
    }
    Ok(scan)
}

/// Applies the options that control how rows are transferred.
fn scan_transfer(mut scan: Scan, options: &mut Options) -> ShellResult<Scan> {
    if let Some(cells) = options.integer32("BATCH")? {
        scan = scan.cells_per_piece(cells);
    }
    if let Some(rows) = options.integer32("CACHE")? {
        scan = scan.rows_per_fetch(rows);
    }
    let types = [
        ("DEFAULT", ReadType::DEFAULT),
        ("STREAM", ReadType::STREAM),
        ("PREAD", ReadType::PREAD),
    ];
    if let Some(read_type) = word(options, "READ_TYPE", &types)? {
        scan = scan.read_type(read_type);
    }
    // The interface has no fields for these. Rows arrive whole and committed, in pages whose size
    // the server bounds.
    word(
        options,
        "ISOLATION_LEVEL",
        &[("READ_COMMITTED", ()), ("READ_UNCOMMITTED", ())],
    )?;
    options.boolean("ALLOW_PARTIAL_RESULTS")?;
    options.integer("MAX_RESULT_SIZE")?;
    Ok(scan)
}

fn wants_metrics(options: &mut Options) -> ShellResult<bool> {
    let mut wanted = options.boolean("ALL_METRICS")? == Some(true);
    if let Some(names) = options.take("METRICS") {
        wanted |= !list(names, "METRICS")?.is_empty();
    }
    Ok(wanted)
}

/// Options of `put`, `append` and `incr`.
#[derive(Debug, Default)]
pub(super) struct WriteOptions {
    pub(super) ttl_ms: Option<u64>,
    pub(super) attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

const WRITE_OPTIONS: [&str; 3] = ["TTL", "ATTRIBUTES", "VISIBILITY"];

pub(super) fn write_options(mut options: Options) -> ShellResult<WriteOptions> {
    refuse_visibility(&options)?;
    let ttl_ms = options.integer("TTL")?.map(|ttl_ms| {
        u64::try_from(ttl_ms)
            .map_err(|_| ShellError::Arguments(format!("TTL is {ttl_ms}, which is negative")))
    });
    let found = WriteOptions {
        ttl_ms: ttl_ms.transpose()?,
        attributes: options.bytes_by_name("ATTRIBUTES")?,
    };
    options.end(&WRITE_OPTIONS)?;
    Ok(found)
}

/// Checks the options of a delete: none is allowed, and VISIBILITY is refused with its reason.
pub(super) fn delete_options(options: Options) -> ShellResult<()> {
    refuse_visibility(&options)?;
    options.end(&["VISIBILITY"])
}

/// Refuses VISIBILITY: Basalt would ignore the label, and every client could read the cell.
fn refuse_visibility(options: &Options) -> ShellResult<()> {
    if options.has("VISIBILITY") {
        return wrong(
            "VISIBILITY is not supported: Basalt has no visibility labels, so everybody could read the cell"
                .to_owned(),
        );
    }
    Ok(())
}

/// Parses the target of `deleteall`: a timestamp, or an optional column and an optional timestamp.
pub(super) fn delete_target(
    arguments: &mut super::arguments::Arguments,
) -> ShellResult<(Option<ColumnName>, Option<i64>)> {
    let column = match arguments.next_integer() {
        Some(at) => return Ok((None, Some(at))),
        None => arguments.optional_bytes("a column")?.map(column_name),
    };
    Ok((column, arguments.optional_integer("the timestamp")?))
}

/// Returns the bytes of a value that must be present.
pub(super) fn value_bytes(value: Option<Value>) -> ShellResult<Vec<u8>> {
    bytes(value.unwrap_or(Value::Nil), "the value")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::command;

    fn options(source: &str) -> Options {
        match command(&format!("x {{{source}}}")).arguments.remove(0) {
            Value::Hash(pairs) => Options::new(pairs).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn scan(source: &str) -> Result<ScanRequest, String> {
        let mut options = options(source);
        let request = scan_from(&mut options).map_err(|error| error.to_string())?;
        options.end(&SCAN_OPTIONS).map_err(|error| error.to_string())?;
        Ok(request)
    }

    #[test]
    fn a_converter_is_taken_from_a_column_that_is_read() {
        let mut format = Format::default();
        let mut read = |name: &str| read_column(name.as_bytes().to_vec(), &mut format).unwrap();
        let column = |qualifier: Option<&str>| ColumnName {
            family: b"f".to_vec(),
            qualifier: qualifier.map(|qualifier| qualifier.as_bytes().to_vec()),
        };
        assert_eq!(read("f"), column(None));
        assert_eq!(read("f:"), column(Some("")));
        assert_eq!(read("f:a:b"), column(Some("a:b")));
        assert_eq!(read("f:toLong"), column(Some("toLong")));
        assert_eq!(read("f:n:toLong"), column(Some("n")));
        assert_eq!(read("f::toInt"), column(Some("")));
        assert_eq!(
            read("f:i:c(org.apache.hadoop.hbase.util.Bytes).toInt"),
            column(Some("i"))
        );
        assert_eq!(
            format.columns,
            [
                (b"f".to_vec(), b"n".to_vec(), Converter::Long),
                (b"f".to_vec(), b"".to_vec(), Converter::Int),
                (b"f".to_vec(), b"i".to_vec(), Converter::Int),
            ]
        );
        assert_eq!(
            column_name(b"f:n:toLong".to_vec()),
            column(Some("n:toLong")),
            "a write"
        );
    }

    #[test]
    fn hints_are_checked() {
        for source in [
            "CONSISTENCY => 'timeline', REGION_REPLICA_ID => 1, READ_TYPE => PREAD",
            "ISOLATION_LEVEL => 'READ_UNCOMMITTED', MAX_RESULT_SIZE => 1, ALLOW_PARTIAL_RESULTS => true",
            "AUTHORIZATIONS => ['A', 'B'], ATTRIBUTES => {'k' => \"\\xff\"}, MAXLENGTH => -1",
        ] {
            scan(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        }
        for (source, why) in [
            ("CONSISTENCY => 'EVENTUAL'", "none of STRONG, TIMELINE"),
            ("READ_TYPE => 'MMAP'", "none of DEFAULT, STREAM, PREAD"),
            ("ISOLATION_LEVEL => 'SERIALIZABLE'", "none of READ_COMMITTED"),
            ("FORMATTER_CLASS => 'my.Class'", "my.Class"),
            ("FORMATTER => 'format'", "format is no converter"),
            ("ALLOW_PARTIAL_RESULTS => 3", "neither true nor false"),
            ("ATTRIBUTES => 'k'", "ATTRIBUTES takes"),
            ("TIMERANGE => [1]", "two timestamps"),
            ("raw: true", "did you mean RAW?"),
        ] {
            let error = scan(source).unwrap_err();
            assert!(error.contains(why), "{source}: {error}");
        }
        assert!(scan("METRICS => ['RPC_RETRIES']").unwrap().wants_metrics);
        assert!(!scan("ALL_METRICS => false").unwrap().wants_metrics);
    }

    #[test]
    fn labels_of_writes_are_refused() {
        let refused = write_options(options("VISIBILITY => 'SECRET'")).unwrap_err();
        assert!(
            refused.to_string().contains("everybody could read the cell"),
            "{refused}"
        );
        let found = write_options(options("TTL => 5, ATTRIBUTES => {'a' => 'b'}")).unwrap();
        assert_eq!(
            (found.ttl_ms, found.attributes),
            (Some(5), vec![(b"a".to_vec(), b"b".to_vec())])
        );
        assert!(write_options(options("TTL => -5")).is_err());
    }
}
