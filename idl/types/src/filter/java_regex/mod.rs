//! Java regular expressions, carried over to the dialect and the engines of the `regex` crate.
//!
//! HBase decodes the part of a cell as text and looks for a match anywhere in it (`Matcher.find`). The two
//! dialects agree on most things; where the same text means something else, [`Translator`] rewrites it: `\d
//! \w \s` are ASCII in Java, `$` also matches before a last line end, `\Q...\E` quotes, `\e \cX \0nn \uhhhh`
//! name characters, `\p{Alpha}` is POSIX. What needs backtracking (lookaround, backreferences, possessive
//! quantifiers) is refused with an error that names it: in return matching takes linear time, whatever the
//! pattern and the value.
//!
//! Memory is bounded at each step, since a pattern may come from a stranger: the length of the pattern, of
//! what it is written out to, what its classes name ([`classes`]), the compiled automaton, and all of one
//! filter together ([`Taken`]).
//!
//! Known difference: CASE_INSENSITIVE folds all letters, not only ASCII ones.

mod classes;
mod translate;

use std::borrow::Cow;

use regex_automata::meta::{self, Regex};
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::hir::translate::TranslatorBuilder;

use self::translate::Translator;

use crate::{Error, Result};

/// Most memory of a compiled pattern, and again of its cache in use.
const COMPILED_MAX_BYTES: usize = 512 << 10;

/// Longest pattern, in bytes.
const PATTERN_MAX_BYTES: usize = 8 << 10;

/// Longest pattern in the dialect of the `regex` crate, in bytes: some of Java's escapes are short for a long
/// class.
const TRANSLATED_MAX_BYTES: usize = 24 << 10;

/// Most regular expressions in one filter, each with a cache while it is used.
const COUNT_MAX: usize = 64;

/// Most memory of all compiled patterns of one filter.
const ALL_COMPILED_MAX_BYTES: usize = 2 << 20;

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

/// Resources that the regular expressions of one filter have taken so far.
#[derive(Default)]
pub(super) struct Taken {
    count: usize,
    bytes: usize,
}

impl Taken {
    /// Adds the next one. An error says which limit of the filter it goes beyond.
    pub(super) fn add(&mut self, regex: &JavaRegex) -> std::result::Result<(), String> {
        self.count += 1;
        self.bytes += regex.compiled.memory_usage();
        if self.count > COUNT_MAX {
            return Err(format!("more than {COUNT_MAX} regular expressions in one filter"));
        }
        if self.bytes > ALL_COMPILED_MAX_BYTES {
            return Err(format!(
                "the regular expressions of one filter take more than {ALL_COMPILED_MAX_BYTES} bytes compiled"
            ));
        }
        Ok(())
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
        if pattern.len() > PATTERN_MAX_BYTES {
            let length = pattern.len();
            return Err(Error::InvalidArgument(format!(
                "a regular expression of {length} bytes is longer than {PATTERN_MAX_BYTES}"
            )));
        }
        let refuse = |what: String| Error::InvalidArgument(format!("regular expression {pattern:?}: {what}"));
        if flags & !flag::KNOWN != 0 {
            return Err(refuse(format!("unsupported flags {:#x}", flags & !flag::KNOWN)));
        }
        let charset =
            Charset::from_name(charset).ok_or_else(|| refuse(format!("unsupported charset {charset:?}")))?;
        let translated = if flags & flag::LITERAL == 0 {
            Translator::new(pattern, flags).translate().map_err(refuse)?
        } else {
            regex_syntax::escape(pattern)
        };
        let compiled = compiled(&place(translated), flags).map_err(refuse)?;
        Ok(Self {
            pattern: pattern.to_owned(),
            flags,
            charset,
            compiled,
        })
    }

    /// Memory of the compiled pattern, with the caches of up to two searches.
    pub(super) fn memory_bytes(&self) -> usize {
        const CACHES: usize = 2;
        (1 + CACHES) * self.compiled.memory_usage()
    }

    /// Whether the pattern matches anywhere in the part. Bytes that are no text are replaced, as Java's
    /// decoding does.
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

/// Compiles what [`Translator`] wrote. An error says why the pattern is refused.
fn compiled(translated: &str, flags: i32) -> std::result::Result<Regex, String> {
    if translated.len() > TRANSLATED_MAX_BYTES {
        return Err(format!(
            "with its escapes written out it is longer than {TRANSLATED_MAX_BYTES} bytes, which is the limit"
        ));
    }
    let is_set = |bit: i32| flags & bit != 0;
    let tree = ParserBuilder::new()
        .ignore_whitespace(is_set(flag::COMMENTS) && !is_set(flag::LITERAL))
        .nest_limit(NEST_MAX)
        .build()
        .parse(translated)
        .map_err(|error| error.to_string())?;
    classes::check(&tree)?;
    // Any byte may be met, as with `regex::bytes`.
    let expression = TranslatorBuilder::new()
        .utf8(false)
        .case_insensitive(is_set(flag::CASE_INSENSITIVE))
        .multi_line(is_set(flag::MULTILINE))
        .dot_matches_new_line(is_set(flag::DOTALL))
        .build()
        .translate(translated, &tree)
        .map_err(|error| error.to_string())?;
    // No prefilter: the automaton of the literals that a match can begin with is held to no limit, and a
    // pattern of 100 bytes can make one of 5 MiB.
    let limits = meta::Config::new()
        .utf8_empty(false)
        .auto_prefilter(false)
        .nfa_size_limit(Some(COMPILED_MAX_BYTES))
        .onepass_size_limit(Some(COMPILED_MAX_BYTES))
        .hybrid_cache_capacity(COMPILED_MAX_BYTES);
    meta::Builder::new()
        .configure(limits)
        .build_from_hir(&expression)
        .map_err(|error| match error.size_limit() {
            Some(limit) => format!("compiled it takes more than {limit} bytes, which is the limit"),
            None => error.to_string(),
        })
}

#[cfg(test)]
mod tests;
