//! Commands on snapshots of tables, with the words of HBase's shell (`snapshot.rb`, `list_snapshots.rb`,
//! `delete_all_snapshot.rb` ...).

use super::arguments::{Arguments, Options};
use super::escape::{printable, timestamp};
use super::session::{Outcome, Session};
use super::several::Results;
use super::value::Value;
use super::{ShellError, ShellResult};
use basalt_client::admin::Snapshot;
use basalt_client::{Error, TableName};

const TABLE_AND_TIME: &str = "TABLE + CREATION TIME";

impl Session {
    pub(super) async fn snapshot(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        let name = arguments.text("a snapshot")?;
        let mut options = arguments.options()?;
        arguments.end()?;
        let skip_flush = options.boolean("SKIP_FLUSH")?.unwrap_or_default();
        let ttl_seconds = options.integer("TTL")?.unwrap_or_default();
        // A clone has the limit of its table, not one of the snapshot.
        options.integer("MAX_FILESIZE")?;
        options.end(&["SKIP_FLUSH", "TTL", "MAX_FILESIZE"])?;
        self.admin
            .snapshot(&table, &name, !skip_flush, ttl_seconds)
            .await?;
        Ok(None)
    }

    pub(super) async fn list_snapshots(&mut self, mut arguments: Arguments) -> Outcome {
        let pattern = optional_pattern(&mut arguments)?;
        arguments.end()?;
        let snapshots = self.admin.snapshots(pattern, None).await?;
        self.print_snapshots("TABLE + CREATION TIME + TTL(Sec)", &snapshots, |snapshot| {
            let ttl = match snapshot.ttl_seconds {
                0 => "FOREVER".to_owned(),
                seconds => seconds.to_string(),
            };
            format!("{} {ttl}", table_and_time(snapshot))
        })?;
        self.print_count(snapshots.len())?;
        let names = snapshots.iter().map(|snapshot| &snapshot.name[..]);
        Ok(Some(names.collect()))
    }

    pub(super) async fn list_table_snapshots(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a pattern of tables")?;
        let name = optional_pattern(&mut arguments)?;
        arguments.end()?;
        let snapshots = self.admin.snapshots(name, Some(table)).await?;
        self.print_snapshots(TABLE_AND_TIME, &snapshots, table_and_time)?;
        self.print_count(snapshots.len())?;
        Ok(None)
    }

    pub(super) async fn clone_snapshot(&mut self, mut arguments: Arguments) -> Outcome {
        let name = arguments.text("a snapshot")?;
        let table = arguments.text("a table")?;
        restore_options(arguments.options()?)?;
        arguments.end()?;
        let parsed: TableName = table.parse()?;
        // The server says as little of a table that exists, or a namespace that does not, as HBase does.
        match self.admin.clone_snapshot(&name, &table).await {
            Err(Error::Server { message, .. }) if message == parsed.to_string() => {
                Err(ShellError::Refused(format!("Table already exists: {table}!")))
            }
            Err(Error::Server { message, .. }) if message == parsed.namespace() => {
                Err(ShellError::Refused(format!("Unknown namespace {message}!")))
            }
            done => Ok(done.map(|()| None)?),
        }
    }

    pub(super) async fn restore_snapshot(&mut self, mut arguments: Arguments) -> Outcome {
        let name = arguments.text("a snapshot")?;
        restore_options(arguments.options()?)?;
        arguments.end()?;
        self.admin.restore_snapshot(&name).await?;
        Ok(None)
    }

    pub(super) async fn delete_snapshot(&mut self, mut arguments: Arguments) -> Outcome {
        let name = arguments.text("a snapshot")?;
        arguments.end()?;
        self.admin.delete_snapshot(&name).await?;
        Ok(None)
    }

    pub(super) async fn delete_all_snapshots(&mut self, mut arguments: Arguments) -> Outcome {
        let pattern = arguments.text("a pattern")?;
        arguments.end()?;
        let snapshots = self.admin.snapshots(Some(pattern.clone()), None).await?;
        if snapshots.is_empty() {
            let nothing = format!("No snapshots matched the regex {pattern}");
            self.output.note(&nothing)?;
            return Ok(None);
        }
        self.delete_listed(&snapshots).await
    }

    pub(super) async fn delete_table_snapshots(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a pattern of tables")?;
        let name = optional_pattern(&mut arguments)?;
        arguments.end()?;
        let snapshots = self.admin.snapshots(name.clone(), Some(table.clone())).await?;
        if snapshots.is_empty() {
            self.output.note(&format!(
                "No snapshots matched the table name regular expression {table} and the snapshot name regular expression {}",
                name.as_deref().unwrap_or(".*")
            ))?;
            return Ok(None);
        }
        self.delete_listed(&snapshots).await
    }

    /// Shows snapshots, asks a person whether they are to go, and deletes them.
    async fn delete_listed(&mut self, snapshots: &[Snapshot]) -> Outcome {
        self.print_snapshots(TABLE_AND_TIME, snapshots, table_and_time)?;
        if !self.is_agreed_for("Delete", snapshots.len(), "snapshots")? {
            return Ok(None);
        }
        let mut results = Results::default();
        for snapshot in snapshots {
            let deleted = self.admin.delete_snapshot(&snapshot.name).await;
            results.add(&snapshot.name, deleted);
        }
        self.tell(&results, "snapshots successfully deleted.", |count| {
            format!("Failed to delete {count} snapshots")
        })
    }

    fn print_snapshots(
        &mut self,
        header: &str,
        snapshots: &[Snapshot],
        info: impl Fn(&Snapshot) -> String,
    ) -> ShellResult<()> {
        self.output.header(&["SNAPSHOT", header])?;
        for snapshot in snapshots {
            let fields = [
                ("snapshot", Value::text(&snapshot.name)),
                ("table", Value::text(printable(&snapshot.table_name))),
                ("created", Value::Integer(snapshot.created_ms)),
                ("ttl_seconds", Value::Integer(snapshot.ttl_seconds)),
                ("bytes", Value::Integer(snapshot.bytes)),
            ];
            self.output.record(&[&snapshot.name, &info(snapshot)], &fields)?;
        }
        Ok(())
    }
}

fn optional_pattern(arguments: &mut Arguments) -> ShellResult<Option<String>> {
    arguments.optional_text("a pattern")
}

/// Checks the options of a restored snapshot. Without access control RESTORE_ACL has nothing to restore.
fn restore_options(mut options: Options) -> ShellResult<()> {
    options.boolean("RESTORE_ACL")?;
    if let Some(tracker) = options.text("CLONE_SFT")?
        && tracker != "DEFAULT"
    {
        return Err(ShellError::Arguments(format!(
            "CLONE_SFT is '{tracker}', and a clone begins with DEFAULT; change_sft 't', '{tracker}' sets it afterwards"
        )));
    }
    options.end(&["RESTORE_ACL", "CLONE_SFT"])
}

fn table_and_time(snapshot: &Snapshot) -> String {
    format!(
        "{} ({})",
        printable(&snapshot.table_name),
        timestamp(snapshot.created_ms)
    )
}
