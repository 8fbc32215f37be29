//! Audit log: logins, changes and denied calls, as JSON lines.
//!
//! | module | contents |
//! | --- | --- |
//! | this one | events and their line |
//! | `writer` | the file and its thread |
//!
//! A line never contains row keys, values or secrets. Text from clients is cut at
//! [`TEXT_BYTES_MAX`] bytes, and its control characters are escaped.

mod writer;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::SystemTime;

use basalt_types::text::escape;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

pub use writer::{AuditLog, Status};

/// Maximum length of a text from a client in a line. Longer ones end with `...`.
pub const TEXT_BYTES_MAX: usize = 256;

/// Kind of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A connection was opened.
    #[default]
    Connection,
    /// A connection has ended.
    Disconnection,
    /// A user has logged in.
    Authenticated,
    /// A login has failed.
    AuthenticationFailed,
    /// A call was allowed.
    Allowed,
    /// A call was denied.
    Denied,
    /// A table or namespace was created, changed or dropped.
    SchemaChange,
    /// Rights were granted or revoked.
    RightsChange,
    /// Users, tokens, keys or proxy rules were changed.
    UserChange,
    /// A class of a user was loaded.
    CodeLoaded,
}

/// An event. Fields without a value are left out of the line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Event<'a> {
    /// Kind of the event.
    pub event: Kind,
    /// The client's address and port.
    pub address: Option<SocketAddr>,
    /// The protocol: `native`, `thrift`, `http`, `zookeeper`.
    pub protocol: &'static str,
    /// Whether the connection is encrypted.
    pub tls: Option<bool>,
    /// The user whose rights count; of a failed login the name that the client gave.
    pub user: Option<&'a str>,
    /// The user that acts for it, if it is another one.
    pub real_user: Option<&'a str>,
    /// The proof of the user: `token`, `password`, `certificate`, `kerberos`, `simple`.
    pub authentication: &'static str,
    /// Version that the client names.
    pub client: Option<&'a str>,
    /// The service or method that was called.
    pub request: Option<&'a str>,
    /// The right that the call needs: `READ`, `WRITE`, ...
    pub action: &'static str,
    /// Namespace of the target.
    pub namespace: Option<&'a str>,
    /// Full name of the table.
    pub table: Option<&'a str>,
    /// Family.
    pub family: Option<&'a [u8]>,
    /// User or group that a change of users or rights is about.
    pub subject: Option<&'a str>,
    /// Cause of a denial or failure, or what was changed.
    pub reason: Option<&'a str>,
}

/// The line of an event, with its end.
fn line(event: &Event<'_>, time: SystemTime) -> Vec<u8> {
    let mut line = serde_json::to_vec(&Line { event, time }).expect("all fields are text");
    line.push(b'\n');
    line
}

struct Line<'a> {
    event: &'a Event<'a>,
    time: SystemTime,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { event, time } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("time", &humantime::format_rfc3339_millis(*time).to_string())?;
        map.serialize_entry("event", &event.event)?;
        if let Some(tls) = event.tls {
            map.serialize_entry("tls", &tls)?;
        }
        let address = event.address.map(|address| address.to_string());
        let family = event
            .family
            .map(|family| escape(&family[..family.len().min(TEXT_BYTES_MAX + 1)]));
        let word = |word: &'static str| Some(word).filter(|word| !word.is_empty());
        let texts = [
            ("address", address.as_deref()),
            ("protocol", word(event.protocol)),
            ("user", event.user),
            ("real_user", event.real_user),
            ("authentication", word(event.authentication)),
            ("client", event.client),
            ("request", event.request),
            ("action", word(event.action)),
            ("namespace", event.namespace),
            ("table", event.table),
            ("family", family.as_deref()),
            ("subject", event.subject),
            ("reason", event.reason),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                map.serialize_entry(name, &clean(text))?;
            }
        }
        map.end()
    }
}

/// Text from a client: cut, and without control characters.
fn clean(text: &str) -> Cow<'_, str> {
    let is_long = text.len() > TEXT_BYTES_MAX;
    let cut = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    // Also characters that change the direction of text: a terminal shows the line otherwise than
    // it is.
    let is_odd = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !is_long && !cut.contains(is_odd) {
        return Cow::Borrowed(cut);
    }
    let mut clean = String::with_capacity(cut.len() + 3);
    for letter in cut.chars() {
        if is_odd(letter) {
            clean.extend(letter.escape_unicode());
        } else {
            clean.push(letter);
        }
    }
    if is_long {
        clean.push_str("...");
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests;
