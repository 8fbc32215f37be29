//! Commands on regions and on the server. Most need Basalt's own calls; the others work on HBase, too.

use bytes::Bytes;

use super::ShellResult;
use super::arguments::{Arguments, list, text};
use super::escape::printable;
use super::session::{Outcome, Session};
use crate::admin::{Compaction, TRegionMetrics};
use crate::request::IntoBytes;
use crate::table::RegionLocation;

impl Session {
    pub(super) async fn flush(&mut self, mut arguments: Arguments) -> Outcome {
        let what = arguments.bytes("a table or region")?;
        arguments.end()?;
        let what = self.region_name(what).await?;
        if is_region(&what) {
            self.admin.flush_region(what).await?;
        } else {
            self.admin.flush(&text(what.into(), "a table")?).await?;
        }
        Ok(None)
    }

    pub(super) async fn compact(&mut self, mut arguments: Arguments, major: bool) -> Outcome {
        let what = arguments.bytes("a table or region")?;
        let family = arguments.optional_bytes("a family")?.map(Bytes::from);
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
            for name in list(value, "a region")? {
                names.push(self.region_name(name).await?);
            }
        }
        let merged = self.admin.merge(names).await?;
        self.output.line(&printable(&merged))?;
        Ok(None)
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
    async fn region_metrics(&self, table: &str) -> ShellResult<Option<Vec<TRegionMetrics>>> {
        match self.admin.regions(Some(table)).await {
            Ok(regions) => Ok(Some(regions)),
            Err(error) if error.is_unknown_method() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn list_regions(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        let locations = self.client.table(&table)?.regions().await?;
        let metrics = self.region_metrics(&table).await?.unwrap_or_default();
        let mut rows = vec![
            [
                "SERVER_NAME",
                "REGION_NAME",
                "START_KEY",
                "END_KEY",
                "SIZE",
                "REQ",
            ]
            .map(str::to_owned),
        ];
        for location in &locations {
            // HBase's Thrift does not tell names and load, so those columns stay empty there.
            let of_region = metrics
                .iter()
                .find(|region| region.start_key == location.start_key);
            let megabytes = |region: &TRegionMetrics| (region.store_file_bytes + region.memstore_bytes) >> 20;
            rows.push([
                server_name(location),
                of_region
                    .map(|region| printable(&region.region_name))
                    .unwrap_or_default(),
                printable(&location.start_key),
                printable(&location.end_key),
                of_region
                    .map(|region| megabytes(region).to_string())
                    .unwrap_or_default(),
                of_region
                    .map(|region| (region.read_requests + region.write_requests).to_string())
                    .unwrap_or_default(),
            ]);
        }
        self.print_grid(&rows)?;
        self.output.line(&format!(" {} rows", locations.len()))?;
        Ok(None)
    }

    /// Columns with bars between them, the first row as a header.
    pub(super) fn print_grid<const N: usize>(&mut self, rows: &[[String; N]]) -> ShellResult<()> {
        let widths: [usize; N] = std::array::from_fn(|column| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or_default()
        });
        for (index, row) in rows.iter().enumerate() {
            let cells = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!(" {cell:>width$} |"));
            self.output.line(&cells.collect::<String>())?;
            if index == 0 {
                let bars = widths.iter().map(|width| format!(" {} |", "-".repeat(*width)));
                self.output.line(&bars.collect::<String>())?;
            }
        }
        Ok(())
    }

    pub(super) async fn get_splits(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        let regions = self.client.table(&table)?.regions().await?;
        // HBase counts the regions here, not the keys between them.
        self.output
            .line(&format!("Total number of splits = {}", regions.len()))?;
        let keys = regions
            .iter()
            .map(|region| printable(&region.start_key))
            .filter(|key| !key.is_empty());
        let keys: Vec<String> = keys.collect();
        for key in &keys {
            self.output.line(key)?;
        }
        let quoted: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
        Ok(Some(format!("[{}]", quoted.join(", "))))
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
        self.output.header("HOST", "REGION")?;
        let region = format!(
            "{{{}STARTKEY => '{}', ENDKEY => '{}'}}",
            name.unwrap_or_default(),
            printable(&location.start_key),
            printable(&location.end_key)
        );
        self.output
            .row(&format!("{}:{}", location.host, location.port), &region)?;
        self.print_count(1)?;
        Ok(None)
    }

    pub(super) async fn status(&mut self, mut arguments: Arguments) -> Outcome {
        // HBase's 'simple', 'summary' and 'detailed' say more about a cluster; one server has one answer.
        if let Some(format) = arguments.optional_bytes("a format")? {
            text(format, "a format")?;
        }
        arguments.end()?;
        match self.admin.status().await {
            Ok(status) => {
                let servers = status.rehearsal_servers.as_ref().map_or(1, Vec::len);
                let average = f64::from(status.regions) / servers as f64;
                self.output.line(&format!(
                    "1 active master, 0 backup masters, {servers} servers, 0 dead, {average:.4} average load"
                ))?;
                self.output.line(&format!(
                    "version {}, up {} s, {} tables, {} regions, {} store files of {} bytes, {} bytes in memstores, \
                     {} scanners, {} flushes, {} compactions, {} background jobs",
                    status.version,
                    status.uptime_ms / 1000,
                    status.tables,
                    status.regions,
                    status.store_files,
                    status.store_file_bytes,
                    status.memstore_bytes,
                    status.open_scanners,
                    status.flushes,
                    status.compactions,
                    status.background_jobs
                ))?;
                if let Some(servers) = status.rehearsal_servers {
                    self.output.line(&format!(
                        "a rehearsal: this one server presents itself as {} virtual servers:",
                        servers.len()
                    ))?;
                    for server in servers {
                        self.output.line(&format!("  {server}"))?;
                    }
                }
            }
            Err(error) if error.is_unknown_method() => {
                let tables = self.client.list_tables(None).await?.len();
                let cluster = self.client.cluster_id().await?;
                self.output.line(&format!(
                    "cluster {cluster}, {tables} tables; HBase's Thrift server tells no more"
                ))?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }

    pub(super) async fn version(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        let shell = env!("CARGO_PKG_VERSION");
        let server = match self.admin.status().await {
            Ok(status) => format!("Basalt {}", status.version),
            Err(error) if error.is_unknown_method() => "HBase".to_owned(),
            Err(error) => return Err(error.into()),
        };
        self.output
            .line(&format!("basalt-shell {shell}, server {server}"))?;
        Ok(None)
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
