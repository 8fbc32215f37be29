//! `hot_rows`: the rows of a table that most requests go to.

use basalt_client::admin::{HotRow, HotRows};

use super::ShellError;
use super::arguments::Arguments;
use super::escape::{printable, timestamp};
use super::session::{Outcome, Session};

/// Rows of each kind without a number in the command.
const LIMIT: i64 = 10;

/// Columns of the list.
const COLUMNS: [&str; 6] = ["KIND", "ROW", "REQUESTS", "SHARE", "MAX_ERROR", "SINCE"];

impl Session {
    pub(super) async fn hot_rows(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        let limit = arguments.optional_integer("a number of rows")?.unwrap_or(LIMIT);
        arguments.end()?;
        let limit = i32::try_from(limit).map_err(|_| {
            ShellError::Arguments(format!("the number of rows is {limit}, which is too large"))
        })?;
        let hot = match self.admin.hot_rows(&table, limit).await {
            Err(error) if error.is_unknown_method() => {
                let text = "hot_rows needs a Basalt server; HBase has the metric of a region's requests, in its web page";
                return Err(ShellError::Refused(text.to_owned()));
            }
            hot => hot?,
        };
        let kinds = [("read", &hot.reads), ("write", &hot.writes)];
        let rows: Vec<Vec<String>> = kinds
            .iter()
            .flat_map(|(kind, of_kind)| of_kind.rows.iter().map(|row| cells(kind, of_kind, row)))
            .collect();
        self.output.grid(&COLUMNS, &rows)?;
        for (kind, of_kind) in kinds {
            let sampled = percent(of_kind.samples, of_kind.requests);
            self.output.note(&format!(
                "{} {kind}s of the table from {} to {}, sampled: {sampled}",
                of_kind.requests,
                timestamp(hot.from_ms),
                timestamp(hot.to_ms),
            ))?;
        }
        Ok(None)
    }
}

fn cells(kind: &str, of_kind: &HotRows, row: &HotRow) -> Vec<String> {
    vec![
        kind.to_owned(),
        printable(&row.row),
        row.requests.to_string(),
        percent(row.requests, of_kind.requests),
        row.max_error.to_string(),
        timestamp(row.since_ms),
    ]
}

/// A part of a whole, in percent.
fn percent(part: i64, whole: i64) -> String {
    if whole <= 0 {
        return "-".to_owned();
    }
    format!("{:.1} %", part as f64 * 100.0 / whole as f64)
}
