//! Commands on snapshots of tables, with the words of HBase's shell (`snapshot.rb`, `list_snapshots.rb`,
//! `delete_all_snapshot.rb` ...).

use super::arguments::{Arguments, text};
use super::escape::{printable, timestamp};
use super::session::{Outcome, Session};
use super::several::Results;
use super::{ShellError, ShellResult};
use basalt_client::admin::Snapshot;
use basalt_client::{Error, TableName};

impl Session {
    pub(super) async fn snapshot(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        let name = arguments.text("a snapshot")?;
        let mut options = arguments.options()?;
        arguments.end()?;
        let skip_flush = options.boolean("SKIP_FLUSH")?.unwrap_or_default();
        let ttl_seconds = options.integer("TTL")?.unwrap_or_default();
        options.end(&["SKIP_FLUSH", "TTL"])?;
        self.admin
            .snapshot(&table, &name, !skip_flush, ttl_seconds)
            .await?;
        Ok(None)
    }

    pub(super) async fn list_snapshots(&mut self, mut arguments: Arguments) -> Outcome {
        let pattern = optional_pattern(&mut arguments)?;
        arguments.end()?;
        let snapshots = self.admin.snapshots(pattern, None).await?;
        self.output
            .header("SNAPSHOT", "TABLE + CREATION TIME + TTL(Sec)")?;
        for snapshot in &snapshots {
            let ttl = match snapshot.ttl_seconds {
                0 => "FOREVER".to_owned(),
                seconds => seconds.to_string(),
            };
            let info = format!("{} {ttl}", table_and_time(snapshot));
            self.output.row(&snapshot.name, &info)?;
        }
        self.print_count(snapshots.len())?;
        let names: Vec<String> = snapshots
            .iter()
            .map(|snapshot| format!("\"{}\"", snapshot.name))
            .collect();
        Ok(Some(format!("[{}]", names.join(", "))))
    }

    pub(super) async fn list_table_snapshots(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a pattern of tables")?;
        let name = optional_pattern(&mut arguments)?;
        arguments.end()?;
        let snapshots = self.admin.snapshots(name, Some(table)).await?;
        self.print_snapshots(&snapshots)?;
        self.print_count(snapshots.len())?;
        Ok(None)
    }

    pub(super) async fn clone_snapshot(&mut self, mut arguments: Arguments) -> Outcome {
        let name = arguments.text("a snapshot")?;
        let table = arguments.text("a table")?;
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
            self.output.line(&nothing)?;
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
            self.output.line(&format!(
                "No snapshots matched the table name regular expression {table} and the snapshot name regular expression {}",
                name.as_deref().unwrap_or(".*")
            ))?;
            return Ok(None);
        }
        self.delete_listed(&snapshots).await
    }

    /// Shows snapshots, asks a person whether they are to go, and deletes them.
    async fn delete_listed(&mut self, snapshots: &[Snapshot]) -> Outcome {
        self.print_snapshots(snapshots)?;
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

    fn print_snapshots(&mut self, snapshots: &[Snapshot]) -> ShellResult<()> {
        self.output.header("SNAPSHOT", "TABLE + CREATION TIME")?;
        for snapshot in snapshots {
            self.output.row(&snapshot.name, &table_and_time(snapshot))?;
        }
        Ok(())
    }
}

fn optional_pattern(arguments: &mut Arguments) -> ShellResult<Option<String>> {
    let pattern = arguments.optional_bytes("a pattern")?;
    pattern.map(|pattern| text(pattern, "a pattern")).transpose()
}

fn table_and_time(snapshot: &Snapshot) -> String {
    format!(
        "{} ({})",
        printable(&snapshot.table_name),
        timestamp(snapshot.created_ms)
    )
}
