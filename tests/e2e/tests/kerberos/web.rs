//! HTTP with tickets (SPNEGO): curl at the pages and at REST.

use super::Kerberized;

/// The status of curl's request, and headers and body.
fn curl(server: &Kerberized, user: &str, arguments: &[&str]) -> (String, String) {
    let output = server
        .kdc
        .command("curl")
        .env("KRB5CCNAME", server.kdc.tickets(user))
        .args(["-s", "-i", "-w", "\nstatus %{http_code}\n"])
        .args(arguments)
        .output()
        .expect("curl was found a moment ago");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let status = text.trim_end().rsplit(' ').next().unwrap_or_default().to_owned();
    (status, text)
}

pub(super) fn has_curl() -> bool {
    let said = std::process::Command::new("curl").arg("-V").output();
    let can = said.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("SPNEGO"));
    if !can {
        println!("not run: there is no curl with SPNEGO");
    }
    can
}

const NEGOTIATE: [&str; 3] = ["--negotiate", "-u", ":"];

#[test]
fn curl_negotiates_at_pages_and_rest() {
    if !has_curl() {
        return;
    }
    let Some(server) = Kerberized::start(&["http.allowed_hosts=[\"localhost\"]"]) else {
        return;
    };
    for user in ["ada", "bob", "eve"] {
        server.kdc.login(user, &[]);
    }
    let page = format!("http://localhost:{}/tables", server.server.http.port());
    let rest = format!("http://localhost:{}/version", server.server.thrift.port());
    for url in [&page, &rest] {
        let (status, text) = curl(&server, "ada", &[url]);
        assert_eq!(status, "401", "{text}");
        assert!(
            text.to_lowercase().contains("www-authenticate: negotiate\r\n"),
            "{text}"
        );
        // Two requests on one connection: each has a ticket of its own.
        let (status, text) = curl(&server, "ada", &[&NEGOTIATE[..], &[url, url]].concat());
        assert_eq!(status, "200", "{text}");
        assert_eq!(text.matches("200 OK").count(), 2, "{text}");
        assert!(
            text.to_lowercase().contains("www-authenticate: negotiate "),
            "{text}"
        );
    }
    // A user without the right to the page, and a principal that is no user.
    let (status, text) = curl(&server, "bob", &[&NEGOTIATE[..], &[&page]].concat());
    assert_eq!(status, "403", "{text}");
    let (status, text) = curl(&server, "eve", &[&NEGOTIATE[..], &[&page]].concat());
    assert_eq!(status, "401", "{text}");
    assert!(text.contains("authentication failed"), "{text}");
    let (status, garbage) = curl(&server, "eve", &["-H", "Authorization: Negotiate YWJj", &page]);
    assert_eq!(status, "401", "{garbage}");
    assert!(garbage.contains("authentication failed"), "{garbage}");
    server.until_audited(&["authentication-failed", r#""protocol":"http""#, "unknown user"]);
    server.until_audited(&[
        "authentication-failed",
        r#""protocol":"http""#,
        "malformed message",
    ]);
}

/// Goal: without keys of HTTP in the keytab, nothing offers tickets.
#[test]
fn http_takes_no_tickets_without_keys_for_it() {
    if !has_curl() {
        return;
    }
    let Some(kdc) = super::Kdc::start() else { return };
    let keytab = kdc.path().join("native.keytab");
    kdc.administer(&format!("ktadd -k {} {}", keytab.display(), super::SERVICE));
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let more = format!("kerberos.keytab={}", keytab.display());
    let server = super::serve(&kdc, dir.path(), &[&more]);
    let server = Kerberized { kdc, server, dir };
    let page = format!("http://127.0.0.1:{}/tables", server.server.http.port());
    let (status, text) = curl(&server, "ada", &[&page]);
    assert_eq!(status, "401", "{text}");
    assert!(!text.contains("Negotiate"), "{text}");
}
