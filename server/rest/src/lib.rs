//! HBase's REST API as values, without I/O: what a request's path, query, headers and body say, and what
//! an answer's body looks like.
//!
//! | module | contents |
//! | --- | --- |
//! | [`encoding`] | percent-encoding to bytes, base64 of keys |
//! | [`query`] | the parameters behind the question mark |
//! | [`route`] | which resource a path means |
//! | [`row_path`] | keys, columns and times in a path |
//! | [`media`] | media types, and the choice of one by the header Accept |
//! | [`model`] | bodies in JSON, XML, protobuf and text |
//! | [`filter`] | filters of scanners, as JSON in a string |
//!
//! Invariants: no function panics on what a client sent. Input of a client that has no meaning is a
//! [`Malformed`], whose text names the thing and the rule. Keys, qualifiers and values are bytes
//! everywhere: `%FF` in a path is the byte 0xFF, where HBase makes U+FFFD of it.
//!
//! The caller bounds the size of a body before it is decoded; decoded cells take at most
//! [`model::cells::decoded_bytes`].

pub mod encoding;
pub mod filter;
pub mod media;
pub mod model;
pub mod query;
pub mod route;
pub mod row_path;

/// Most bytes of a library's error in one of a client.
const QUOTED_BYTES_MAX: usize = 500;

/// Input of a client that has no meaning. The text is for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

impl Malformed {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The error of a library that could not read `what`. Its text may quote the input, of any length and
    /// with line breaks.
    fn unread(what: &str, error: &dyn std::fmt::Display) -> Self {
        let text = error.to_string();
        let cut = text.floor_char_boundary(QUOTED_BYTES_MAX);
        let rest = if cut < text.len() { "..." } else { "" };
        let line: String = text[..cut]
            .chars()
            .flat_map(|letter| {
                let is_shown = !letter.is_control();
                let escaped = (!is_shown).then(|| letter.escape_default());
                escaped.into_iter().flatten().chain(is_shown.then_some(letter))
            })
            .collect();
        Self(format!("{what}: {line}{rest}"))
    }
}

impl From<basalt_types::Error> for Malformed {
    fn from(error: basalt_types::Error) -> Self {
        // An error about a regular expression shows the place in lines of its own.
        let text = error.to_string();
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        Self(lines.join(" "))
    }
}

/// The result of reading what a client sent.
pub type Result<T, E = Malformed> = std::result::Result<T, E>;
