//! A place in the text: blanks, words and errors.

use super::{NOT_RUBY, Parsed, SyntaxError};

/// Deepest nesting of brackets, blocks and interpolations.
const DEPTH_MAX: usize = 64;

/// Ruby's words that neither name a command nor a variable. `do`, `end`, `for` and `in` are the
/// loop's.
const KEYWORDS: [&str; 35] = [
    "and",
    "begin",
    "break",
    "case",
    "class",
    "def",
    "do",
    "else",
    "elsif",
    "end",
    "ensure",
    "for",
    "if",
    "in",
    "include",
    "java_import",
    "lambda",
    "loop",
    "module",
    "next",
    "not",
    "or",
    "proc",
    "raise",
    "redo",
    "require",
    "rescue",
    "retry",
    "return",
    "then",
    "undef",
    "unless",
    "until",
    "while",
    "yield",
];

/// A position in the text.
pub(super) struct Cursor<'a> {
    text: &'a str,
    pub(super) at: usize,
    depth: usize,
    /// Whether the value of what comes next is used: it is an argument, an element, or assigned. The block of
    /// a `map` is an expression then, and the body of a loop otherwise.
    pub(super) is_value: bool,
    /// Whether the block of a `map` is being read, which has no further one in it.
    pub(super) is_in_map: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Cursor {
            text,
            at: 0,
            depth: 0,
            is_value: false,
            is_in_map: false,
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    pub(super) fn take_if(&mut self, expected: &str) -> bool {
        let there = self.rest().starts_with(expected);
        if there {
            self.at += expected.len();
        }
        there
    }

    /// Takes a word if it is the next one.
    pub(super) fn take_word(&mut self, expected: &str) -> bool {
        let begin = self.at;
        let there = self.word() == expected;
        if !there {
            self.at = begin;
        }
        there
    }

    /// The next word, which is not taken.
    pub(super) fn peek_word(&self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        if word.starts_with(|first: char| first.is_ascii_digit()) {
            ""
        } else {
            word
        }
    }

    /// Letters, digits and underscores, possibly none.
    pub(super) fn word(&mut self) -> &'a str {
        let word = self.peek_word();
        self.at += word.len();
        word
    }

    pub(super) fn error_at(&self, at: usize, message: impl Into<String>) -> SyntaxError {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        SyntaxError {
            message: message.into(),
            hint: None,
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).map_or(0, |line| line.chars().count()) + 1,
            incomplete: false,
        }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> SyntaxError {
        self.error_at(self.at, message)
    }

    pub(super) fn unexpected(&self, wanted: &str) -> SyntaxError {
        match self.peek() {
            Some(found) => self.error(format!("expected {wanted}, found '{}'", found.escape_debug())),
            None => SyntaxError {
                incomplete: true,
                ..self.error(format!("expected {wanted}, found the end of the input"))
            },
        }
    }

    /// The error for a part of Ruby at `at`.
    pub(super) fn not_ruby(&self, at: usize, what: &str) -> SyntaxError {
        SyntaxError {
            hint: Some(NOT_RUBY.to_owned()),
            ..self.error_at(at, format!("'{what}' is Ruby"))
        }
    }

    /// Refuses a keyword of Ruby at `at`.
    pub(super) fn check_no_keyword(&self, at: usize, word: &str) -> Parsed<()> {
        if KEYWORDS.contains(&word) {
            return Err(self.not_ruby(at, word));
        }
        Ok(())
    }

    /// Passes over blanks and comments, and over newlines if they mean nothing here.
    pub(super) fn blanks(&mut self, newlines: bool) {
        while let Some(next) = self.peek() {
            let escaped_newline = next == '\\' && self.rest().starts_with("\\\n");
            if escaped_newline {
                self.at += 2;
            } else if next == '#' {
                let comment = self.rest();
                self.at += comment.find('\n').unwrap_or(comment.len());
            } else if next.is_whitespace() && (newlines || next != '\n') {
                self.take();
            } else {
                break;
            }
        }
    }

    /// Reads something whose value is used.
    pub(super) fn as_value<T>(&mut self, inside: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.is_value, true);
        let result = inside(self);
        self.is_value = before;
        result
    }

    /// Reads something that may contain itself. Bounds the depth of the recursion.
    pub(super) fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            return Err(self.error(format!("brackets are nested deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }
}
