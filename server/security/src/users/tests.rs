use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::UNIX_EPOCH;

use proptest::prelude::*;

use super::*;
use crate::{Reason, Refused, Secret};

const DAY: Duration = Duration::from_hours(24);
const PASSWORD: &str = "correct horse";

fn now() -> SystemTime {
    UNIX_EPOCH + 20_000 * DAY
}

/// Users `ada`, a superuser, `bob` of the group `dev`, and `gate` without a group.
fn users() -> Users {
    let mut users = Users::default();
    let new = |superuser, groups: &[&str]| NewUser {
        superuser,
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        password: None,
    };
    users.create_user("ada", new(true, &[])).unwrap();
    users
        .create_user("bob", new(false, &["qa", "dev", "qa"]))
        .unwrap();
    users.create_user("gate", new(false, &[])).unwrap();
    users
}

fn issue(users: &mut Users, name: &str) -> (u64, Token) {
    users.issue_token(name, DAY, now()).unwrap()
}

fn refused<T: std::fmt::Debug>(result: std::result::Result<T, Refused>) -> Reason {
    result.unwrap_err().0
}

#[test]
fn users_are_created_changed_and_removed() {
    let mut users = users();
    assert_eq!(users.user("bob").unwrap().groups, ["dev", "qa"]);
    assert_eq!(users.superusers().collect::<Vec<_>>(), ["ada"]);
    assert!(users.create_user("bob", NewUser::default()).is_err());
    users.set_superuser("bob", true).unwrap();
    users.set_groups("bob", vec!["ops".into()]).unwrap();
    assert!(users.user("bob").unwrap().superuser);
    users.remove_user("bob").unwrap();
    assert!(users.user("bob").is_none());
    let error = users.remove_user("bob").unwrap_err();
    assert_eq!(error.to_string(), "there is no user bob");
}

#[test]
fn names_that_protocols_cannot_carry_are_refused() {
    for name in ["", "@dev", "a,b", "a:b", "a b", "a\nb", "a\0", &"x".repeat(129)] {
        assert!(users().create_user(name, NewUser::default()).is_err(), "{name:?}");
    }
    for name in [
        "a",
        "ada@example.com",
        "O'Neill",
        "\u{e9}t\u{e9}",
        &"x".repeat(128),
    ] {
        users().create_user(name, NewUser::default()).unwrap();
    }
}

#[test]
fn a_password_lets_its_user_in() {
    let mut users = users();
    let hash = PasswordHash::new(&Secret::new(PASSWORD)).unwrap();
    users.set_password("bob", Some(hash)).unwrap();
    let verify =
        |users: &Users, name: &str, password: &str| users.verify_password(name, &Secret::new(password));
    assert_eq!(verify(&users, "bob", PASSWORD), Ok(()));
    assert_eq!(refused(verify(&users, "bob", "wrong")), Reason::WrongPassword);
    assert_eq!(refused(verify(&users, "ada", PASSWORD)), Reason::WrongPassword);
    assert_eq!(refused(verify(&users, "eve", PASSWORD)), Reason::UnknownUser);
    users.set_disabled("bob", true).unwrap();
    assert_eq!(refused(verify(&users, "bob", PASSWORD)), Reason::Disabled);
}

#[test]
fn a_token_lets_its_user_in_until_it_expires() {
    let mut users = users();
    let (sequence, token) = issue(&mut users, "bob");
    let found = users.verify_token(&token, now()).unwrap();
    assert_eq!((&found.user[..], found.sequence), ("bob", sequence));
    let (again, signature) = users.find_token(&token.identifier, now()).unwrap();
    assert_eq!(again, found);
    assert!(signature.matches(token.password.expose()));
    let last = now() + DAY - Duration::from_millis(1);
    assert!(users.verify_token(&token, last).is_ok());
    assert_eq!(refused(users.verify_token(&token, now() + DAY)), Reason::Expired);
    assert_eq!(
        refused(users.find_token(&token.identifier, now() + DAY)),
        Reason::Expired
    );
}

#[test]
fn revoked_and_foreign_tokens_are_refused() {
    let mut users = users();
    let (first, token) = issue(&mut users, "bob");
    let (_, other) = issue(&mut users, "bob");
    let verify = |users: &Users, token: &Token| users.verify_token(token, now()).map(|found| found.sequence);
    users.revoke_token(first).unwrap();
    assert_eq!(refused(verify(&users, &token)), Reason::Revoked);
    assert!(verify(&users, &other).is_ok());
    assert_eq!(users.revoke_tokens_of("bob").unwrap(), 1);
    assert_eq!(refused(verify(&users, &other)), Reason::Revoked);
    assert!(users.revoke_token(99).is_err());

    // Another server's token with the same identifier, and one of a key that this server does not
    // have.
    let mut users = self::users();
    let (_, token) = issue(&mut users, "bob");
    let mut other = self::users();
    let (_, foreign) = issue(&mut other, "bob");
    assert_eq!(foreign.identifier, token.identifier);
    assert_eq!(refused(verify(&users, &foreign)), Reason::WrongSignature);
    other.roll_key().unwrap();
    let (_, foreign) = issue(&mut other, "bob");
    assert_eq!(refused(verify(&users, &foreign)), Reason::UnknownToken);
}

/// Goal: no field of an identifier is believed. Changes each and signs again with the right key.
#[test]
fn an_identifier_must_be_the_records() {
    let mut users = users();
    let (_, token) = issue(&mut users, "bob");
    let valid = TokenIdentifier::parse(&token.identifier).unwrap();
    let changes: [fn(&mut TokenIdentifier); 4] = [
        |changed| changed.username = b"ada".to_vec(),
        |changed| changed.expiration_date = changed.expiration_date.map(|date| date + 1),
        |changed| changed.issue_date = None,
        |changed| changed.sequence_number = Some(-1),
    ];
    for change in changes {
        let mut changed = valid.clone();
        change(&mut changed);
        let identifier = changed.to_bytes();
        let password = users.keys[0].sign(&identifier);
        let forged = Token { identifier, password };
        assert_eq!(refused(users.verify_token(&forged, now())), Reason::UnknownToken);
    }
}

#[test]
fn a_new_user_does_not_inherit_tokens() {
    let mut users = users();
    let (_, token) = issue(&mut users, "bob");
    let before = users.clone();
    users.remove_user("bob").unwrap();
    users.create_user("bob", NewUser::default()).unwrap();
    assert_eq!(refused(users.verify_token(&token, now())), Reason::UnknownToken);
    assert!(Ended::between(&before, &users).ends("bob", Credential::Certificate));
}

#[test]
fn dropped_keys_end_all_tokens() {
    let mut users = users();
    let (_, token) = issue(&mut users, "bob");
    users.roll_key().unwrap();
    assert!(users.verify_token(&token, now()).is_ok());
    users.drop_keys().unwrap();
    assert_eq!(refused(users.verify_token(&token, now())), Reason::UnknownToken);
    let (_, token) = issue(&mut users, "bob");
    assert!(users.verify_token(&token, now()).is_ok());
    assert_eq!(users.keys.len(), 1);
}

#[test]
fn records_of_expired_tokens_are_dropped() {
    let mut users = users();
    let (first, _) = issue(&mut users, "bob");
    let (second, _) = users.issue_token("bob", DAY, now() + DAY).unwrap();
    assert_eq!(
        users.tokens().map(|(sequence, _)| sequence).collect::<Vec<_>>(),
        [second]
    );
    assert!(second > first);
    assert!(users.issue_token("bob", Duration::ZERO, now()).is_err());
    assert!(users.issue_token("bob", Duration::MAX, now()).is_err());
    users.set_disabled("bob", true).unwrap();
    assert!(users.issue_token("bob", DAY, now()).is_err());
}

#[test]
fn a_token_is_valid_as_a_password_of_its_user_only() {
    let mut users = users();
    let (sequence, token) = issue(&mut users, "bob");
    let text = Secret::new(token.to_text().as_bytes());
    assert_eq!(
        users.verify_login("bob", &text, now()),
        Ok(Credential::Token(sequence))
    );
    assert_eq!(
        refused(users.verify_login("ada", &text, now())),
        Reason::WrongSignature
    );
    let password = Secret::new("no.token");
    assert_eq!(
        refused(users.verify_login("bob", &password, now())),
        Reason::WrongPassword
    );
}

#[test]
fn the_difference_names_what_ended() {
    let mut users = users();
    let hash = |text: &str| Some(PasswordHash::new(&Secret::new(text)).unwrap());
    users.set_password("gate", hash(PASSWORD)).unwrap();
    let (kept, _) = issue(&mut users, "bob");
    let (revoked, _) = issue(&mut users, "bob");
    let before = users.clone();
    assert!(Ended::between(&before, &users).is_empty());
    users.revoke_token(revoked).unwrap();
    users.set_disabled("ada", true).unwrap();
    users.set_password("gate", hash("another one")).unwrap();
    let ended = Ended::between(&before, &users);
    assert!(ended.ends("ada", Credential::Certificate));
    assert!(ended.ends("gate", Credential::Password));
    assert!(!ended.ends("gate", Credential::Certificate));
    assert!(ended.ends("bob", Credential::Token(revoked)));
    assert!(!ended.ends("bob", Credential::Token(kept)));
    // The other direction ends nothing but passwords.
    let back = Ended::between(&users, &before);
    assert_eq!(
        (back.users.len(), back.passwords.len(), back.tokens.len()),
        (0, 1, 0)
    );
}

fn rule(users: &[&str], groups: &[&str], hosts: &[&str]) -> ProxyRule {
    let owned = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
    ProxyRule {
        proxy: "gate".into(),
        users: owned(users),
        groups: owned(groups),
        hosts: hosts.iter().map(|text| text.parse().unwrap()).collect(),
    }
}

/// Whether `gate` may act for `bob` and for `ada` from 10.1.2.3 under this rule.
fn impersonates(rule: ProxyRule) -> [bool; 2] {
    let mut users = users();
    users.set_proxy(rule).unwrap();
    let address = Some("10.1.2.3".parse().unwrap());
    ["bob", "ada"].map(|name| users.may_impersonate("gate", name, address).is_ok())
}

#[test]
fn impersonation_needs_user_and_host() {
    assert_eq!(impersonates(rule(&["bob"], &[], &["*"])), [true, false]);
    assert_eq!(impersonates(rule(&["bob"], &[], &["10.0.0.0/8"])), [true, false]);
    assert_eq!(impersonates(rule(&["bob"], &[], &["10.1.2.4"])), [false, false]);
    assert_eq!(impersonates(rule(&["bob"], &[], &[])), [false, false]);
    assert_eq!(impersonates(rule(&[], &["dev"], &["10.1.2.3"])), [true, false]);
    assert_eq!(impersonates(rule(&[], &["ops"], &["*"])), [false, false]);
    // All users are all but superusers.
    assert_eq!(impersonates(rule(&["*"], &[], &["*"])), [true, false]);
    assert_eq!(impersonates(rule(&[], &["*"], &["*"])), [true, false]);
    assert_eq!(impersonates(rule(&["ada"], &[], &["*"])), [false, true]);
}

#[test]
fn impersonation_without_a_rule_is_refused() {
    let users = users();
    assert_eq!(users.may_impersonate("bob", "bob", None), Ok(()));
    assert_eq!(
        refused(users.may_impersonate("ada", "bob", None)),
        Reason::Impersonation
    );
    assert_eq!(
        refused(users.may_impersonate("gate", "eve", None)),
        Reason::UnknownUser
    );
}

#[test]
fn hosts_are_networks() {
    let contains = |hosts: &str, address: &str| {
        let hosts: Hosts = hosts.parse().unwrap();
        hosts.contains(address.parse().unwrap())
    };
    assert!(contains("10.1.0.0/16", "10.1.255.255"));
    assert!(!contains("10.1.0.0/16", "10.2.0.0"));
    assert!(contains("10.1.0.0/16", "::ffff:10.1.0.1"));
    assert!(contains("0.0.0.0/0", "255.1.1.1"));
    assert!(!contains("0.0.0.0/0", "::1"));
    assert!(contains("fd00::/8", "fd12::1"));
    assert!(contains("::1", "::1"));
    assert!(!contains("::1", "::2"));
    for bad in ["", "host", "10.0.0.0/33", "10.0.0.0/", "::/129", "10.0.0/8"] {
        assert!(bad.parse::<Hosts>().is_err(), "{bad}");
    }
}

#[test]
fn the_file_holds_everything() {
    let dir = tempfile::tempdir().unwrap();
    let file = UserFile::in_dir(&dir.path().join("security"));
    let (none, version) = file.load().unwrap();
    assert!(none.is_empty() && !file.changed(version));
    let hash = PasswordHash::new(&Secret::new(PASSWORD)).unwrap();
    let (token, ..) = file
        .update(|users| {
            users.create_user("bob", NewUser::default())?;
            users.create_user("gate", NewUser::default())?;
            users.set_password("bob", Some(hash))?;
            users.set_proxy(rule(&["bob"], &["dev"], &["10.0.0.0/8", "*"]))?;
            users.issue_token("bob", DAY, now())
        })
        .unwrap();
    assert!(file.changed(version));
    let (users, version) = file.load().unwrap();
    assert!(!file.changed(version));
    assert!(users.verify_token(&token.1, now()).is_ok());
    assert_eq!(users.verify_password("bob", &Secret::new(PASSWORD)), Ok(()));
    assert_eq!(users.proxies(), [rule(&["bob"], &["dev"], &["10.0.0.0/8", "*"])]);
    let text = format!("{users:?}");
    assert!(!text.contains("argon2id") && text.contains("[secret]"), "{text}");
}

#[test]
fn a_failed_change_leaves_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = UserFile::in_dir(dir.path());
    let create = |users: &mut Users| users.create_user("bob", NewUser::default());
    let ((), _, version) = file.update(create).unwrap();
    let twice = file.update(|users| {
        users.create_user("eve", NewUser::default())?;
        create(users)
    });
    assert_eq!(twice.unwrap_err().to_string(), "user bob exists already");
    assert!(!file.changed(version));
    assert!(file.load().unwrap().0.user("eve").is_none());
}

/// Goal: what the format allows and the rules do not is refused, by name.
#[test]
fn an_invalid_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = UserFile::in_dir(dir.path());
    file.update(|users| {
        users.create_user("bob", NewUser::default())?;
        users.set_proxy(ProxyRule {
            proxy: "bob".into(),
            ..rule(&["eve"], &[], &["*"])
        })?;
        users.issue_token("bob", DAY, now())
    })
    .unwrap();
    let text = fs::read_to_string(file.path()).unwrap();
    for (part, by, problem) in [
        ("\"bob\": {", "\"b,b\": {", "the name \"b,b\" is not acceptable"),
        ("\"next_user\": 2", "\"next_user\": 1", "user bob has the id 1"),
        ("\"next_token\": 2", "\"next_token\": 1", "token 1 has no user"),
        ("\"user\": \"bob\"", "\"user\": \"eve\"", "token 1 has no user"),
        (
            "\"proxy\": \"bob\"",
            "\"proxy\": \"eve\"",
            "the proxy rule of \"eve\" has no user",
        ),
        (
            "\"*\"",
            "\"host\"",
            "\"host\" is not *, an IP address or a network",
        ),
        (
            "\"disabled\": false",
            "\"disabled\": false, \"password\": \"x\"",
            "the password of user bob",
        ),
        ("\"secret\": \"", "\"secret\": \"AAAA", "token key 1 is not whole"),
        ("\"secret\": \"", "\"secret\": \"!", "a secret is not base64url"),
    ] {
        let changed = text.replace(part, by);
        assert_ne!(changed, text, "{part}");
        fs::write(file.path(), changed).unwrap();
        let error = file.load().unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
        assert!(file.update(|_| Ok(())).is_err(), "{problem}");
    }
    fs::write(file.path(), &text).unwrap();
    file.load().unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(file.load().unwrap_err().to_string().contains("chmod 600"));
}

/// Goal: the audit log names each change and whom it concerns, and no change where there is none.
#[test]
fn changes_are_named() {
    type Change = fn(&mut Users) -> Result<()>;
    let changes: [(&str, Change); 12] = [
        ("eve created", |users| {
            users.create_user("eve", NewUser::default())
        }),
        ("gate removed", |users| users.remove_user("gate")),
        (
            "gate removed, and another one of that name was created",
            |users| {
                users.remove_user("gate")?;
                users.create_user("gate", NewUser::default())
            },
        ),
        ("bob made a superuser", |users| users.set_superuser("bob", true)),
        ("ada no longer a superuser", |users| {
            users.set_superuser("ada", false)
        }),
        ("bob disabled", |users| users.set_disabled("bob", true)),
        ("bob groups changed", |users| users.set_groups("bob", Vec::new())),
        ("ada password changed", |users| {
            users.set_password("ada", Some(PasswordHash::new(&Secret::new(PASSWORD))?))
        }),
        ("bob token 2 was issued", |users| {
            users.issue_token("bob", DAY, now()).map(drop)
        }),
        ("bob token 1 was revoked", |users| users.revoke_token(1)),
        ("bob token 1 was dropped with its key", Users::drop_keys),
        ("gate the rule by which it acts for others was set", |users| {
            users.set_proxy(rule(&["bob"], &[], &["*"]))
        }),
    ];
    let mut before = users();
    issue(&mut before, "bob");
    assert_eq!(Changed::between(&before, &before.clone()), []);
    for (expected, change) in changes {
        let mut after = before.clone();
        change(&mut after).unwrap();
        let named: Vec<String> = Changed::between(&before, &after)
            .into_iter()
            .map(|change| format!("{} {}", change.user, change.what))
            .collect();
        assert_eq!(named, [expected]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Bytes changed anywhere in the file give a value or an error that names the file.
    #[test]
    fn damaged_files_are_errors(at in any::<prop::sample::Index>(), with in prop::collection::vec(any::<u8>(), 0..4)) {
        let dir = tempfile::tempdir().unwrap();
        let file = UserFile::in_dir(dir.path());
        file.update(|users| {
            users.create_user("bob", NewUser::default())?;
            users.issue_token("bob", DAY, now())
        }).unwrap();
        let mut text = fs::read(file.path()).unwrap();
        let at = at.index(text.len());
        let end = (at + with.len().max(1)).min(text.len());
        text.splice(at..end, with);
        fs::write(file.path(), text).unwrap();
        if let Err(error) = file.load() {
            prop_assert!(error.to_string().contains("users.json"), "{}", error);
        }
    }
}
