//! Messages of clients that log in. The number before each is that of the parser in `target::logins`.

use basalt_security::Secret;
use basalt_security::sasl::plain;
use basalt_security::token::{Token, TokenFile, TokenIdentifier};

use super::seed;
use crate::corpus::Input;

fn token() -> Token {
    let identifier = TokenIdentifier {
        kind: 0,
        username: b"ada".to_vec(),
        key_id: 1,
        issue_date: Some(1_790_000_000_000),
        expiration_date: Some(1_800_000_000_000),
        sequence_number: Some(7),
    };
    Token {
        identifier: identifier.to_bytes(),
        password: Secret::new([5; 20]),
    }
}

/// A client's response, as Java's client writes it.
fn response(user: &str) -> String {
    format!(
        "charset=utf-8,username=\"{user}\",realm=\"default\",nonce=\"%NONCE%\",nc=00000001,cnonce=\"Y25vbmNl\",\
         digest-uri=\"null/default\",maxbuf=65536,response=0123456789abcdef0123456789abcdef,qop=auth"
    )
}

/// Messages of each parser, and some that claim more than they have.
pub(super) fn seeds() -> Vec<Input> {
    let of = |name: &str, which: u8, message: &[u8]| seed(name, [&[which], message].concat());
    let token = token();
    let user = token.digest_user();
    let file = TokenFile::of(&token, "1f0d3a52-0000-4000-8000-000000000001").to_bytes();
    let text = token.to_text();
    let response = response(&user);
    vec![
        of("digest-response", 0, response.as_bytes()),
        of(
            "digest-with-authzid",
            0,
            format!("{response},authzid=\"{user}\"").as_bytes(),
        ),
        of("digest-twice", 0, format!("{response},{response}").as_bytes()),
        of(
            "digest-quoted",
            0,
            b"username=\"a\\\"b\\\\\",realm=\"default\",nonce=\"%NONCE%\"",
        ),
        of("digest-open-quote", 0, b"username=\"ada"),
        of("digest-empty", 0, b""),
        of(
            "challenge",
            1,
            b"realm=\"default\",nonce=\"bm9uY2U=\",qop=\"auth,auth-int\",charset=utf-8,algorithm=md5-sess",
        ),
        of("rspauth", 1, b"rspauth=0123456789abcdef0123456789abcdef"),
        of(
            "plain",
            2,
            plain::message("ada", &Secret::new("open sesame")).expose(),
        ),
        of("plain-for-another", 2, b"bob\0gate\0secret"),
        of("plain-without-password", 2, b"\0ada\0"),
        of("external", 3, b""),
        of("external-for-another", 3, b"bob"),
        of("basic", 4, b"Basic YWRhOm9wZW4gc2VzYW1l"),
        of("bearer", 4, [b"Bearer ", text.as_bytes()].concat().as_slice()),
        of("identifier", 5, &token.identifier),
        of("identifier-of-two-gigabytes", 5, &[0x7f, 0xff, 0xff, 0xff, 8, 0]),
        of("token-text", 6, text.as_bytes()),
        of("token-file", 7, &file),
        of("token-file-cut", 7, &file[..file.len() - 9]),
        of(
            "token-file-of-many",
            7,
            b"HDTS\0\x88\x7f\xff\xff\xff\xff\xff\xff\xff",
        ),
        of("certificate-cut", 8, b"\x30\x82\x01\x0a\x30\x81"),
    ]
}
