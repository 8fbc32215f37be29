use proptest::prelude::*;

use super::*;

fn identifier() -> TokenIdentifier {
    TokenIdentifier {
        kind: 0,
        username: b"alice".to_vec(),
        key_id: 1,
        issue_date: Some(1_700_000_000_000),
        expiration_date: Some(1_700_604_800_000),
        sequence_number: Some(7),
    }
}

fn key() -> TokenKey {
    let secret = Secret::new((0..32).collect::<Vec<u8>>());
    TokenKey { id: 1, secret }
}

fn token() -> Token {
    let identifier = identifier().to_bytes();
    let password = key().sign(&identifier);
    Token { identifier, password }
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from_digit(u32::from(digit), 16).unwrap())
        .collect()
}

/// Identifier and signature of `AuthenticationTokenIdentifier` (hbase-client 2.6.4) and
/// `javax.crypto.Mac` for the same fields and key.
#[test]
fn identifier_and_signature_are_hbases() {
    let token = token();
    assert_eq!(
        hex(&token.identifier),
        "0000001b08001205616c69636518012080d095ffbc312880d8c79fbf313007"
    );
    assert_eq!(
        hex(token.password.expose()),
        "7daf6a5ac69ccd25ccc93d8145ea8b396ebdf669"
    );
}

/// The file of `Credentials.writeTokenStorageToStream` (Hadoop, as hbase-shaded-client 2.6.4 has
/// it) with this token under two services, up to the number of secret keys.
const HADOOPS_FILE: &str = concat!(
    "4844545300020f64656661756c742d636c75737465721f0000001b08001205616c69636518012080d095ffbc312880d8c79f",
    "bf313007147daf6a5ac69ccd25ccc93d8145ea8b396ebdf6691048424153455f415554485f544f4b454e0f64656661756c74",
    "2d636c757374657207636c75737465721f0000001b08001205616c69636518012080d095ffbc312880d8c79fbf313007147d",
    "af6a5ac69ccd25ccc93d8145ea8b396ebdf6691048424153455f415554485f544f4b454e07636c7573746572",
);
/// One secret key, `other`: what the same program writes then.
const HADOOPS_SECRET: &str = "01056f7468657203010203";

#[test]
fn the_file_is_hadoops() {
    let mut file = TokenFile::of(&token(), "cluster");
    // The order of Hadoop's hash map.
    file.entries.reverse();
    assert_eq!(hex(&file.to_bytes()), format!("{HADOOPS_FILE}00"));
    let with_secret = format!("{HADOOPS_FILE}{HADOOPS_SECRET}");
    let bytes: Vec<u8> = (0..with_secret.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&with_secret[at..at + 2], 16).unwrap())
        .collect();
    let parsed = TokenFile::parse(&bytes).unwrap();
    assert_eq!(parsed.to_bytes(), file.to_bytes());
}

#[test]
fn an_identifier_is_parsed_as_it_was_written() {
    let bytes = identifier().to_bytes();
    assert_eq!(TokenIdentifier::parse(&bytes), Ok(identifier()));
    for end in 0..bytes.len() {
        assert!(TokenIdentifier::parse(&bytes[..end]).is_err(), "{end}");
    }
    let mut long = bytes.clone();
    long.push(0);
    assert!(TokenIdentifier::parse(&long).is_err());
    let mut other = identifier();
    other.kind = 1;
    assert!(TokenIdentifier::parse(&other.to_bytes()).is_err());
    other = identifier();
    other.username = vec![b'x'; IDENTIFIER_BYTES_MAX];
    assert!(TokenIdentifier::parse(&other.to_bytes()).is_err());
}

#[test]
fn a_signature_covers_every_bit() {
    let token = token();
    assert!(key().verify(&token.identifier, token.password.expose()));
    for at in 0..token.identifier.len() * 8 {
        let mut changed = token.identifier.clone();
        changed[at / 8] ^= 1 << (at % 8);
        assert!(!key().verify(&changed, token.password.expose()), "bit {at}");
    }
    assert!(
        !TokenKey::random(1)
            .unwrap()
            .verify(&token.identifier, token.password.expose())
    );
}

#[test]
fn the_text_is_read_back_and_passwords_are_no_tokens() {
    let token = token();
    let text = token.to_text();
    let back = Token::from_text(&text).unwrap();
    assert_eq!(back.identifier, token.identifier);
    assert!(back.password.matches(token.password.expose()));
    for other in [
        "",
        ".",
        "hunter2",
        "hunter.2",
        &text[1..],
        &text[..text.len() - 1],
        &format!("{}A", &*text),
    ] {
        assert!(Token::from_text(other).is_none(), "{other}");
    }
    assert!(Token::from_text(&format!("{}.{}", "A".repeat(1 << 20), "A".repeat(27))).is_none());
}

#[test]
fn a_digest_login_is_read_back() {
    let token = token();
    assert_eq!(
        identifier_of_digest_user(&token.digest_user()).unwrap(),
        token.identifier
    );
    assert!(identifier_of_digest_user("?").is_err());
    assert!(identifier_of_digest_user(&"A".repeat(4096)).is_err());
}

#[test]
fn a_file_has_the_token_under_both_services() {
    let token = token();
    let file = TokenFile::parse(&TokenFile::of(&token, "cluster").to_bytes()).unwrap();
    assert_eq!(file.entries.len(), 2);
    for service in ["cluster", DEFAULT_SERVICE] {
        let found = file.find(service).unwrap();
        assert_eq!(found.identifier, token.identifier);
        assert!(found.password.matches(token.password.expose()));
    }
    assert!(file.find("other").is_none());
    let mut foreign = TokenFile::of(&token, "cluster");
    foreign.entries[0].kind = "HDFS_DELEGATION_TOKEN".into();
    assert!(foreign.find("cluster").is_none());
}

#[test]
fn files_that_are_no_token_files_are_errors() {
    let bytes = TokenFile::of(&token(), "cluster").to_bytes();
    let problem = |bytes: &[u8]| TokenFile::parse(bytes).unwrap_err().to_string();
    assert!(problem(b"HDFS\0").contains("does not begin with HDTS"));
    assert!(problem(b"HDTS").contains("damaged"));
    assert!(problem(b"HDTS\x01").contains("format other than 0"));
    assert!(problem(&vec![0; (1 << 20) + 1]).contains("more than 1 MiB"));
    assert!(problem(&[&bytes[..], &[0]].concat()).contains("damaged"));
    for end in 5..bytes.len() {
        assert!(problem(&bytes[..end]).contains("damaged"), "{end}");
    }
    assert!(problem(&[]).contains("basalt token create"));
    // A negative and a huge number of entries.
    assert!(TokenFile::parse(b"HDTS\0\xff\0").is_ok_and(|file| file.entries.is_empty()));
    assert!(problem(b"HDTS\0\x88\x7f\xff\xff\xff\xff\xff\xff\xff").contains("damaged"));
}

proptest! {
    #[test]
    fn any_bytes_are_a_file_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = TokenFile::parse(&[b"HDTS\0", &bytes[..]].concat());
        let _ = TokenIdentifier::parse(&bytes);
    }

    #[test]
    fn damaged_files_do_not_grow(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = TokenFile::of(&token(), "cluster").to_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(file) = TokenFile::parse(&bytes) {
            let total: usize = file.entries.iter().map(|entry| entry.token.identifier.len()).sum();
            prop_assert!(total <= bytes.len());
        }
    }

    #[test]
    fn any_text_is_a_token_or_none(text in "[A-Za-z0-9_.-]{0,200}") {
        prop_assert!(Token::from_text(&text).is_none());
    }
}
