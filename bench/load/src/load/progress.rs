//! The progress bar of a run. Drawn on a terminal only, which it detects itself.

use indicatif::{ProgressBar, ProgressStyle};

use super::Plan;

/// A bar for the rows of a run.
pub(super) fn bar(plan: &Plan) -> ProgressBar {
    let rows = plan
        .operations
        .and_then(|operations| operations.checked_mul(plan.rows_per_operation));
    let (bar, template) = match rows {
        Some(rows) => (
            ProgressBar::new(rows),
            "{prefix:>18} {wide_bar} {human_pos}/{human_len} rows, {per_sec}, {eta} left",
        ),
        None => (
            ProgressBar::no_length(),
            "{prefix:>18} {spinner} {human_pos} rows, {per_sec}",
        ),
    };
    let style = ProgressStyle::with_template(template).expect("a template of this file");
    bar.with_style(style).with_prefix(plan.label.clone())
}
