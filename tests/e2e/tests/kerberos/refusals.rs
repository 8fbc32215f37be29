//! Tickets, tokens and pieces that are refused, each with the same text for the client.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use basalt_test_support::{JavaProgram, Server};
use base64::Engine as _;
use socket2::{Domain, SockAddr, Socket, Type};

use super::{Kdc, Kerberized, audit_log, create_users, data, settings, transcript};

/// The first token of a client (`Kerberos token`), with the tickets of ada.
fn token(kdc: &Kdc, client: &JavaProgram) -> Vec<u8> {
    let said = transcript(
        client
            .java()
            .arg(format!(
                "-Djava.security.krb5.conf={}",
                kdc.configuration().display()
            ))
            .args(basalt_test_support::java::SMALL)
            .arg("basalt.client.Kerberos")
            .arg(kdc.tickets("ada"))
            .arg("token"),
    );
    base64::prelude::BASE64_STANDARD
        .decode(said.trim())
        .expect("the client prints base64")
}

/// An address of this machine: failures of one do not delay another.
fn address(number: usize) -> IpAddr {
    let number = u16::try_from(number)
        .expect("few addresses are used")
        .to_be_bytes();
    Ipv4Addr::new(127, 9, number[0], number[1]).into()
}

/// A native connection from that address.
fn connect(server: &Server, from: IpAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket
        .bind(&SockAddr::from(SocketAddr::new(from, 0)))
        .expect("all of 127/8 is this machine");
    socket
        .connect(&SockAddr::from(server.thrift))
        .expect("the server listens");
    let stream = TcpStream::from(socket);
    stream
        .set_read_timeout(Some(Duration::from_mins(1)))
        .expect("a socket has a timeout");
    stream
}

/// Sends a token at the native port. The answer is the server's token, or the class and text of the refusal.
fn login(server: &Server, from: IpAddr, token: &[u8]) -> Result<Vec<u8>, String> {
    let mut stream = connect(server, from);
    let length = u32::try_from(token.len())
        .expect("a token is short")
        .to_be_bytes();
    let message = [&b"HBas\0\x51"[..], &length, token].concat();
    stream.write_all(&message).expect("the server reads");
    let mut int = || {
        let mut int = [0; 4];
        stream.read_exact(&mut int).expect("the server answers");
        u32::from_be_bytes(int) as usize
    };
    let status = int();
    let parts = if status == 0 { 1 } else { 2 };
    let mut texts = Vec::new();
    for _ in 0..parts {
        let mut length = [0; 4];
        stream.read_exact(&mut length).expect("the server answers");
        let mut text = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut text).expect("the server answers");
        texts.push(text);
    }
    match (status, &texts[..]) {
        (0, [token]) => Ok(token.clone()),
        (_, texts) => Err(String::from_utf8_lossy(&texts.join(&b": "[..])).into_owned()),
    }
}

const REFUSED: &str = "javax.security.sasl.SaslException: authentication failed";

/// Goal: whatever the bytes of a token, the server answers, refuses what was changed, and takes the next
/// right one. Method: one right token, with each of some bytes changed, and cut after some of them.
#[test]
fn tokens_that_were_changed_or_used_are_refused() {
    let Some(client) = JavaProgram::find("e2e/clients/java") else {
        return;
    };
    let Some(server) = Kerberized::start(&[]) else {
        return;
    };
    server.kdc.login("ada", &[]);
    let right = token(&server.kdc, &client);
    let mut number = 0;
    let mut from = || {
        number += 1;
        address(number)
    };
    let step = right.len() / 150 + 1;
    let (mut accepted, mut tried) = (0, 0);
    for at in (0..right.len()).step_by(step) {
        let mut changed = right.clone();
        changed[at] ^= 1 << (at % 8);
        tried += 1;
        match login(&server.server, from(), &changed) {
            // The token's frame has bits that say nothing of the ticket.
            Ok(_) => accepted += 1,
            Err(text) => assert_eq!(text, REFUSED, "byte {at}"),
        }
        if at > 0 {
            assert_eq!(
                login(&server.server, from(), &right[..at]).unwrap_err(),
                REFUSED,
                "cut at {at}"
            );
        }
    }
    assert!(accepted * 10 < tried, "{accepted} of {tried}");
    for garbage in [&b""[..], b"\0", &[0xff; 16 << 10], &[0x60; 1_000]] {
        assert_eq!(login(&server.server, from(), garbage).unwrap_err(), REFUSED);
    }
    let fresh = token(&server.kdc, &client);
    login(&server.server, from(), &fresh).expect("the ticket is right");
    assert_eq!(
        login(&server.server, from(), &fresh).unwrap_err(),
        REFUSED,
        "a second use"
    );
    server.until_audited(&["authentication-failed", "malformed message"]);
    server.until_audited(&["authentication-failed", "ticket is not accepted"]);
}

/// Goal: a message that is longer than a token may be ends the connection before it is received.
#[test]
fn a_token_that_is_too_long_is_not_received() {
    let Some(server) = Kerberized::start(&[]) else {
        return;
    };
    let mut stream = connect(&server.server, address(1));
    stream
        .write_all(b"HBas\0\x51\x7f\xff\xff\xff")
        .expect("the server reads");
    let mut answer = Vec::new();
    stream
        .read_to_end(&mut answer)
        .expect("the server ends the connection");
    assert!(
        String::from_utf8_lossy(&answer).contains("the limit is 16384"),
        "{answer:?}"
    );
}

/// Goal: failures of an address are answered later and later, and others are not delayed by them.
#[test]
fn failures_of_an_address_are_delayed() {
    let Some(server) = Kerberized::start(&[]) else {
        return;
    };
    let begun = std::time::Instant::now();
    for _ in 0..7 {
        assert_eq!(login(&server.server, address(1), b"abc").unwrap_err(), REFUSED);
    }
    // 100, 200, 400 and 800 ms.
    assert!(
        begun.elapsed() >= Duration::from_millis(1_500),
        "{:?}",
        begun.elapsed()
    );
}

/// Goal: a principal that is no user is refused while the client still waits for an answer.
#[test]
fn a_principal_without_a_user_is_refused() {
    let Some(client) = JavaProgram::find("e2e/clients/java") else {
        return;
    };
    let Some(server) = Kerberized::start(&[]) else {
        return;
    };
    for (user, expected) in [("eve", REFUSED), ("bob", "logged in")] {
        let tickets = server.kdc.login(user, &[]);
        let said = transcript(
            server
                .java(&client, user, server.dir.path())
                .arg("basalt.client.Kerberos")
                .arg(&tickets)
                .args(["native", &server.port()]),
        );
        assert_eq!(said.trim(), expected);
    }
    server.until_audited(&["authentication-failed", "unknown user"]);
}

/// Goal: wrong pieces after a login with encryption end the connection, and no call is made of them.
#[test]
fn wrong_pieces_end_the_connection() {
    let Some(client) = JavaProgram::find("e2e/clients/java") else {
        return;
    };
    let Some(server) = Kerberized::start(&[]) else {
        return;
    };
    let tickets = server.kdc.login("ada", &[]);
    let said = transcript(
        server
            .java(&client, "ada", server.dir.path())
            .arg("basalt.client.Kerberos")
            .arg(&tickets)
            .args(["pieces", &server.port()]),
    );
    assert!(said.ends_with("pieces done\n"), "{said}");
    let ends: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split_once(" -> ").map(|(_, end)| end))
        .collect();
    assert!(
        ends.len() > 15 && ends.iter().all(|end| *end == "closed"),
        "{said}"
    );
    let fresh = token(&server.kdc, &client);
    login(&server.server, address(1), &fresh).expect("the ticket is right");
}

/// Goal: a ticket that another KDC has made, with other keys for the same names, is refused.
#[test]
fn a_ticket_of_another_kdc_is_refused() {
    let Some(client) = JavaProgram::find("e2e/clients/java") else {
        return;
    };
    let (Some(server), Some(other)) = (Kerberized::start(&[]), Kdc::start()) else {
        return;
    };
    other.login("ada", &[]);
    let wrong = token(&other, &client);
    assert_eq!(login(&server.server, address(1), &wrong).unwrap_err(), REFUSED);
    server.until_audited(&["authentication-failed", "ticket is not accepted"]);
}

/// Goal: the cause is in the log and the audit log when the clocks differ, and when the ticket has expired.
#[test]
fn a_clock_that_is_wrong_and_an_expired_ticket_are_named() {
    let Some(client) = JavaProgram::find("e2e/clients/java") else {
        return;
    };
    let Some(kdc) = Kdc::start() else { return };
    kdc.login("ada", &[]);
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    create_users(dir.path());
    let clock = dir.path().join("clock");
    let set = |offset: &str| std::fs::write(&clock, offset).expect("there is space");
    set("+0");
    let settings = settings(&kdc, &[]);
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let Some(server) = Server::start_with_clock(&data(dir.path()), &settings, &clock) else {
        return;
    };
    set("+20m");
    assert_eq!(
        login(&server, address(1), &token(&kdc, &client)).unwrap_err(),
        REFUSED
    );
    until_audited(dir.path(), "clocks of client and server differ too much");
    set("+20d");
    assert_eq!(
        login(&server, address(2), &token(&kdc, &client)).unwrap_err(),
        REFUSED
    );
    until_audited(dir.path(), "ticket has expired");
    set("+0");
    login(&server, address(3), &token(&kdc, &client)).expect("the clock is right again");
    let log = server.stop_and_log();
    assert!(
        log.contains("a login with Kerberos from 127.9.0.1 has failed")
            && log.contains("Clock skew too great"),
        "{log}"
    );
}

fn until_audited(dir: &Path, reason: &str) {
    basalt_test_support::until(reason, || audit_log(dir).contains(reason));
}

/// Goal: a wrong keytab, and one without the principal, end the start with the file and the remedy.
#[test]
fn a_keytab_that_cannot_be_used_ends_the_start() {
    let Some(kdc) = Kdc::start() else { return };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    create_users(dir.path());
    let start = |keytab: &Path, principal: &str| {
        let settings = [
            format!("kerberos.keytab={}", keytab.display()),
            format!("kerberos.principal={principal}"),
        ];
        Server::try_start(&data(dir.path()), &settings.each_ref().map(String::as_str))
            .expect_err("it does not start")
    };
    let absent = dir.path().join("absent.keytab");
    let text = start(&absent, super::SERVICE);
    assert!(
        text.contains("absent.keytab") && text.contains("kerberos.keytab"),
        "{text}"
    );
    let text = start(&kdc.keytab(), "hbase/elsewhere@EXAMPLE.ORG");
    assert!(
        text.contains("no keys of hbase/elsewhere@EXAMPLE.ORG") && text.contains("ktadd"),
        "{text}"
    );
    let garbage = dir.path().join("garbage.keytab");
    std::fs::write(&garbage, "no keys").expect("there is space");
    let text = start(&garbage, super::SERVICE);
    assert!(text.contains("garbage.keytab"), "{text}");
}
