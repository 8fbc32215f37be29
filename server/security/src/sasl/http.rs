//! The header `Authorization` of HTTP: `Basic`, `Bearer` and `Negotiate`.
//!
//! Not a SASL mechanism, and the same proofs: a password or token in clear, inside TLS or on
//! loopback; a Kerberos ticket.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use zeroize::Zeroizing;

use super::MESSAGE_BYTES_MAX;
use super::plain::Plain;
use crate::kerberos::TOKEN_BYTES_MAX;
use crate::token::Token;
use crate::users::NAME_BYTES_MAX;
use crate::{Reason, Refused, Secret};

/// A login that is not verified yet.
#[derive(Debug)]
pub enum Authorization {
    /// User and password: `Users::verify_login`.
    Basic(Plain),
    /// A token: `Users::verify_token`.
    Bearer(Token),
    /// A token of SPNEGO or Kerberos: `Acceptor::negotiate`.
    Negotiate(Vec<u8>),
}

/// Parses the value of the header.
pub fn parse(header: &[u8]) -> Result<Authorization, Refused> {
    let malformed = Refused(Reason::Malformed);
    if let Some(token) = negotiated(header) {
        return token.map(Authorization::Negotiate);
    }
    if header.len() > MESSAGE_BYTES_MAX {
        return Err(malformed);
    }
    let text = std::str::from_utf8(header).map_err(|_| malformed)?;
    let (scheme, value) = text.trim().split_once(' ').ok_or(malformed)?;
    let value = value.trim_start();
    if scheme.eq_ignore_ascii_case("Bearer") {
        return Token::from_text(value)
            .map(Authorization::Bearer)
            .ok_or(malformed);
    }
    if !scheme.eq_ignore_ascii_case("Basic") {
        return Err(malformed);
    }
    let decoded = Zeroizing::new(BASE64_STANDARD.decode(value).map_err(|_| malformed)?);
    let decoded = std::str::from_utf8(&decoded).map_err(|_| malformed)?;
    let (user, password) = decoded.split_once(':').ok_or(malformed)?;
    if user.is_empty() || user.len() > NAME_BYTES_MAX || password.is_empty() {
        return Err(malformed);
    }
    Ok(Authorization::Basic(Plain {
        user: user.to_owned(),
        acts_for: None,
        password: Secret::new(password),
    }))
}

/// Whether the header has a Kerberos ticket: that is no secret, so it may be sent in clear.
pub fn is_negotiate(header: &[u8]) -> bool {
    const SCHEME: &[u8] = b"Negotiate ";
    header
        .get(..SCHEME.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(SCHEME))
}

/// The value of the header `WWW-Authenticate` that answers a ticket, with the acceptor's token if it has one.
pub fn negotiate_answer(token: Option<&[u8]>) -> String {
    match token {
        None => "Negotiate".to_owned(),
        Some(token) => format!("Negotiate {}", BASE64_STANDARD.encode(token)),
    }
}

/// The token of the scheme `Negotiate`; `None` for other schemes.
fn negotiated(header: &[u8]) -> Option<Result<Vec<u8>, Refused>> {
    let malformed = Refused(Reason::Malformed);
    if !is_negotiate(header) {
        return None;
    }
    if header.len() > TOKEN_BYTES_MAX / 3 * 4 {
        return Some(Err(malformed));
    }
    let (_, token) = header.split_at("Negotiate ".len());
    let token = BASE64_STANDARD.decode(token.trim_ascii()).map_err(|_| malformed);
    Some(token.and_then(|token| {
        if token.is_empty() {
            Err(malformed)
        } else {
            Ok(token)
        }
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::token::{TokenIdentifier, TokenKey};

    /// The examples of RFC 7617, sections 2 and 2.1.
    #[test]
    fn basic_names_user_and_password() {
        for (header, user, password) in [
            ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"),
            ("basic  dGVzdDoxMjPCow==", "test", "123\u{a3}"),
        ] {
            let Ok(Authorization::Basic(plain)) = parse(header.as_bytes()) else {
                panic!("{header}")
            };
            assert_eq!((&plain.user[..], plain.acts_for), (user, None));
            assert!(plain.password.matches(password.as_bytes()));
        }
    }

    #[test]
    fn bearer_is_a_token() {
        let identifier = TokenIdentifier {
            kind: 0,
            username: b"bob".to_vec(),
            key_id: 1,
            issue_date: None,
            expiration_date: None,
            sequence_number: Some(1),
        };
        let identifier = identifier.to_bytes();
        let password = TokenKey::random(1).unwrap().sign(&identifier);
        let token = Token { identifier, password };
        let header = format!("Bearer {}", *token.to_text());
        let Ok(Authorization::Bearer(parsed)) = parse(header.as_bytes()) else {
            panic!("{header}")
        };
        assert_eq!(parsed.identifier, token.identifier);
    }

    #[test]
    fn negotiate_is_a_token_of_any_bytes() {
        for header in ["Negotiate YQA=", "negotiate  YQA= "] {
            let Ok(Authorization::Negotiate(token)) = parse(header.as_bytes()) else {
                panic!("{header}")
            };
            assert_eq!(token, b"a\0");
            assert_eq!(negotiate_answer(Some(&token)), "Negotiate YQA=");
        }
        let ticket = format!("Negotiate {}", "A".repeat(8_000));
        assert!(
            matches!(parse(ticket.as_bytes()), Ok(Authorization::Negotiate(token)) if token.len() == 6_000)
        );
    }

    #[test]
    fn other_headers_are_refused() {
        let long = format!("Basic {}", "A".repeat(MESSAGE_BYTES_MAX));
        let long_ticket = format!("Negotiate {}", "A".repeat(2 * TOKEN_BYTES_MAX));
        // "test" and ":secret" in base64 among them.
        for bad in [
            "",
            "Basic",
            "Basic ",
            "Basic dGVzdA==",
            "Basic OnNlY3JldA==",
            "Basic ?",
            "Bearer x.y",
            "Negotiate",
            "Negotiate ",
            "Negotiate ?",
            &long,
            &long_ticket,
        ] {
            assert_eq!(
                parse(bad.as_bytes()).unwrap_err(),
                Refused(Reason::Malformed),
                "{bad}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_header_is_parsed_or_refused(header in "(Basic |Bearer |Negotiate )?[A-Za-z0-9+/=._-]{0,60}") {
            let _ = parse(header.as_bytes());
        }
    }
}
