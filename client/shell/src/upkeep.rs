//! Commands on work in the background, on the block cache and on the slow log.

use std::collections::BTreeSet;

use basalt_idl::thrift2::args::{ClearSlowLogResponses, GetSlowLogResponses};
use basalt_idl::thrift2::{TFilterByOperator, TLogQueryFilter, TLogType, TOnlineLogRecord, TServerName};

use super::arguments::{Arguments, list, text};
use super::escape::timestamp;
use super::session::{Outcome, Session, unknown_table};
use super::value::Value;
use super::{ShellError, ShellResult};
use basalt_client::TableName;
use basalt_client::admin::{BackgroundWork, JobKind, RunningJob};

/// The options of `get_slowlog_responses`, as HBase's shell has them.
const LOG_OPTIONS: [&str; 6] = [
    "REGION_NAME",
    "TABLE_NAME",
    "CLIENT_IP",
    "USER",
    "LIMIT",
    "FILTER_BY_OP",
];

/// The columns of `processlist`.
const JOB_COLUMNS: [&str; 7] = ["JOB", "TABLE", "REGION", "FAMILY", "BYTES", "LEFT", "SECONDS"];

pub(super) fn kind_name(kind: JobKind) -> &'static str {
    match kind {
        JobKind::FLUSH => "flush",
        JobKind::MINOR_COMPACTION => "minor compaction",
        JobKind::MAJOR_COMPACTION => "major compaction",
        _ => "a kind that this shell does not know",
    }
}

impl Session {
    /// Turns flushes or compactions on or off and prints, as HBase's `compaction_switch`, whether they were
    /// on before.
    pub(super) async fn switch(&mut self, mut arguments: Arguments, work: BackgroundWork) -> Outcome {
        let on = arguments.boolean("true or false")?;
        if let Some(servers) = arguments.take() {
            for server in list(servers, "a server")? {
                self.check_server(&text(server, "a server")?).await?;
            }
        }
        arguments.end()?;
        let was_paused = self.admin.pause(work, !on).await?;
        let server = self.admin.status().await?.thrift_address.unwrap_or_default();
        self.output.header(&["SERVER_NAME", "PREV_STATE"])?;
        let before = Value::Bool(!was_paused);
        let fields = [
            ("server_name", Value::text(&server)),
            ("prev_state", before.clone()),
        ];
        self.output.record(&[&server, &before.to_string()], &fields)?;
        Ok(Some(before))
    }

    /// The kinds of compaction of a table that run now, in HBase's words.
    pub(super) async fn compaction_state(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        if !self.client.table_exists(&table).await? {
            return Err(ShellError::Refused(unknown_table(&table)));
        }
        let name: TableName = table.parse()?;
        let state = self.admin.background().await?;
        let runs = |kind| {
            let mut jobs = state.running.iter();
            jobs.any(|job| job.kind == kind && job.table_name == name.to_string())
        };
        let state = match (runs(JobKind::MINOR_COMPACTION), runs(JobKind::MAJOR_COMPACTION)) {
            (false, false) => "NONE",
            (true, false) => "MINOR",
            (false, true) => "MAJOR",
            (true, true) => "MAJOR_AND_MINOR",
        };
        self.print_answer(state, Value::text(state))
    }

    /// Running flushes and compactions, with the remaining work of each.
    pub(super) async fn process_list(&mut self, mut arguments: Arguments) -> Outcome {
        // HBase's filters, 'all', 'general', 'handler', 'rpc' and 'operation', choose among tasks of kinds
        // that are all shown here.
        arguments.optional_text("a filter")?;
        arguments.end()?;
        let state = self.admin.background().await?;
        let rows: Vec<_> = state.running.iter().map(job_row).collect();
        self.output.grid(&JOB_COLUMNS, &rows)?;
        self.output.note(&format!(
            " {} jobs run; {} flushes, {} compactions and {} splits wait or run",
            state.running.len(),
            state.flushes,
            state.compactions,
            state.splits
        ))?;
        for (what, paused) in [
            ("Flushes", state.flushes_paused),
            ("Compactions", state.compactions_paused),
        ] {
            if paused {
                self.output.note(&format!(" {what} are paused."))?;
            }
        }
        Ok(None)
    }

    pub(super) async fn clear_block_cache(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.optional_text("a table")?;
        arguments.end()?;
        let evicted = self.admin.clear_block_cache(table.as_deref()).await?;
        self.print_answer(&format!("evictedBlocks={evicted}"), Value::Integer(evicted))
    }

    /// Records of the slow log, the newest first.
    pub(super) async fn slow_log(&mut self, mut arguments: Arguments, log_type: TLogType) -> Outcome {
        let server_names = self.log_servers(&mut arguments).await?;
        let mut options = arguments.options()?;
        arguments.end()?;
        let mut filter = TLogQueryFilter {
            log_type,
            region_name: options.text("REGION_NAME")?,
            table_name: options.text("TABLE_NAME")?,
            client_address: options.text("CLIENT_IP")?,
            user_name: options.text("USER")?,
            ..TLogQueryFilter::default()
        };
        if let Some(limit) = options.integer32("LIMIT")? {
            filter.limit = limit;
        }
        match options.text("FILTER_BY_OP")?.as_deref() {
            None => {}
            Some("AND") => filter.filter_by_operator = TFilterByOperator::AND,
            Some("OR") => filter.filter_by_operator = TFilterByOperator::OR,
            Some(other) => {
                let text = format!("FILTER_BY_OP is '{other}', it must be 'AND' or 'OR'");
                return Err(ShellError::Arguments(text));
            }
        }
        options.end(&LOG_OPTIONS)?;
        let call = GetSlowLogResponses {
            server_names: Some(server_names),
            log_query_filter: Some(filter),
        };
        let records = self.client.call(&call).await?;
        self.output.header(&["BEGAN", "CALL"])?;
        for record in &records {
            let columns = [timestamp(record.start_time), record_text(record)];
            let columns = columns.each_ref().map(String::as_str);
            self.output.record(&columns, &record_fields(record))?;
        }
        self.output.note(&format!("{} call(s)", records.len()))?;
        Ok(None)
    }

    pub(super) async fn clear_slow_log(&mut self, mut arguments: Arguments) -> Outcome {
        let server_names = Some(self.log_servers(&mut arguments).await?);
        arguments.end()?;
        let cleared = self.client.call(&ClearSlowLogResponses { server_names }).await?;
        let count = cleared.iter().filter(|cleared| **cleared).count();
        self.output.note(&format!(
            "Cleared Slowlog responses from {count}/{} RegionServers",
            cleared.len()
        ))?;
        Ok(None)
    }

    /// The named servers, as `host,port,startcode`; with `'*'` or none, the one that has
    /// `hbase:meta`, which on one node has everything.
    async fn log_servers(&self, arguments: &mut Arguments) -> ShellResult<BTreeSet<TServerName>> {
        let mut named = Vec::new();
        if !arguments.next_is_options()
            && let Some(value) = arguments.take()
        {
            named = list(value, "a server")?;
        }
        if named.is_empty() || named == [b"*"] {
            return self.server_of_meta().await;
        }
        named.into_iter().map(server_name).collect()
    }

    async fn server_of_meta(&self) -> ShellResult<BTreeSet<TServerName>> {
        let regions = self.client.table("hbase:meta")?.regions().await?;
        let name = |at: basalt_client::RegionLocation| TServerName {
            host_name: at.host,
            port: Some(at.port),
            start_code: Some(at.start_code),
        };
        Ok(regions.into_iter().take(1).map(name).collect())
    }

    /// Checks that a server is the one there is. HBase takes `host,port` and `host:port`, too.
    pub(super) async fn check_server(&self, server: &str) -> ShellResult<()> {
        let named = server.replace(':', ",");
        for known in self.server_of_meta().await? {
            let start_code = known.start_code.unwrap_or_default();
            let name = format!(
                "{},{},{start_code}",
                known.host_name,
                known.port.unwrap_or_default()
            );
            if name == named || name.starts_with(&format!("{named},")) {
                return Ok(());
            }
        }
        let text = format!("'{server}' is no server of this one; list_liveservers has its name");
        Err(ShellError::Arguments(text))
    }
}

/// `host,port,startcode` taken apart.
fn server_name(name: Vec<u8>) -> ShellResult<TServerName> {
    let name = text(name, "a server")?;
    let parts: Vec<&str> = name.split(',').collect();
    if let [host, port, start_code] = parts[..]
        && let (Ok(port), Ok(start_code)) = (port.parse(), start_code.parse())
    {
        return Ok(TServerName {
            host_name: host.to_owned(),
            port: Some(port),
            start_code: Some(start_code),
        });
    }
    let text = format!("'{name}' is no server: they are called host,port,startcode; '*' is all");
    Err(ShellError::Arguments(text))
}

fn job_row(job: &RunningJob) -> Vec<String> {
    vec![
        kind_name(job.kind).to_owned(),
        String::from_utf8_lossy(&job.table_name).into_owned(),
        job.encoded_name.clone().unwrap_or_default(),
        job.family.clone().unwrap_or_default(),
        job.input_bytes.to_string(),
        job.left_bytes.to_string(),
        (job.took_ms / 1000).to_string(),
    ]
}

/// A record of the slow log for programs.
fn record_fields(record: &TOnlineLogRecord) -> [(&'static str, Value); 7] {
    [
        ("began", Value::Integer(record.start_time)),
        ("method", Value::text(&record.method_name)),
        ("took_ms", Value::Integer(record.processing_time.into())),
        ("answer_bytes", Value::Integer(record.response_size)),
        ("client", Value::text(&record.client_address)),
        (
            "region",
            record.region_name.as_ref().map_or(Value::Nil, Value::text),
        ),
        ("arguments", Value::text(&record.param)),
    ]
}

fn record_text(record: &TOnlineLogRecord) -> String {
    let region = record.region_name.as_deref().unwrap_or("-");
    format!(
        "{} took {} ms, answer of {} bytes, client {}, region {region}, {}",
        record.method_name, record.processing_time, record.response_size, record.client_address, record.param
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_by_three_parts() {
        let name = server_name(b"h.example,9090,17".to_vec()).unwrap();
        assert_eq!(
            (&name.host_name[..], name.port, name.start_code),
            ("h.example", Some(9090), Some(17))
        );
        for wrong in ["h", "h,9090", "h,x,17", "h,9090,17,1"] {
            let error = server_name(wrong.into()).unwrap_err().to_string();
            assert!(error.contains(&format!("'{wrong}' is no server")), "{error}");
        }
    }
}
