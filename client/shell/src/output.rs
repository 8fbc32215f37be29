//! Two columns, as HBase's shell prints them.
//!
//! ```text
//! ROW                      COLUMN+CELL
//!  row key                 column=f:q, timestamp=2026-11-21T10:26:00.120, value=v
//! ```
//!
//! The first column takes a quarter of the width. On a terminal, texts that do not fit are wrapped
//! within their column; elsewhere they are printed whole, so that scripts can read them.

use std::io::{Result, Write};

/// Width where there is no terminal.
const DEFAULT_WIDTH: usize = 100;

/// Where output goes and how wide it is.
pub struct Output {
    to: Box<dyn Write + Send>,
    /// Columns of the terminal, `None` elsewhere.
    width: Option<usize>,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

impl Output {
    /// Output to `to`, not a terminal.
    pub fn new(to: Box<dyn Write + Send>) -> Output {
        Output { to, width: None }
    }

    /// Sets the width of the terminal.
    pub fn set_width(&mut self, width: Option<usize>) {
        self.width = width.filter(|width| *width >= 20);
    }

    /// One line.
    pub fn line(&mut self, text: &str) -> Result<()> {
        writeln!(self.to, "{text}")
    }

    /// Hands everything on.
    pub fn flush(&mut self) -> Result<()> {
        self.to.flush()
    }

    /// The names of two columns.
    pub fn header(&mut self, left: &str, right: &str) -> Result<()> {
        let width = self.left_width() + 1;
        self.line(format!("{left:width$} {right}").trim_end())
    }

    /// Two columns.
    pub fn row(&mut self, left: &str, right: &str) -> Result<()> {
        let left_width = self.left_width();
        let Some(width) = self.width else {
            return self.line(format!(" {left:left_width$} {right}").trim_end());
        };
        let (left, right) = (cut(left, left_width), cut(right, width - left_width - 2));
        for index in 0..left.len().max(right.len()) {
            let left = left.get(index).map_or("", String::as_str);
            let right = right.get(index).map_or("", String::as_str);
            self.line(format!(" {left:left_width$} {right}").trim_end())?;
        }
        Ok(())
    }

    fn left_width(&self) -> usize {
        self.width.unwrap_or(DEFAULT_WIDTH) / 4
    }
}

/// Pieces of at most `width` characters.
fn cut(text: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(width.max(1))
        .map(|piece| piece.iter().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("abcdefg", 3), ["abc", "def", "g"]);
        assert!(cut("", 3).is_empty());
    }
}
