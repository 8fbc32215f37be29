//! `status` in the forms of HBase's shell, `version` and `whoami`.

use basalt_idl::native::messages::{ClusterStatus, LiveServerInfo, RegionLoad, ServerLoad, ServerName};

use super::ShellError;
use super::arguments::Arguments;
use super::backend::Api;
use super::escape::{printable, timestamp};
use super::session::{Outcome, Session};
use super::value::Value;
use basalt_client::admin::{RunningJob, ServerStatus};

/// Which side of replication `status 'replication'` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Both,
    Source,
    Sink,
}

impl Session {
    pub(super) async fn status(&mut self, mut arguments: Arguments) -> Outcome {
        let form = arguments.optional_text("a form")?;
        let form = form.as_deref().unwrap_or("summary");
        let side = match (form, arguments.optional_text("a side")?.as_deref()) {
            (_, None) => Side::Both,
            ("replication", Some("source")) => Side::Source,
            ("replication", Some("sink")) => Side::Sink,
            (_, Some(other)) => {
                let text = format!("'{other}' is neither 'source' nor 'sink' of status 'replication'");
                return Err(ShellError::Arguments(text));
            }
        };
        arguments.end()?;
        match form {
            "summary" => self.status_summary().await,
            "simple" => {
                let status = self.cluster_status().await?;
                self.print_lines(&simple(&status))
            }
            "detailed" => {
                let status = self.cluster_status().await?;
                self.print_lines(&detailed(&status))
            }
            "replication" => {
                let status = self.cluster_status().await?;
                self.print_lines(&replication(&status, side))
            }
            "tasks" => {
                let status = self.cluster_status().await?;
                let jobs = if self.is_basalt().await? {
                    self.admin.background().await?.running
                } else {
                    Vec::new()
                };
                self.print_lines(&tasks(&status, &jobs))
            }
            other => {
                let text = format!(
                    "the form is '{other}', which is none of summary, simple, detailed, replication, tasks"
                );
                Err(ShellError::Arguments(text))
            }
        }
    }

    fn print_lines(&mut self, lines: &[String]) -> Outcome {
        for line in lines {
            self.output.line(line)?;
        }
        Ok(None)
    }

    async fn status_summary(&mut self) -> Outcome {
        if self.is_basalt().await? {
            let status = self.admin.status().await?;
            return self.print_lines(&summary(&status));
        }
        if self.client.api == Api::Native {
            let status = self.cluster_status().await?;
            return self.print_lines(&[totals(&status)]);
        }
        let tables = self.client.list_tables(None).await?.len();
        let cluster = self.client.cluster_id().await?;
        self.print_lines(&[format!(
            "cluster {cluster}, {tables} tables; HBase's Thrift server tells no more"
        )])
    }

    pub(super) async fn version(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        let server = if self.is_basalt().await? {
            format!("Basalt {}", self.admin.status().await?.version)
        } else if self.client.api == Api::Native {
            let version = self.cluster_status().await?.hbase_version;
            format!("HBase {}", version.map(|file| file.version).unwrap_or_default())
        } else {
            "HBase".to_owned()
        };
        let text = format!("basalt-shell {}, server {server}", env!("CARGO_PKG_VERSION"));
        self.print_answer(&text, Value::text(&text))?;
        Ok(None)
    }

    /// Prints the user as whom calls are made. Thrift calls name none without a login.
    pub(super) fn whoami(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        let options = self.client.cluster.options();
        let method = options.security.method();
        if method != "SIMPLE" {
            let Some(user) = options.security.user() else {
                let text = "the user that the certificate or token of this shell proves to the server, which names none \
                            that the shell can read";
                return self.print_answer(text, Value::text(text));
            };
            return self.print_answer(&format!("{user} (auth:{method})"), Value::text(user));
        }
        let user = &options.user;
        let (text, value) = (format!("{user} (auth:SIMPLE)"), Value::text(user));
        self.output.answer(&text, &value)?;
        self.output.note(match self.client.api {
            Api::Native => "    the name is not checked; quotas of users count it",
            Api::Thrift => {
                "    calls over Thrift name no user, quotas count them as the setting quota.user; --api native names this one"
            }
        })?;
        Ok(None)
    }
}

/// The server at a glance: HBase's line, and one of figures.
fn summary(status: &ServerStatus) -> Vec<String> {
    let servers = status.rehearsal_servers.as_ref().map_or(1, Vec::len);
    let average = f64::from(status.regions) / servers as f64;
    let mut lines = vec![
        format!("1 active master, 0 backup masters, {servers} servers, 0 dead, {average:.4} average load"),
        format!(
            "version {}, up {} s, {} tables, {} regions, {} store files of {} bytes, {} bytes in memstores, {} scanners, \
             {} flushes, {} compactions, {} background jobs",
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
        ),
    ];
    if let Some(servers) = &status.rehearsal_servers {
        lines.push(format!(
            "a rehearsal: this one server presents itself as {} virtual servers:",
            servers.len()
        ));
        lines.extend(servers.iter().map(|server| format!("  {server}")));
    }
    lines
}

fn regions(status: &ClusterStatus) -> usize {
    let live = status.live_servers.iter();
    live.map(|live| live.server_load.region_loads.len()).sum()
}

fn totals(status: &ClusterStatus) -> String {
    let servers = status.live_servers.len();
    let average = regions(status) as f64 / servers.max(1) as f64;
    format!(
        "{} active master, {} backup masters, {servers} servers, {} dead, {average:.4} average load",
        u8::from(status.master.is_some()),
        status.backup_masters.len(),
        status.dead_servers.len()
    )
}

/// `host:port startcode`, as in HBase's forms of the status.
fn name(server: &ServerName) -> String {
    let (port, start_code) = (
        server.port.unwrap_or_default(),
        server.start_code.unwrap_or_default(),
    );
    format!("{}:{port} {start_code}", server.host_name)
}

/// The masters, the head of each form.
fn masters(status: &ClusterStatus) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(
        status
            .master
            .as_ref()
            .map(|master| format!("active master:  {}", name(master))),
    );
    lines.push(format!("{} backup masters", status.backup_masters.len()));
    lines.extend(
        status
            .backup_masters
            .iter()
            .map(|master| format!("    {}", name(master))),
    );
    lines
}

fn live(status: &ClusterStatus) -> String {
    format!("{} live servers", status.live_servers.len())
}

fn dead(status: &ClusterStatus) -> Vec<String> {
    let mut lines = vec![format!("{} dead servers", status.dead_servers.len())];
    lines.extend(
        status
            .dead_servers
            .iter()
            .map(|server| format!("    {}", name(server))),
    );
    lines
}

fn simple(status: &ClusterStatus) -> Vec<String> {
    let mut lines = masters(status);
    lines.push(live(status));
    for LiveServerInfo { server, server_load } in &status.live_servers {
        lines.push(format!("    {}", name(server)));
        lines.push(format!("        {}", of_server(server_load)));
    }
    lines.extend(dead(status));
    let requests: u64 = status
        .live_servers
        .iter()
        .map(|live| live.server_load.number_of_requests())
        .sum();
    lines.push(format!(
        "Aggregate load: {requests}, regions: {}",
        regions(status)
    ));
    lines
}

fn detailed(status: &ClusterStatus) -> Vec<String> {
    let version = status.hbase_version.as_ref();
    let mut lines = vec![
        format!(
            "version {}",
            version.map(|file| &file.version[..]).unwrap_or_default()
        ),
        format!("{} regionsInTransition", status.regions_in_transition.len()),
    ];
    lines.extend(masters(status));
    lines.push(live(status));
    for LiveServerInfo { server, server_load } in &status.live_servers {
        lines.push(format!("    {}", name(server)));
        lines.push(format!("        {}", of_server(server_load)));
        for region in &server_load.region_loads {
            lines.push(format!(
                "        \"{}\"",
                printable(&region.region_specifier.value)
            ));
            lines.push(format!("            {}", of_region(region)));
        }
    }
    lines.extend(dead(status));
    lines
}

fn of_server(load: &ServerLoad) -> String {
    let sum = |of: fn(&RegionLoad) -> u64| -> u64 { load.region_loads.iter().map(of).sum() };
    format!(
        "requestsPerSecond={}, totalRequests={}, numberOfOnlineRegions={}, usedHeapMB={}, maxHeapMB={}, \
         numberOfStores={}, numberOfStorefiles={}, storefileSizeMB={}, memstoreSizeMB={}, readRequestsCount={}, \
         writeRequestsCount={}",
        load.number_of_requests(),
        load.total_number_of_requests(),
        load.region_loads.len(),
        load.used_heap_mb(),
        load.max_heap_mb(),
        sum(|region| region.stores().into()),
        sum(|region| region.storefiles().into()),
        sum(|region| region.storefile_size_mb().into()),
        sum(|region| region.mem_store_size_mb().into()),
        sum(RegionLoad::read_requests_count),
        sum(RegionLoad::write_requests_count),
    )
}

fn of_region(load: &RegionLoad) -> String {
    let compacted = match load.last_major_compaction_ts() {
        0 => "never".to_owned(),
        at => timestamp(at as i64),
    };
    format!(
        "numberOfStores={}, numberOfStorefiles={}, storefileSizeMB={}, storeUncompressedSizeMB={}, memstoreSizeMB={}, \
         storefileIndexSizeKB={}, readRequestsCount={}, writeRequestsCount={}, filteredReadRequestsCount={}, \
         lastMajorCompaction={compacted}, dataLocality={:.1}",
        load.stores(),
        load.storefiles(),
        load.storefile_size_mb(),
        load.store_uncompressed_size_mb(),
        load.mem_store_size_mb(),
        load.storefile_index_size_kb(),
        load.read_requests_count(),
        load.write_requests_count(),
        load.filtered_read_requests_count(),
        load.data_locality(),
    )
}

fn replication(status: &ClusterStatus, side: Side) -> Vec<String> {
    let version = status.hbase_version.as_ref();
    let mut lines = vec![
        format!(
            "version {}",
            version.map(|file| &file.version[..]).unwrap_or_default()
        ),
        live(status),
    ];
    for LiveServerInfo { server, server_load } in &status.live_servers {
        lines.push(format!("    {}:", server.host_name));
        if side != Side::Sink {
            let sources = &server_load.repl_load_source;
            lines.extend(sources.iter().map(|source| {
                format!(
                    "       SOURCE: PeerID={}, SizeOfLogQueue={}, Replication Lag={}",
                    source.peer_id, source.size_of_log_queue, source.replication_lag
                )
            }));
            if sources.is_empty() {
                lines.push("       SOURCE: none, there are no replication peers".to_owned());
            }
        }
        if let Some(sink) = server_load
            .repl_load_sink
            .as_ref()
            .filter(|_| side != Side::Source)
        {
            lines.push(format!(
                "       SINK: TimeStampStarted={}, edits={}",
                sink.timestamp_started(),
                sink.total_ops_processed()
            ));
        }
    }
    lines
}

/// The tasks that servers report, and the flushes and compactions that run.
fn tasks(status: &ClusterStatus, jobs: &[RunningJob]) -> Vec<String> {
    let mut lines = vec![live(status)];
    for LiveServerInfo { server, server_load } in &status.live_servers {
        lines.push(format!("    {}", name(server)));
        let tasks = server_load.tasks.iter();
        lines.extend(tasks.map(|task| format!("        {} ({})", task.description, task.status)));
    }
    lines.extend(jobs.iter().map(|job| {
        format!(
            "        {} of {}: {} of {} bytes left, {} s",
            super::upkeep::kind_name(job.kind),
            printable(&job.table_name),
            job.left_bytes,
            job.input_bytes,
            job.took_ms / 1000
        )
    }));
    if jobs.is_empty()
        && status
            .live_servers
            .iter()
            .all(|live| live.server_load.tasks.is_empty())
    {
        lines.push("        no active tasks".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use basalt_idl::native::messages::{HBaseVersionFileContent, RegionSpecifier, ServerTask};

    use super::*;

    fn status() -> ClusterStatus {
        let server = ServerName {
            host_name: "h".to_owned(),
            port: Some(1),
            start_code: Some(17),
        };
        let region = RegionLoad {
            region_specifier: RegionSpecifier {
                value: b"t,\x00,5.abc."[..].into(),
                ..RegionSpecifier::default()
            },
            stores: Some(2),
            read_requests_count: Some(7),
            ..RegionLoad::default()
        };
        ClusterStatus {
            hbase_version: Some(HBaseVersionFileContent {
                version: "2.6".to_owned(),
            }),
            master: Some(server.clone()),
            live_servers: vec![LiveServerInfo {
                server,
                server_load: ServerLoad {
                    number_of_requests: Some(3),
                    region_loads: vec![region],
                    ..ServerLoad::default()
                },
            }],
            ..ClusterStatus::default()
        }
    }

    #[test]
    fn each_form_has_its_content() {
        let mut status = status();
        assert_eq!(
            totals(&status),
            "1 active master, 0 backup masters, 1 servers, 0 dead, 1.0000 average load"
        );
        let lines = simple(&status);
        assert_eq!(
            lines[..4],
            [
                "active master:  h:1 17",
                "0 backup masters",
                "1 live servers",
                "    h:1 17"
            ]
        );
        assert!(lines[4].contains("numberOfOnlineRegions=1") && lines[4].contains("readRequestsCount=7"));
        assert_eq!(lines[5..], ["0 dead servers", "Aggregate load: 3, regions: 1"]);
        let lines = detailed(&status);
        assert_eq!(lines[0], "version 2.6");
        assert_eq!(lines[7], "        \"t,\\x00,5.abc.\"");
        assert!(lines[8].contains("numberOfStores=2") && lines[8].contains("lastMajorCompaction=never"));
        assert!(replication(&status, Side::Both)[3].contains("SOURCE: none"));
        assert_eq!(replication(&status, Side::Sink).len(), 3);
        assert_eq!(tasks(&status, &[]).last().unwrap(), "        no active tasks");
        status.live_servers[0].server_load.tasks.push(ServerTask {
            description: "Flushing".to_owned(),
            status: "writing".to_owned(),
            ..ServerTask::default()
        });
        assert_eq!(tasks(&status, &[]).last().unwrap(), "        Flushing (writing)");
    }
}
