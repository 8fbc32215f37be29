//! Token files: Hadoop's `Credentials` in the format `HDTS` 00.
//!
//! ```text
//! file   = "HDTS" 00, vint entries, entry*, vint secrets, secret*
//! entry  = text alias, vint + identifier, vint + password, text kind, text service
//! secret = text alias, vint + bytes
//! text   = vint length, UTF-8
//! ```
//!
//! A file for HBase has its token twice: under the cluster id, which calls look for, and under
//! [`DEFAULT_SERVICE`], which registry connections of some clients look for.

use zeroize::Zeroizing;

use super::{DEFAULT_SERVICE, KIND, Token, vint};
use crate::{Error, Result, Secret};

const MAGIC: &[u8] = b"HDTS";
/// Hadoop's format `WRITABLE`.
const FORMAT: u8 = 0;
/// Maximum size of a file. Hadoop's tools write a few entries.
const FILE_BYTES_MAX: usize = 1 << 20;

/// An entry of a token file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name of the entry in the file.
    pub alias: String,
    /// The token.
    pub token: Token,
    /// [`KIND`] for HBase's.
    pub kind: String,
    /// The cluster id, or [`DEFAULT_SERVICE`].
    pub service: String,
}

/// The tokens of a file.
#[derive(Clone, Debug, Default)]
pub struct TokenFile {
    /// All entries, also those of other systems.
    pub entries: Vec<Entry>,
}

impl TokenFile {
    /// The file for clients of one cluster.
    pub fn of(token: &Token, cluster_id: &str) -> Self {
        let entry = |service: &str| Entry {
            alias: service.to_owned(),
            token: token.clone(),
            kind: KIND.to_owned(),
            service: service.to_owned(),
        };
        Self {
            entries: vec![entry(cluster_id), entry(DEFAULT_SERVICE)],
        }
    }

    /// HBase's token for a service.
    pub fn find(&self, service: &str) -> Option<&Token> {
        let mut entries = self.entries.iter();
        let found = entries.find(|entry| entry.kind == KIND && entry.service == service);
        found.map(|entry| &entry.token)
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(MAGIC.to_vec());
        bytes.push(FORMAT);
        vint::write(self.entries.len() as i64, &mut bytes);
        for entry in &self.entries {
            write_bytes(entry.alias.as_bytes(), &mut bytes);
            write_bytes(&entry.token.identifier, &mut bytes);
            write_bytes(entry.token.password.expose(), &mut bytes);
            write_bytes(entry.kind.as_bytes(), &mut bytes);
            write_bytes(entry.service.as_bytes(), &mut bytes);
        }
        vint::write(0, &mut bytes);
        bytes
    }

    /// Parses a file. Secret keys of other systems are skipped.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let invalid = |problem: &str| {
            Error::Invalid(format!(
                "{problem}; create the token file with `basalt token create USER`"
            ))
        };
        if bytes.len() > FILE_BYTES_MAX {
            return Err(invalid("the token file has more than 1 MiB"));
        }
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Err(invalid("the file is no token file: it does not begin with HDTS"));
        };
        match rest.split_first() {
            Some((&FORMAT, rest)) => read(rest).ok_or_else(|| invalid("the token file is damaged")),
            Some(_) => Err(invalid("the token file has a format other than 0 (writable)")),
            None => Err(invalid("the token file is damaged")),
        }
    }
}

fn write_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    vint::write(bytes.len() as i64, to);
    to.extend_from_slice(bytes);
}

fn read(mut rest: &[u8]) -> Option<TokenFile> {
    let mut entries = Vec::new();
    for _ in 0..vint::read(&mut rest)? {
        entries.push(read_entry(&mut rest)?);
    }
    for _ in 0..vint::read(&mut rest)? {
        read_text(&mut rest)?;
        read_bytes(&mut rest)?;
    }
    rest.is_empty().then_some(TokenFile { entries })
}

fn read_entry(from: &mut &[u8]) -> Option<Entry> {
    let alias = read_text(from)?;
    let identifier = read_bytes(from)?.to_vec();
    let password = Secret::new(read_bytes(from)?);
    Some(Entry {
        alias,
        token: Token { identifier, password },
        kind: read_text(from)?,
        service: read_text(from)?,
    })
}

/// Takes a length and that many bytes: never more than there are.
fn read_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(vint::read(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(bytes)
}

fn read_text(from: &mut &[u8]) -> Option<String> {
    String::from_utf8(read_bytes(from)?.to_vec()).ok()
}
