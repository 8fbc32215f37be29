use proptest::prelude::*;

use super::*;

/// RFC 2831, section 4: the examples with IMAP and ACAP.
#[test]
fn the_examples_of_the_rfc_are_met() {
    let exchange = |nonce, cnonce, uri| Exchange {
        user: "chris",
        realm: "elwood.innosoft.com",
        password: b"secret",
        nonce,
        cnonce,
        uri,
        authzid: None,
    };
    let imap = exchange("OA6MG9tEQGm2hh", "OA6MHXh6VqTrRk", "imap/elwood.innosoft.com");
    assert_eq!(imap.response(), "d388dad90d4bbd760a152321f2143af7");
    assert_eq!(imap.rspauth(), "ea40f60335c427b5527b84dbabcdfffd");
    let acap = exchange("OA9BSXrbuRhWay", "OA9BSuZWMSpW8m", "acap/elwood.innosoft.com");
    assert_eq!(acap.response(), "6084c6db3fede7352c551284490fd0fc");
    assert_eq!(acap.rspauth(), "2f0b3d7c3c2e486600ef710726aa2eae");
}

/// A login between the JDK's own client and server for DIGEST-MD5, created as HBase creates them
/// (OpenJDK 17, recorded): challenge, response, last message.
const JDK: [&str; 3] = [
    "realm=\"default\",nonce=\"Z/HOUQZHt1x1ebuEc5PlUTZT0z0/DzAgtfSS6u0P\",qop=\"auth\",charset=utf-8,algorithm=md5-sess",
    concat!(
        "charset=utf-8,username=\"AAAAGwgAEgVhbGljZRgBIIDQlf+8MSiA2MefvzEwBw==\",realm=\"default\",",
        "nonce=\"Z/HOUQZHt1x1ebuEc5PlUTZT0z0/DzAgtfSS6u0P\",nc=00000001,",
        "cnonce=\"DgH/iOx5MjuZnSFFBI8v7PLi/PkBxEnp+eBX3h3e\",digest-uri=\"null/default\",maxbuf=65536,",
        "response=2d937203135b79dc10250c21b957184c,qop=auth"
    ),
    "rspauth=8e916365dbb29be727ef66c382ed33a8",
];

#[test]
fn a_login_is_the_jdks_byte_for_byte() {
    let (user, password) = (
        "AAAAGwgAEgVhbGljZRgBIIDQlf+8MSiA2MefvzEwBw==",
        "fa9qWsaczSXMyT2BReqLOW699mk=",
    );
    let nonce = "Z/HOUQZHt1x1ebuEc5PlUTZT0z0/DzAgtfSS6u0P".to_owned();
    let server = Server { nonce };
    assert_eq!(server.challenge(), JDK[0].as_bytes());
    let find = |name: &str| {
        assert_eq!(name, user);
        Ok(((), Secret::new(password)))
    };
    let ((), last) = server.finish(JDK[1].as_bytes(), find).unwrap();
    assert_eq!(last, JDK[2].as_bytes());
    let mut client = Client::new(user.to_owned(), Secret::new(password)).unwrap();
    client.cnonce = "DgH/iOx5MjuZnSFFBI8v7PLi/PkBxEnp+eBX3h3e".to_owned();
    assert_eq!(client.respond(JDK[0].as_bytes()).unwrap(), JDK[1].as_bytes());
    client.finish(JDK[2].as_bytes()).unwrap();
}

const USER: &str = "AAAAB2FsaWNl";
const PASSWORD: &str = "c2VjcmV0";

fn client() -> Client {
    Client::new(USER.into(), Secret::new(PASSWORD)).unwrap()
}

/// Answers a message as a server that knows one user.
fn answer(server: Server, message: &[u8]) -> std::result::Result<Vec<u8>, Refused> {
    let find = |user: &str| match user {
        USER => Ok(((), Secret::new(PASSWORD))),
        _ => Err(Refused(Reason::UnknownUser)),
    };
    server.finish(message, find).map(|((), last)| last)
}

/// Answers a client's message in which `part` is replaced.
fn answer_with(part: &str, by: &str) -> std::result::Result<Vec<u8>, Refused> {
    let server = Server::new().unwrap();
    let message = client().respond(&server.challenge()).unwrap();
    let message = String::from_utf8(message).unwrap();
    let changed = message.replace(part, by);
    assert!(part.is_empty() || changed != message, "{message}");
    answer(server, changed.as_bytes())
}

#[test]
fn both_sides_prove_that_they_know_the_password() {
    let server = Server::new().unwrap();
    let mut client = client();
    assert!(client.finish(b"rspauth=").is_err(), "before the challenge");
    let message = client.respond(&server.challenge()).unwrap();
    let last = answer(server, &message).unwrap();
    client.finish(&last).unwrap();
    for bad in [&b""[..], b"rspauth=", b"rspauth=00000000000000000000000000000000"] {
        assert!(client.finish(bad).is_err());
    }
}

#[test]
fn a_token_logs_in_until_it_is_revoked() {
    use std::time::Duration;

    let (mut users, now) = (Users::default(), SystemTime::now());
    users
        .create_user("bob", crate::users::NewUser::default())
        .unwrap();
    let (sequence, token) = users.issue_token("bob", Duration::from_hours(1), now).unwrap();
    let log_in = |users: &Users| {
        let server = Server::new().unwrap();
        let mut client = Client::new(token.digest_user(), token.digest_password()).unwrap();
        let message = client.respond(&server.challenge()).unwrap();
        let (found, last) = server.finish_token(&message, users, now)?;
        client.finish(&last).unwrap();
        Ok((found.user, found.sequence))
    };
    assert_eq!(log_in(&users), Ok(("bob".to_owned(), sequence)));
    users.revoke_token(sequence).unwrap();
    assert_eq!(log_in(&users), Err(Refused(Reason::Revoked)));
}

#[test]
fn wrong_passwords_and_users_are_refused() {
    for (user, password, reason) in [
        (USER, "c2VjcmV1", Reason::WrongSignature),
        (USER, "", Reason::WrongSignature),
        ("AAAAB2FsaWNm", PASSWORD, Reason::UnknownUser),
    ] {
        let server = Server::new().unwrap();
        let mut client = Client::new(user.into(), Secret::new(password)).unwrap();
        let message = client.respond(&server.challenge()).unwrap();
        assert_eq!(answer(server, &message), Err(Refused(reason)));
    }
    assert!(Client::new("\u{e9}".into(), Secret::new("")).is_err());
}

#[test]
fn a_message_serves_one_nonce() {
    let message = client().respond(&Server::new().unwrap().challenge()).unwrap();
    assert_eq!(
        answer(Server::new().unwrap(), &message),
        Err(Refused(Reason::Malformed))
    );
}

#[test]
fn directives_that_were_not_offered_are_refused() {
    assert!(answer_with("", "").is_ok());
    assert!(answer_with("charset=utf-8,", "").is_ok());
    assert!(answer_with(",qop=auth", "").is_ok());
    assert!(answer_with(",maxbuf=65536", ",new=\"thing\"").is_ok());
    for (part, by) in [
        ("qop=auth", "qop=auth-int"),
        ("nc=00000001", "nc=00000002"),
        ("realm=\"default\"", "realm=\"other\""),
        ("realm=\"default\",", ""),
        ("digest-uri=\"null/default\"", "digest-uri=\"hbase/default\""),
        ("charset=utf-8", "charset=latin-1"),
        ("charset=utf-8", "charset=utf-8,authzid=\"ada\""),
        ("username=", "user="),
        ("username=\"AAAAB2FsaWNl\"", "username=\"\""),
        ("cnonce=", "other="),
        ("response=", "response=0"),
        ("maxbuf=65536", "qop=auth"),
        ("nonce=\"", "nonce=\"x"),
    ] {
        assert_eq!(
            answer_with(part, by),
            Err(Refused(Reason::Malformed)),
            "{part} -> {by}"
        );
    }
    let long = format!("charset=utf-8,x=\"{}\"", "x".repeat(MESSAGE_BYTES_MAX));
    assert_eq!(
        answer_with("charset=utf-8", &long),
        Err(Refused(Reason::Malformed))
    );
    // The user that a client names to act as is part of the proof.
    let named = format!("charset=utf-8,authzid=\"{USER}\"");
    assert_eq!(
        answer_with("charset=utf-8", &named),
        Err(Refused(Reason::WrongSignature))
    );
}

#[test]
fn challenges_that_a_client_cannot_meet_are_errors() {
    for bad in [
        "",
        "realm=\"default\",qop=\"auth\",algorithm=md5-sess",
        "nonce=\"x\",qop=\"auth-conf\",algorithm=md5-sess",
        "nonce=\"x\",qop=\"auth\",algorithm=md5",
        "nonce=\"x\",nonce=\"y\",algorithm=md5-sess",
    ] {
        assert!(client().respond(bad.as_bytes()).is_err(), "{bad}");
    }
    assert!(
        client()
            .respond(b"nonce=\"x\",qop=\"auth-conf, auth\",algorithm=md5-sess")
            .is_ok()
    );
}

proptest! {
    #[test]
    fn any_bytes_are_refused(message in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(answer(Server::new().unwrap(), &message).is_err());
        let _ = client().respond(&message);
    }

    /// A client's message in which one byte is another one is refused, unless that byte has no
    /// meaning.
    #[test]
    fn damaged_messages_are_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let server = Server::new().unwrap();
        let message = client().respond(&server.challenge()).unwrap();
        let mut damaged = message.clone();
        let at = at.index(message.len());
        damaged[at] = byte;
        let text = String::from_utf8_lossy(&message).into_owned();
        let is_in = |part: &str| text.find(part).is_some_and(|start| (start..start + part.len()).contains(&at));
        let is_free = ["charset=utf-8", "maxbuf=65536,", "qop=auth"].into_iter().any(is_in);
        let is_case = damaged.eq_ignore_ascii_case(&message);
        prop_assert!(is_free || is_case || answer(server, &damaged).is_err(), "{}", String::from_utf8_lossy(&damaged));
    }
}
