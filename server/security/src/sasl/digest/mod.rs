//! DIGEST-MD5 (RFC 2831) with `qop=auth`: both sides prove that they know a password.
//!
//! ```text
//! server  challenge  realm, nonce, qop, charset, algorithm
//! client  response   username, realm, nonce, nc, cnonce, digest-uri, response, qop, charset
//! server  rspauth
//! ```
//!
//! The mechanism is historic (RFC 6331), and the one that every HBase client has for tokens. It
//! keeps the password off the wire and protects nothing else: TLS or a tunnel does. Tokens as
//! passwords have 160 random bits, so that a recorded login cannot be searched for them.
//!
//! [`Server`] is consumed by the response, so that a nonce serves once.

mod directives;

use std::time::SystemTime;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use md5::{Digest, Md5};
use subtle::ConstantTimeEq;

use self::directives::Directives;
use super::MESSAGE_BYTES_MAX;
use crate::users::{TokenUse, Users};
use crate::{Error, Reason, Refused, Result, Secret, token};

/// The realm of HBase's servers.
const REALM: &str = "default";
/// HBase's clients name no protocol.
const URI: &str = "null/default";
const COUNT: &str = "00000001";
const QOP: &str = "auth";

/// Random bytes of a nonce.
const NONCE_BYTES: usize = 24;

/// The values that both sides hash.
struct Exchange<'a> {
    user: &'a str,
    realm: &'a str,
    password: &'a [u8],
    nonce: &'a str,
    cnonce: &'a str,
    uri: &'a str,
    /// The user to act as, if the client names one.
    authzid: Option<&'a str>,
}

impl Exchange<'_> {
    /// The client's proof.
    fn response(&self) -> String {
        self.proof("AUTHENTICATE")
    }

    /// The server's proof.
    fn rspauth(&self) -> String {
        self.proof("")
    }

    /// RFC 2831, 2.1.2.1. Names and passwords are ASCII, where the choice of a character set is
    /// none.
    fn proof(&self, method: &str) -> String {
        let secret = md5([self.user.as_bytes(), self.realm.as_bytes(), self.password]);
        let mut parts = vec![&secret[..], self.nonce.as_bytes(), self.cnonce.as_bytes()];
        parts.extend(self.authzid.map(str::as_bytes));
        let a1 = hex(&md5(parts));
        let a2 = hex(&md5([method.as_bytes(), self.uri.as_bytes()]));
        let parts = [&a1, self.nonce, COUNT, self.cnonce, QOP, &a2];
        hex(&md5(parts.map(str::as_bytes)))
    }
}

/// MD5 of the parts with colons between them.
fn md5<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 16] {
    let mut hash = Md5::new();
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            hash.update(b":");
        }
        hash.update(part);
    }
    hash.finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

fn nonce() -> Result<String> {
    Ok(BASE64_STANDARD.encode(Secret::random(NONCE_BYTES)?.expose()))
}

/// The server's side of one login.
#[derive(Debug)]
pub struct Server {
    nonce: String,
}

impl Server {
    /// A login with a new nonce.
    pub fn new() -> Result<Self> {
        Ok(Self { nonce: nonce()? })
    }

    /// The first message.
    pub fn challenge(&self) -> Vec<u8> {
        let nonce = &self.nonce;
        format!("realm=\"{REALM}\",nonce=\"{nonce}\",qop=\"{QOP}\",charset=utf-8,algorithm=md5-sess")
            .into_bytes()
    }

    /// Verifies the client's message, which names a token, and returns the token and the last
    /// message.
    pub fn finish_token(
        self,
        message: &[u8],
        users: &Users,
        now: SystemTime,
    ) -> std::result::Result<(TokenUse, Vec<u8>), Refused> {
        self.finish(message, |user| {
            let identifier = token::identifier_of_digest_user(user)?;
            let (found, signature) = users.find_token(&identifier, now)?;
            Ok((found, token::digest_password(&signature)))
        })
    }

    /// Verifies the client's message and returns the value of `find`, and the last message.
    ///
    /// `find` takes the client's user name and returns, for a user that may log in, a value for the
    /// caller and the password.
    pub fn finish<T>(
        self,
        message: &[u8],
        find: impl FnOnce(&str) -> std::result::Result<(T, Secret), Refused>,
    ) -> std::result::Result<(T, Vec<u8>), Refused> {
        let parsed = parse(message)?;
        let response = Response::of(&parsed, &self.nonce).ok_or(Refused(Reason::Malformed))?;
        let found = find(response.user);
        let empty = Secret::new(Vec::new());
        let password = found.as_ref().map_or(&empty, |(_, password)| password);
        let exchange = response.exchange(password, &self.nonce);
        let is_right: bool = exchange
            .response()
            .as_bytes()
            .ct_eq(response.proof.as_bytes())
            .into();
        let last = format!("rspauth={}", exchange.rspauth()).into_bytes();
        let (value, _) = found?;
        if is_right {
            Ok((value, last))
        } else {
            Err(Refused(Reason::WrongSignature))
        }
    }
}

fn parse(message: &[u8]) -> std::result::Result<Directives, Refused> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(Refused(Reason::Malformed));
    }
    Directives::parse(message).ok_or(Refused(Reason::Malformed))
}

/// The directives of a client's message that count.
struct Response<'a> {
    user: &'a str,
    cnonce: &'a str,
    uri: &'a str,
    authzid: Option<&'a str>,
    proof: &'a str,
}

impl<'a> Response<'a> {
    /// `None` if a directive is missing or has a value that this server did not offer.
    fn of(directives: &'a Directives, nonce: &str) -> Option<Self> {
        let get = |name| directives.get(name);
        let is = |name, value: &str| get(name) == Some(value);
        let is_or_missing =
            |name, value: &str| get(name).is_none_or(|found| found.eq_ignore_ascii_case(value));
        let user = get("username").filter(|user| !user.is_empty() && user.is_ascii())?;
        let is_ours = is("realm", REALM)
            && is("nonce", nonce)
            && is("nc", COUNT)
            && is("digest-uri", URI)
            && is_or_missing("qop", QOP)
            && is_or_missing("charset", "utf-8")
            && get("authzid").is_none_or(|other| other == user);
        is_ours.then_some(Self {
            user,
            cnonce: get("cnonce").filter(|cnonce| !cnonce.is_empty())?,
            uri: URI,
            authzid: get("authzid"),
            proof: get("response").filter(|proof| proof.len() == 32)?,
        })
    }

    fn exchange(&self, password: &'a Secret, nonce: &'a str) -> Exchange<'a> {
        Exchange {
            user: self.user,
            realm: REALM,
            password: password.expose(),
            nonce,
            cnonce: self.cnonce,
            uri: self.uri,
            authzid: self.authzid,
        }
    }
}

/// The client's side of one login, for our own clients.
#[derive(Debug)]
pub struct Client {
    user: String,
    password: Secret,
    cnonce: String,
    /// The reply that proves the server.
    expected: Option<String>,
}

impl Client {
    /// A login with a name and a password in ASCII: for tokens, their `digest_user` and
    /// `digest_password`.
    pub fn new(user: String, password: Secret) -> Result<Self> {
        if !user.is_ascii() || !password.expose().is_ascii() {
            return Err(Error::Invalid(
                "DIGEST-MD5 takes names and passwords in ASCII only".into(),
            ));
        }
        Ok(Self {
            user,
            password,
            cnonce: nonce()?,
            expected: None,
        })
    }

    /// The answer to the challenge.
    pub fn respond(&mut self, challenge: &[u8]) -> Result<Vec<u8>> {
        let invalid = |problem: &str| Error::Invalid(format!("the server's DIGEST-MD5 challenge {problem}"));
        let directives = parse(challenge).map_err(|_| invalid("cannot be parsed"))?;
        let get = |name| directives.get(name);
        let nonce = get("nonce").filter(|nonce| !nonce.is_empty());
        let nonce = nonce.ok_or_else(|| invalid("has no nonce"))?;
        if !get("qop").unwrap_or(QOP).split(',').any(|qop| qop.trim() == QOP) {
            return Err(invalid("does not offer qop=auth"));
        }
        if get("algorithm") != Some("md5-sess") {
            return Err(invalid("does not have algorithm=md5-sess"));
        }
        let realm = get("realm").unwrap_or_default();
        let exchange = Exchange {
            user: &self.user,
            realm,
            password: self.password.expose(),
            nonce,
            cnonce: &self.cnonce,
            uri: URI,
            authzid: None,
        };
        let message = format!(
            "charset=utf-8,username={},realm={},nonce={},nc={COUNT},cnonce={},digest-uri={},maxbuf=65536,response={},qop={QOP}",
            directives::Quoted(&self.user),
            directives::Quoted(realm),
            directives::Quoted(nonce),
            directives::Quoted(&self.cnonce),
            directives::Quoted(URI),
            exchange.response(),
        );
        self.expected = Some(exchange.rspauth());
        Ok(message.into_bytes())
    }

    /// Verifies the server's last message.
    pub fn finish(&self, last: &[u8]) -> Result<()> {
        let directives = parse(last).ok();
        let rspauth = directives
            .as_ref()
            .and_then(|directives| directives.get("rspauth"));
        match (&self.expected, rspauth) {
            (Some(expected), Some(found)) if bool::from(expected.as_bytes().ct_eq(found.as_bytes())) => {
                Ok(())
            }
            _ => Err(Error::Invalid(
                "the server did not prove that it knows the token; it may be another server".into(),
            )),
        }
    }
}

#[cfg(test)]
mod tests;
