//! Decisions: which letters a request needs, and what is left of a read.

use basalt_engine::op::{self, FamilySelection, ReadSpec};
use basalt_engine::schema::TableName;
use basalt_security::Secret;
use basalt_security::password::PasswordHash;
use basalt_security::rights::{Entry, Grantee, Scope};
use basalt_security::users::{NewUser, UserFile};

use super::*;
use crate::security::{Columns, Visit, narrow};

/// Columns of a request.
struct Asked(&'static [(&'static str, Option<&'static str>)]);

impl Columns for Asked {
    fn visit(&self, visit: &mut Visit<'_>) {
        for (family, qualifier) in self.0 {
            visit(family.as_bytes(), qualifier.map(str::as_bytes));
        }
    }
}

fn table(name: &str) -> TableName {
    TableName::parse(name.as_bytes()).unwrap()
}

/// Rights of bob, each for the letters of a scope.
fn rights(entries: &[(Scope, &str)]) -> Rights {
    let mut rights = Rights::default();
    for (scope, letters) in entries {
        let entry = Entry {
            grantee: Grantee::User("bob".into()),
            scope: scope.clone(),
            actions: letters.parse().unwrap(),
        };
        rights.grant(entry, true).unwrap();
    }
    rights
}

const BOB: Subject<'_> = Subject {
    user: "bob",
    groups: &[],
    superuser: false,
};

/// Goal: each kind of request needs exactly the letters of HBase's table. Method: every letter alone, at
/// every scope above the target.
#[test]
fn requests_need_the_letters_of_hbase() {
    let t = table("ns:t");
    let global = Scope::Global;
    let namespace = Scope::Namespace("ns".into());
    let of_table = Scope::table(t.clone(), None, None).unwrap();
    let columns = Asked(&[("f", Some("q"))]);
    let cells = Target::Cells {
        table: &t,
        columns: &columns,
    };
    for (action, target, letters, scopes) in [
        (Action::Read, cells, "R", &[&global, &namespace, &of_table][..]),
        (Action::Write, cells, "W", &[&global, &namespace, &of_table]),
        (
            Action::Create,
            Target::Namespace("ns"),
            "CA",
            &[&global, &namespace],
        ),
        (
            Action::Create,
            Target::Table(&t),
            "CA",
            &[&global, &namespace, &of_table],
        ),
        (
            Action::Admin,
            Target::Table(&t),
            "A",
            &[&global, &namespace, &of_table],
        ),
        (
            Action::Know,
            Target::Table(&t),
            "RWXCA",
            &[&global, &namespace, &of_table],
        ),
        (Action::Admin, Target::Namespace("ns"), "A", &[&global]),
        (
            Action::Admin,
            Target::NamespaceRights("ns"),
            "A",
            &[&global, &namespace],
        ),
        (Action::Admin, Target::Server, "A", &[&global]),
    ] {
        for scope in [&global, &namespace, &of_table] {
            for letter in ["R", "W", "X", "C", "A"] {
                let allowed = decide(&rights(&[(scope.clone(), letter)]), &BOB, action, target);
                let expected = scopes.contains(&scope) && letters.contains(letter);
                assert_eq!(
                    allowed != Readable::Nothing,
                    expected,
                    "{action:?} {target}: {letter} on {scope}"
                );
            }
        }
        assert_eq!(
            decide(&rights(&[]), &BOB, action, target),
            Readable::Nothing,
            "{action:?} {target}"
        );
        let superuser = Subject {
            superuser: true,
            ..BOB
        };
        assert_eq!(decide(&rights(&[]), &superuser, action, target), Readable::All);
    }
}

/// Goal: a read returns granted columns only. Method: what is asked for, and what is left of it.
#[test]
fn reads_are_narrowed_to_granted_columns() {
    let t = table("t");
    let family = Scope::table(t.clone(), Some(b"f"), None).unwrap();
    let column = Scope::table(t.clone(), Some(b"g"), Some(b"q")).unwrap();
    let rights = rights(&[(family, "R"), (column, "R")]);
    let spec = |asked: &Asked| {
        let mut spec = ReadSpec::default();
        for (family, qualifier) in asked.0 {
            spec.families.push(FamilySelection {
                family: family.as_bytes().to_vec(),
                columns: match qualifier {
                    None => op::Columns::All,
                    Some(name) => op::Columns::Only(vec![name.as_bytes().to_vec()]),
                },
            });
        }
        spec
    };
    let shown = |spec: &ReadSpec| {
        let mut all = Vec::new();
        crate::security::visit_spec(spec, &mut |family, qualifier| {
            let part = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            all.push(format!(
                "{}:{}",
                part(family),
                qualifier.map_or("*".to_owned(), part)
            ));
        });
        all.join(" ")
    };
    for (asked, left) in [
        (Asked(&[]), Some("f:* g:q")),
        (Asked(&[("f", None)]), Some("f:*")),
        (Asked(&[("g", None)]), Some("g:q")),
        (Asked(&[("g", Some("q"))]), Some("g:q")),
        (Asked(&[("f", None), ("h", None)]), Some("f:*")),
        (Asked(&[("g", Some("q")), ("g", Some("r"))]), Some("g:q")),
        (Asked(&[("h", None)]), None),
        (Asked(&[("g", Some("r"))]), None),
    ] {
        let target = Target::Cells {
            table: &t,
            columns: &asked,
        };
        let mut spec = spec(&asked);
        let found = match decide(&rights, &BOB, Action::Read, target) {
            Readable::All => Some(shown(&spec)),
            Readable::Filtered(filter) => {
                assert!(narrow(&mut spec, &filter), "{target}");
                Some(shown(&spec))
            }
            Readable::Nothing => None,
        };
        assert_eq!(found.as_deref(), left, "{target}");
    }
}

/// Goal: a read of which nothing is left does not become one of all columns.
#[test]
fn nothing_left_is_not_all() {
    let t = table("t");
    let rights = rights(&[(Scope::table(t.clone(), Some(b"f"), None).unwrap(), "R")]);
    let asked = Asked(&[]);
    let target = Target::Cells {
        table: &t,
        columns: &asked,
    };
    let Readable::Filtered(filter) = decide(&rights, &BOB, Action::Read, target) else {
        panic!("not filtered");
    };
    let mut other = ReadSpec::default();
    other.families.push(FamilySelection {
        family: b"h".to_vec(),
        columns: op::Columns::All,
    });
    assert!(!narrow(&mut other, &filter));
}

/// Goal: twenty wrong passwords are refused with one text, each later than the one before, and the right one
/// is accepted then (check 32). Method: the runtime's clock, which goes on by itself when all tasks wait.
#[tokio::test(start_paused = true)]
async fn guessed_passwords_take_longer_and_longer() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.data.dir = dir.path().join("data");
    config.security.authentication = crate::config::Authenticate::Required;
    std::fs::create_dir_all(config.security_dir()).unwrap();
    let file = UserFile::in_dir(&config.security_dir());
    let new = NewUser {
        password: Some(PasswordHash::new(&Secret::new("open sesame")).unwrap()),
        ..NewUser::default()
    };
    file.update(|users| users.create_user("ada", new)).unwrap();
    let security = Security::open(&config).unwrap();
    let address = Some("10.1.2.3".parse().unwrap());
    let plain = |password: &str| Plain {
        user: "ada".to_owned(),
        acts_for: None,
        password: Secret::new(password),
    };
    let mut waits = Vec::new();
    for guess in 0..20 {
        let began = tokio::time::Instant::now();
        let failed = security
            .plain_login(plain(&format!("guess {guess}")), address)
            .await
            .unwrap_err();
        assert_eq!(failed.0, Reason::WrongPassword);
        assert_eq!(failed.to_string(), "authentication failed");
        waits.push(began.elapsed());
    }
    assert_eq!(waits[..3], [Duration::ZERO; 3]);
    let (growing, longest) = waits[3..].split_at(9);
    assert!(growing.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
    assert!(
        longest.iter().all(|wait| *wait >= Duration::from_secs(30)),
        "{waits:?}"
    );
    let login = security.plain_login(plain("open sesame"), address).await;
    assert_eq!(login.unwrap().credential, Credential::Password);
}
