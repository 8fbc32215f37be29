//! The table of rights `hbase:acl` and its endpoint, owners of snapshots, and tokens that clients ask for.

use std::path::Path;
use std::process::Output;

use basalt_test_support::JavaProgram;
use basalt_test_support::java::SMALL;

use super::security::{Commands, Secured, finished, keystore};

/// Runs the program `Rights` of the 1.7.2 client as a user with a token.
fn rights(client: &JavaProgram, site: &Path, token: &Path, [port, part]: [&str; 2]) -> String {
    let output = client
        .java_with(site)
        .env("HADOOP_TOKEN_FILE_LOCATION", token)
        .args(SMALL)
        .arg("basalt.client.Rights")
        .args(["zookeeper", "127.0.0.1", port, part])
        .output()
        .expect("java was found a moment ago");
    finished(&output)
}

/// The answer to a request in a transcript.
fn answer<'t>(transcript: &'t str, request: &str) -> &'t str {
    let start = format!("{request} -> ");
    let line = transcript.lines().find_map(|line| line.strip_prefix(&start[..]));
    line.unwrap_or_else(|| panic!("{request} is not in\n{transcript}"))
}

/// Goal: the unmodified client of 1.x grants and revokes by the endpoint of `hbase:acl`, which lists what is
/// true and takes no puts (check 26).
#[test]
fn hbase_shaded_client_1_7_2_grants() {
    let (Some(old), Some(new)) = (
        JavaProgram::find("e2e/clients/java-1.7"),
        JavaProgram::find("e2e/clients/java-native"),
    ) else {
        return;
    };
    let secured = Secured::start(&[]);
    let (site, port) = (secured.token_site(), secured.port());
    let (ada, bob) = (secured.token("ada"), secured.token("bob"));
    let granted = rights(&old, &site, &ada, [&port, "grant"]);
    for request in [
        "grant on a family",
        "grant more",
        "grant on a column",
        "grant on a namespace",
        "grant everywhere",
        "revoke",
        "revoke everywhere",
    ] {
        assert_eq!(answer(&granted, request), "done", "{granted}");
    }
    assert_eq!(answer(&granted, "is authorization on"), "true");
    assert_eq!(
        answer(&granted, "rows"),
        "[@default l:bob=X, hbase:acl l:eve=C, t l:@readers,g,q=R l:ada=RWXCA l:bob,f=RW]"
    );
    assert_eq!(
        answer(&granted, "rows that are left"),
        "[@default l:bob=X, t l:@readers,g,q=R l:ada=RWXCA l:bob,f=R]"
    );
    assert_eq!(answer(&granted, "one row"), "@default l:bob=X");
    let listed = answer(&granted, "of the table");
    for part in [
        "user=ada",
        "user=bob",
        "user=@readers",
        "family=f",
        "actions=READ,WRITE",
    ] {
        assert!(listed.contains(part), "{part} is not in {listed}");
    }
    assert!(answer(&granted, "of the namespace").contains("namespace=default"));
    let refused = answer(&granted, "put into it");
    assert!(
        refused.contains("grant and revoke change what it lists"),
        "{refused}"
    );

    // Granted rights hold, for the old client and a new one; reading the table of rights needs a right to it.
    let asked = rights(&old, &site, &bob, [&port, "ask"]);
    assert_eq!(answer(&asked, "get"), "r f:q=seen");
    for request in ["rows", "grant"] {
        let refused = answer(&asked, request);
        assert!(refused.contains("AccessDeniedException"), "{request}: {refused}");
    }
    // The client asks for the rights of tables whose descriptors it gets, and these need C or A.
    assert_eq!(answer(&asked, "of the table"), "[]");
    let mut commands = Commands::start(&new, &site, Some(&bob), ["zookeeper", &port]);
    assert_eq!(commands.ask("get t r"), "r f:q=seen");
    assert!(commands.ask("put t r f:q w").contains("action=WRITE"));
    assert!(commands.ask("scan hbase:acl").contains("action=READ"));
    let log = secured.audit_log();
    assert!(
        log.contains(r#""event":"rights-change""#) && log.contains("grant RW"),
        "{log}"
    );
}

/// Makes requests that must succeed.
fn done(commands: &mut Commands, requests: &[&str]) {
    for request in requests {
        assert_eq!(commands.ask(request), "done", "{request}");
    }
}

/// Goal: a snapshot is its owner's: it lists, restores, clones and deletes it with the rights that HBase asks
/// for, and nobody else's.
#[test]
fn snapshots_are_their_owners() {
    let Some(client) = JavaProgram::find("e2e/clients/java-native") else {
        return;
    };
    let secured = Secured::start(&[]);
    let (site, port) = (secured.token_site(), secured.port());
    let with_token = |user| {
        let token = secured.token(user);
        Commands::start(&client, &site, Some(&token), ["zookeeper", &port])
    };
    let (mut ada, mut bob) = (with_token("ada"), with_token("bob"));
    let denied = |answer: &str, what: &str| {
        assert!(
            answer.contains("AccessDeniedException: Insufficient permissions for user 'bob'")
                && answer.contains(&format!("({what}, action=ADMIN)")),
            "{answer}"
        );
    };
    done(
        &mut ada,
        &[
            "create t f",
            "put t r f:q v",
            "grant bob t ADMIN",
            "snapshot t of-ada",
        ],
    );
    assert_eq!(bob.ask("snapshots"), "[]");
    done(&mut bob, &["snapshot t of-bob"]);
    assert_eq!(bob.ask("snapshots"), "[of-bob of bob]");
    assert_eq!(ada.ask("snapshots"), "[of-ada of ada, of-bob of bob]");

    denied(&bob.ask("forget of-ada"), "scope=GLOBAL");
    denied(&bob.ask("clone of-ada u"), "scope=GLOBAL");
    denied(&bob.ask("clone of-bob u"), "namespace=default");
    done(&mut bob, &["disable t"]);
    // The client looks for the snapshot in the list first.
    assert!(bob.ask("restore of-ada").contains("Unable to find"));
    done(&mut bob, &["restore of-bob"]);

    // Without the right to the table the owner cannot restore it, and may make it again once it is gone.
    done(&mut ada, &["revoke bob t ADMIN"]);
    denied(&bob.ask("restore of-bob"), "table=t");
    done(&mut ada, &["drop t"]);
    done(&mut bob, &["clone of-bob t", "put t r f:q w", "forget of-bob"]);
    assert_eq!(bob.ask("get t r"), "r f:q=w");
    assert_eq!(bob.ask("snapshots"), "[]");

    // A later snapshot of that name is not bob's.
    done(&mut ada, &["snapshot t of-bob"]);
    assert_eq!(bob.ask("snapshots"), "[]");
    denied(&bob.ask("forget of-bob"), "scope=GLOBAL");
}

/// Runs a part of the MapReduce tools with this site, and a token if there is one.
fn tools(client: &JavaProgram, site: &Path, token: Option<&Path>, arguments: &[&str]) -> Output {
    let mut command = client.java_with(site);
    if let Some(token) = token {
        command.env("HADOOP_TOKEN_FILE_LOCATION", token);
    }
    command
        .args(SMALL)
        .arg("basalt.client.Tour")
        .args(["zookeeper", "127.0.0.1"])
        .args(arguments)
        .output()
        .expect("java was found a moment ago")
}

/// Goal: a job runs with a token that was made before it, and asks for none (check 29). A client with a
/// certificate gets a token of its own, with which a job runs, too; one with a token gets none.
#[test]
fn jobs_run_with_tokens() {
    let Some(client) = JavaProgram::find("e2e/clients/mapreduce") else {
        return;
    };
    let secured = Secured::start(&[]);
    let (site, port) = (secured.token_site(), secured.port());
    let folder = secured.folder("jobs");
    let run = |site: &Path, token: Option<&Path>, step: [&str; 3]| {
        let arguments = [&[&port[..], &folder], &step[..]].concat();
        finished(&tools(&client, site, token, &arguments))
    };
    let made = secured.token("ada");
    let counted = run(&site, Some(&made), ["count", "t", "1000"]);
    assert_eq!(answer(&counted, "row counter"), "0", "{counted}");
    let log = secured.audit_log();
    assert!(!issued_by_call(&log), "{log}");

    let file = format!("{folder}/own.token");
    let refused = run(&site, Some(&made), ["token", "-", &file]);
    assert_eq!(answer(&refused, "who am I"), "ada by TOKEN");
    assert!(
        answer(&refused, "token").contains("AccessDeniedException"),
        "{refused}"
    );
    let certificate = secured.certificate("ada");
    let tls = secured.tls_site("jobs-site", &keystore(&certificate));
    let asked = run(&tls, None, ["token", "-", &file]);
    assert_eq!(answer(&asked, "who am I"), "ada by CERTIFICATE");
    assert_eq!(answer(&asked, "token"), "HBASE_AUTH_TOKEN of ada");
    assert!(issued_by_call(&secured.audit_log()));
    let counted = run(&site, Some(Path::new(&file)), ["count", "u", "1000"]);
    assert_eq!(answer(&counted, "row counter"), "0", "{counted}");
}

/// Whether a client has got a token by a call. Those of the command line have no address.
fn issued_by_call(log: &str) -> bool {
    log.lines()
        .any(|line| line.contains("was issued") && line.contains(r#""address""#))
}
