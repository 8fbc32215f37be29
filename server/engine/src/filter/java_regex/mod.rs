//! Java regular expressions, carried over to the `regex` crate.
//!
//! HBase decodes the part of a cell as text and looks for a match anywhere in it (`Matcher.find`). The two dialects agree on
//! most things; where the same text means something else, [`Translator`] rewrites it: `\d \w \s` are ASCII in Java, `$` also
//! matches before a last line end, `\Q...\E` quotes, `\e \cX \0nn \uhhhh` name characters, `\p{Alpha}` is POSIX. What
//! needs backtracking (lookaround, backreferences, possessive quantifiers) is refused with an error that names it: in return
//! matching takes linear time, whatever the pattern and the value.
//!
//! Known difference: CASE_INSENSITIVE folds all letters, not only ASCII ones.

mod translate;

use std::borrow::Cow;

use self::translate::Translator;
use regex::bytes::{Regex, RegexBuilder};

use crate::{Error, Result};

/// Most memory of a compiled pattern, and again of its cache in use.
const COMPILED_MAX_BYTES: usize = 512 << 10;

/// Most regular expressions in one filter: with the limit above they bound what a request can make us hold.
pub(super) const REGEX_COUNT_MAX: usize = 64;

/// Deepest nesting of groups and classes.
const NEST_MAX: u32 = 64;

/// Flags of `java.util.regex.Pattern`.
mod flag {
    pub(super) const UNIX_LINES: i32 = 0x01;
    pub(super) const CASE_INSENSITIVE: i32 = 0x02;
    pub(super) const COMMENTS: i32 = 0x04;
    pub(super) const MULTILINE: i32 = 0x08;
    pub(super) const LITERAL: i32 = 0x10;
    pub(super) const DOTALL: i32 = 0x20;
    pub(super) const UNICODE_CASE: i32 = 0x40;
    pub(super) const UNICODE_CHARACTER_CLASS: i32 = 0x100;
    pub(super) const KNOWN: i32 = UNIX_LINES
        | CASE_INSENSITIVE
        | COMMENTS
        | MULTILINE
        | LITERAL
        | DOTALL
        | UNICODE_CASE
        | UNICODE_CHARACTER_CLASS;
}

/// How the part's bytes become text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charset {
    Utf8,
    Ascii,
    Latin1,
}

impl Charset {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "UTF-8" | "UTF8" => Self::Utf8,
            "US-ASCII" | "ASCII" => Self::Ascii,
            "ISO-8859-1" | "ISO8859_1" | "LATIN1" => Self::Latin1,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Ascii => "US-ASCII",
            Self::Latin1 => "ISO-8859-1",
        }
    }

    fn decode(self, part: &[u8]) -> Cow<'_, str> {
        match self {
            Self::Utf8 => String::from_utf8_lossy(part),
            Self::Ascii => part
                .iter()
                .map(|byte| {
                    if byte.is_ascii() {
                        char::from(*byte)
                    } else {
                        char::REPLACEMENT_CHARACTER
                    }
                })
                .collect(),
            Self::Latin1 => part.iter().map(|byte| char::from(*byte)).collect(),
        }
    }
}

/// A compiled pattern with what it was made from.
#[derive(Clone, Debug)]
pub struct JavaRegex {
    pattern: String,
    flags: i32,
    charset: Charset,
    compiled: Regex,
}

impl PartialEq for JavaRegex {
    fn eq(&self, other: &Self) -> bool {
        (&self.pattern, self.flags, self.charset) == (&other.pattern, other.flags, other.charset)
    }
}

impl JavaRegex {
    /// HBase's defaults: DOTALL, UTF-8.
    pub fn new(pattern: &str) -> Result<Self> {
        Self::with_flags(pattern, flag::DOTALL, "UTF-8")
    }

    /// A pattern that must match the whole text (`Matcher.matches`), without flags.
    pub fn whole(pattern: &str) -> Result<Self> {
        // By itself first: `a)(b` would become a pattern in the group that is put around it.
        Self::with_flags(pattern, 0, "UTF-8")?;
        Self::compile(pattern, 0, "UTF-8", |translated| format!("^(?:{translated})$"))
    }

    /// With flags of `java.util.regex.Pattern` and a Java charset name.
    pub fn with_flags(pattern: &str, flags: i32, charset: &str) -> Result<Self> {
        Self::compile(pattern, flags, charset, |translated| translated)
    }

    fn compile(
        pattern: &str,
        flags: i32,
        charset: &str,
        place: impl FnOnce(String) -> String,
    ) -> Result<Self> {
        let refuse = |what: String| Error::InvalidArgument(format!("regular expression {pattern:?}: {what}"));
        if flags & !flag::KNOWN != 0 {
            return Err(refuse(format!("unsupported flags {:#x}", flags & !flag::KNOWN)));
        }
        let charset =
            Charset::from_name(charset).ok_or_else(|| refuse(format!("unsupported charset {charset:?}")))?;
        let translated = if flags & flag::LITERAL == 0 {
            Translator::new(pattern, flags).translate().map_err(refuse)?
        } else {
            regex::escape(pattern)
        };
        let is_set = |bit: i32| flags & bit != 0;
        let compiled = RegexBuilder::new(&place(translated))
            .case_insensitive(is_set(flag::CASE_INSENSITIVE))
            .ignore_whitespace(is_set(flag::COMMENTS) && !is_set(flag::LITERAL))
            .multi_line(is_set(flag::MULTILINE))
            .dot_matches_new_line(is_set(flag::DOTALL))
            .size_limit(COMPILED_MAX_BYTES)
            .dfa_size_limit(COMPILED_MAX_BYTES)
            .nest_limit(NEST_MAX)
            .build()
            .map_err(|error| refuse(error.to_string()))?;
        Ok(Self {
            pattern: pattern.to_owned(),
            flags,
            charset,
            compiled,
        })
    }

    /// Whether the pattern matches anywhere in the part. Bytes that are no text are replaced, as Java's decoding does.
    pub fn is_found_in(&self, part: &[u8]) -> bool {
        self.compiled.is_match(self.charset.decode(part).as_bytes())
    }

    /// The Java pattern.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The Java flags.
    pub fn flags(&self) -> i32 {
        self.flags
    }

    /// The Java charset name.
    pub fn charset_name(&self) -> &'static str {
        self.charset.name()
    }
}

#[cfg(test)]
mod tests;
