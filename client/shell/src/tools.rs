//! Commands on regions and on the server. Most need Basalt's own calls; the others work on HBase, too.

use bytes::Bytes;

use super::arguments::{Arguments, bytes, list, text};
use super::escape::printable;
use super::session::{Outcome, Session};
use super::value::Value;
use super::{ShellError, ShellResult};
use basalt_client::admin::{Compaction, RegionMetrics};
use basalt_client::{IntoBytes, RegionLocation};

impl Session {
    pub(super) async fn flush(&mut self, mut arguments: Arguments) -> Outcome {
        let what = arguments.bytes("a table or region")?;
        let families = match arguments.take() {
            Some(families) => list(families, "a family")?,
            None => Vec::new(),
        };
        arguments.end()?;
        let what = self.region_name(what).await?;
        if !families.is_empty() {
            self.check_families(&what, &families).await?;
        }
        if is_region(&what) {
            self.admin.flush_region(what).await?;
        } else {
            self.admin.flush(&text(what.into(), "a table")?).await?;
        }
        Ok(None)
    }

    /// Checks that a table, or the table of a region, has these families.
    async fn check_families(&self, what: &[u8], families: &[Vec<u8>]) -> ShellResult<()> {
        let table = what.split(|byte| *byte == b',').next().unwrap_or_default();
        let table = text(table.to_vec(), "a table")?;
        let schema = self.client.describe_table(&table).await?;
        for family in families {
            if !schema.families().iter().any(|known| known.name == *family) {
                let family = printable(family);
                let text = format!("Column family {family} does not exist in table {table}");
                return Err(ShellError::Refused(text));
            }
        }
        Ok(())
    }

    pub(super) async fn compact(&mut self, mut arguments: Arguments, major: bool) -> Outcome {
        let what = arguments.bytes("a table or region")?;
        let family = match arguments.take() {
            Some(family) => Some(Bytes::from(bytes(family, "a family")?)),
            None => None,
        };
        // HBase's type of a compaction. Files of MOB values do not exist, so both types are the same.
        if let Some(kind) = arguments.optional_text("a type of compaction")?
            && !["NORMAL", "MOB"].contains(&&kind[..])
        {
            let text = format!("the type of compaction is '{kind}' and must be 'NORMAL' or 'MOB'");
            return Err(ShellError::Arguments(text));
        }
        arguments.end()?;
        let wait = false;
        let compaction = Compaction { family, major, wait };
        let what = self.region_name(what).await?;
        if is_region(&what) {
            self.admin.compact_region(what, compaction).await?;
        } else {
            let table = text(what.into(), "a table")?;
            self.admin.compact(&table, compaction).await?;
        }
        Ok(None)
    }

    /// Asks for compactions of all tables, since all regions are on the one server.
    pub(super) async fn compact_all(&mut self, mut arguments: Arguments) -> Outcome {
        self.check_server(&arguments.text("a server")?).await?;
        let major = match arguments.take() {
            None => false,
            Some(Value::Bool(major)) => major,
            Some(_) => {
                return Err(ShellError::Arguments(
                    "a major compaction is true or false".to_owned(),
                ));
            }
        };
        arguments.end()?;
        for table in self.client.list_tables(None).await? {
            let compaction = Compaction {
                family: None,
                major,
                wait: false,
            };
            self.admin.compact(&table.to_string(), compaction).await?;
        }
        Ok(None)
    }

    pub(super) async fn split(&mut self, mut arguments: Arguments) -> Outcome {
        let what = arguments.bytes("a table or region")?;
        let key = arguments.optional_bytes("a split key")?.map(Bytes::from);
        arguments.end()?;
        let what = self.region_name(what).await?;
        self.admin.split(what, key).await?;
        Ok(None)
    }

    pub(super) async fn merge_regions(&mut self, mut arguments: Arguments) -> Outcome {
        let mut names = Vec::new();
        while let Some(value) = arguments.take() {
            // HBase's last argument forces the merge of regions that are not neighbours, which is refused
            // here.
            if matches!(value, Value::Bool(_)) {
                break;
            }
            for name in list(value, "a region")? {
                names.push(self.region_name(name).await?);
            }
        }
        arguments.end()?;
        let merged = self.admin.merge(names).await?;
        let text = printable(&merged);
        self.print_answer(&text, Value::text(&text))
    }

    /// The full name of a region given by its 32 hex digits; anything else as it is.
    pub(super) async fn region_name(&self, name: Vec<u8>) -> ShellResult<Bytes> {
        if name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit) {
            let regions = self.admin.regions(None).await?;
            let named = regions
                .into_iter()
                .find(|region| region.encoded_name.as_bytes() == name);
            if let Some(region) = named {
                return Ok(region.region_name);
            }
        }
        Ok(name.into_bytes())
    }

    /// The regions of a table with their load; `None` from a server without Basalt's own calls.
    async fn region_metrics(&self, table: &str) -> ShellResult<Option<Vec<RegionMetrics>>> {
        match self.admin.regions(Some(table)).await {
            Ok(regions) => Ok(Some(regions)),
            Err(error) if error.is_unknown_method() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Prints the regions of a table. An optional filter selects servers, an optional list the
    /// columns.
    pub(super) async fn list_regions(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        let filter = region_filter(&mut arguments)?;
        let columns = region_columns(&mut arguments)?;
        arguments.end()?;
        let locations = self.client.table(&table)?.regions().await?;
        let metrics = self.region_metrics(&table).await?.unwrap_or_default();
        let mut rows = Vec::new();
        for location in locations.iter().filter(|location| filter.takes(location)) {
            // HBase's Thrift does not tell names and load, so those columns stay empty there.
            let of_region = metrics
                .iter()
                .find(|region| region.start_key == location.start_key);
            let cells = columns
                .iter()
                .map(|column| region_cell(column, location, of_region));
            rows.push(cells.collect::<Vec<_>>());
        }
        self.output.grid(&columns, &rows)?;
        self.output.note(&format!(" {} rows", rows.len()))?;
        Ok(None)
    }

    pub(super) async fn get_splits(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        let regions = self.client.table(&table)?.regions().await?;
        // HBase counts the regions here, not the keys between them.
        self.output
            .note(&format!("Total number of splits = {}", regions.len()))?;
        let keys = regions
            .iter()
            .map(|region| printable(&region.start_key))
            .filter(|key| !key.is_empty());
        let keys: Vec<String> = keys.collect();
        for key in &keys {
            self.output.texts(&["split"], &[key])?;
        }
        Ok(Some(keys.into_iter().collect()))
    }

    pub(super) async fn locate_region(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        let row = arguments.bytes("a row")?;
        arguments.end()?;
        let location = self.client.table(&table)?.region_of(row).await?;
        let metrics = self.region_metrics(&table).await?.unwrap_or_default();
        let of_region = metrics
            .iter()
            .find(|region| region.start_key == location.start_key);
        let name = of_region.map(|region| {
            let name = printable(&region.region_name);
            format!("ENCODED => {}, NAME => '{name}', ", region.encoded_name)
        });
        self.output.header(&["HOST", "REGION"])?;
        let region = format!(
            "{{{}STARTKEY => '{}', ENDKEY => '{}'}}",
            name.unwrap_or_default(),
            printable(&location.start_key),
            printable(&location.end_key)
        );
        let fields = [
            ("host", Value::text(&location.host)),
            ("port", Value::Integer(location.port.into())),
            (
                "region",
                of_region.map_or(Value::Nil, |region| Value::text(printable(&region.region_name))),
            ),
            ("start_key", Value::text(printable(&location.start_key))),
            ("end_key", Value::text(printable(&location.end_key))),
        ];
        let host = format!("{}:{}", location.host, location.port);
        self.output.record(&[&host, &region], &fields)?;
        self.print_count(1)?;
        Ok(None)
    }
}

/// The regions that `list_regions` shows.
#[derive(Debug, Default)]
struct RegionFilter {
    /// Prefix of the server's name.
    server: String,
    /// Maximum share of a region's data that is local. On one node the share is always 1.0.
    locality: Option<f64>,
}

impl RegionFilter {
    fn takes(&self, location: &RegionLocation) -> bool {
        server_name(location).starts_with(&self.server) && self.locality.is_none_or(|most| most >= 1.0)
    }
}

/// Parses the second argument of `list_regions`: a prefix of a server's name, or options.
fn region_filter(arguments: &mut Arguments) -> ShellResult<RegionFilter> {
    if let Some(server) = arguments.optional_bytes("a server")? {
        let server = text(server, "a server")?;
        let locality = None;
        return Ok(RegionFilter { server, locality });
    }
    let mut options = arguments.options()?;
    let server = options.text("SERVER_NAME")?.unwrap_or_default();
    let locality = options.text("LOCALITY_THRESHOLD")?.map(|most| {
        let number = most.parse().ok().filter(|most| (0.0..=1.0).contains(most));
        number.ok_or_else(|| {
            ShellError::Arguments(format!(
                "LOCALITY_THRESHOLD is '{most}', it must be from 0.0 to 1.0"
            ))
        })
    });
    let locality = locality.transpose()?;
    options.end(&["SERVER_NAME", "LOCALITY_THRESHOLD"])?;
    Ok(RegionFilter { server, locality })
}

/// Columns of `list_regions`. Without a list, all but the last are shown.
const REGION_COLUMNS: [&str; 7] = [
    "SERVER_NAME",
    "REGION_NAME",
    "START_KEY",
    "END_KEY",
    "SIZE",
    "REQ",
    "LOCALITY",
];

/// Parses the third argument of `list_regions`: the names of columns, in any case.
fn region_columns(arguments: &mut Arguments) -> ShellResult<Vec<&'static str>> {
    let Some(names) = arguments.take() else {
        return Ok(REGION_COLUMNS[..6].to_vec());
    };
    let names = list(names, "a column")?;
    let known = names.into_iter().map(|name| {
        let name = text(name, "a column")?;
        let known = REGION_COLUMNS
            .iter()
            .find(|known| known.eq_ignore_ascii_case(&name));
        known.copied().ok_or_else(|| {
            let all = REGION_COLUMNS.join(", ");
            ShellError::Arguments(format!("'{name}' is no column of list_regions; known are {all}"))
        })
    });
    known.collect()
}

/// Formats one column of a region.
fn region_cell(column: &str, location: &RegionLocation, metrics: Option<&RegionMetrics>) -> String {
    let of_region = |show: fn(&RegionMetrics) -> String| metrics.map(show).unwrap_or_default();
    match column {
        "SERVER_NAME" => server_name(location),
        "REGION_NAME" => of_region(|region| printable(&region.region_name)),
        "START_KEY" => printable(&location.start_key),
        "END_KEY" => printable(&location.end_key),
        "SIZE" => of_region(|region| ((region.store_file_bytes + region.memstore_bytes) >> 20).to_string()),
        "REQ" => of_region(|region| (region.read_requests + region.write_requests).to_string()),
        _ => "1.0".to_owned(),
    }
}

/// Whether this is the full name of a region, which has commas, and no table's.
fn is_region(name: &[u8]) -> bool {
    name.contains(&b',')
}

/// `host,port,startcode`, as HBase names servers.
fn server_name(location: &RegionLocation) -> String {
    format!("{},{},{}", location.host, location.port, location.start_code)
}
