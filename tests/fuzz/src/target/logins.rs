//! Messages of clients that log in: SASL, HTTP's `Authorization`, tokens, token files and certificates.
//!
//! ```text
//! input = which parser u8 (modulo the number of parsers) | its message
//! ```
//!
//! In a message for DIGEST-MD5, [`NONCE`] stands for the nonce of the server, which is another one each time.
//! No message proves a password that the input's author does not know, so that none is accepted. What other
//! parsers accept has the same value when it is written and parsed again.

use basalt_security::certificate::{NameFrom, expires, user_of};
use basalt_security::kerberos::TOKEN_BYTES_MAX;
use basalt_security::sasl::{MESSAGE_BYTES_MAX, digest, external, http, plain};
use basalt_security::token::{Token, TokenFile, TokenIdentifier, digest_password, identifier_of_digest_user};
use basalt_security::users::NAME_BYTES_MAX;
use basalt_security::{Reason, Refused, Secret};

use crate::memory;

/// Stands for the server's nonce.
pub const NONCE: &[u8] = b"%NONCE%";

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let Some((which, message)) = input.split_first() else {
        return;
    };
    let parsers = [
        digest_of_client,
        digest_of_server,
        plain_message,
        external_message,
        authorization,
        identifier,
        token_text,
        token_file,
        certificate,
    ];
    parsers[usize::from(*which) % parsers.len()](message);
}

/// A response to the server's challenge.
fn digest_of_client(message: &[u8]) {
    let refused = memory::bounded(message.len(), MESSAGE_BYTES_MAX, || {
        let server = digest::Server::new().expect("random bytes");
        let challenge = server.challenge();
        let nonce = nonce_of(&challenge);
        let message = with_nonce(message, nonce);
        server.finish(&message, |user| {
            assert!(user.is_ascii() && user.len() <= MESSAGE_BYTES_MAX);
            // An identifier in the user is parsed before a token is looked for.
            let known = identifier_of_digest_user(user).and_then(|bytes| TokenIdentifier::parse(&bytes));
            let signature = Secret::random(20).expect("random bytes");
            known
                .map(|_| ((), digest_password(&signature)))
                .map_err(|_| Refused(Reason::UnknownToken))
        })
    });
    assert!(refused.is_err(), "a proof without the secret");
}

/// The nonce in a challenge.
fn nonce_of(challenge: &[u8]) -> &[u8] {
    const BEFORE: &[u8] = b"nonce=\"";
    let at = challenge
        .windows(BEFORE.len())
        .position(|part| part == BEFORE)
        .expect("a challenge has a nonce");
    let rest = &challenge[at + BEFORE.len()..];
    let end = rest.iter().position(|byte| *byte == b'"').expect("its end");
    &rest[..end]
}

fn with_nonce(message: &[u8], nonce: &[u8]) -> Vec<u8> {
    let Some(at) = message.windows(NONCE.len()).position(|part| part == NONCE) else {
        return message.to_vec();
    };
    [&message[..at], nonce, &message[at + NONCE.len()..]].concat()
}

/// A challenge, and a last message, of a server that our client does not trust yet.
fn digest_of_server(message: &[u8]) {
    let answered = memory::bounded(message.len(), MESSAGE_BYTES_MAX, || {
        let mut client = digest::Client::new("dQ==".to_owned(), Secret::new("cA==")).expect("ASCII");
        client.respond(message).map(|_| client)
    });
    if let Ok(client) = answered {
        client.finish(message).expect_err("the challenge is no proof");
    }
}

fn plain_message(message: &[u8]) {
    let Ok(parsed) = memory::bounded(message.len(), 0, || plain::parse(message)) else {
        return;
    };
    assert!((1..=NAME_BYTES_MAX).contains(&parsed.user.len()));
    if parsed.acts_for.is_none() {
        let again = plain::message(&parsed.user, &parsed.password);
        let again = plain::parse(again.expose()).expect("it is one");
        assert_eq!(again.user, parsed.user);
        assert!(again.password.matches(parsed.password.expose()));
    }
}

fn external_message(message: &[u8]) {
    if let Ok(Some(other)) = memory::bounded(message.len(), 0, || external::parse(message, "ada")) {
        assert_ne!(other, "ada");
        assert_eq!(other.as_bytes(), message);
    }
}

fn authorization(header: &[u8]) {
    match memory::bounded(header.len(), 0, || http::parse(header)) {
        Ok(http::Authorization::Basic(plain)) => {
            assert!((1..=NAME_BYTES_MAX).contains(&plain.user.len()));
            assert!(plain.acts_for.is_none());
        }
        Ok(http::Authorization::Bearer(token)) => is_same(&token),
        Ok(http::Authorization::Negotiate(token)) => {
            assert!((1..=TOKEN_BYTES_MAX).contains(&token.len()));
            let again = http::negotiate_answer(Some(&token));
            let again = http::parse(again.as_bytes()).expect("it is one");
            assert!(matches!(again, http::Authorization::Negotiate(again) if again == token));
        }
        Err(_) => {}
    }
}

fn is_same(token: &Token) {
    let again = Token::from_text(&token.to_text()).expect("it is one");
    assert_eq!(again.identifier, token.identifier);
    assert!(again.password.matches(token.password.expose()));
}

fn identifier(bytes: &[u8]) {
    let Ok(parsed) = memory::bounded(bytes.len(), 0, || TokenIdentifier::parse(bytes)) else {
        return;
    };
    let again = TokenIdentifier::parse(&parsed.to_bytes()).expect("it is one");
    assert_eq!(again, parsed);
}

fn token_text(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Some(token) = Token::from_text(text)
    {
        is_same(&token);
    }
}

fn token_file(bytes: &[u8]) {
    let Ok(file) = memory::bounded(bytes.len(), 0, || TokenFile::parse(bytes)) else {
        return;
    };
    let again = TokenFile::parse(&file.to_bytes()).expect("it is one");
    assert_eq!(again.entries.len(), file.entries.len());
    for (left, right) in again.entries.iter().zip(&file.entries) {
        let names = |entry: &basalt_security::token::Entry| {
            [&entry.alias, &entry.kind, &entry.service].map(String::clone)
        };
        assert_eq!(names(left), names(right));
        assert_eq!(left.token.identifier, right.token.identifier);
    }
}

fn certificate(der: &[u8]) {
    for from in [NameFrom::CommonName, NameFrom::Dns, NameFrom::Email] {
        let named = memory::bounded(der.len(), 0, || user_of(der, from));
        if let Ok(user) = named {
            assert!((1..=NAME_BYTES_MAX).contains(&user.len()) && !user.contains([',', ':']));
            assert!(expires(der).is_some(), "what has a name is a certificate");
        }
    }
}
