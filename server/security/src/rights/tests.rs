use proptest::prelude::*;

use super::*;

fn table(name: &str) -> TableName {
    TableName::parse(name.as_bytes()).unwrap()
}

/// A scope from `-` (global), `@namespace`, or `table[,family[,qualifier]]`.
fn scope(text: &str) -> Scope {
    if text == "-" {
        return Scope::Global;
    }
    if let Some(namespace) = text.strip_prefix('@') {
        return Scope::Namespace(namespace.to_owned());
    }
    let mut parts = text.split(',');
    let name = table(parts.next().unwrap());
    Scope::table(
        name,
        parts.next().map(str::as_bytes),
        parts.next().map(str::as_bytes),
    )
    .unwrap()
}

/// An entry from `grantee scope actions`.
fn entry(text: &str) -> Entry {
    let [grantee, place, actions] = text.split(' ').collect::<Vec<_>>().try_into().unwrap();
    Entry {
        grantee: grantee.parse().unwrap(),
        scope: scope(place),
        actions: actions.parse().unwrap(),
    }
}

fn rights(entries: &[&str]) -> Rights {
    let mut rights = Rights::default();
    for text in entries {
        rights.grant(entry(text), false).unwrap();
    }
    rights
}

fn texts(entries: &[Entry]) -> Vec<String> {
    entries
        .iter()
        .map(|entry| format!("{} {} {}", entry.grantee, entry.scope, entry.actions))
        .collect()
}

/// User `bob` of the group `dev`.
fn with_bob<R>(check: impl FnOnce(&Subject<'_>) -> R) -> R {
    check(&Subject {
        user: "bob",
        groups: &["dev".to_owned()],
        superuser: false,
    })
}

/// Whether bob may do that at the scope, under these entries.
fn allowed(entries: &[&str], actions: &str, place: &str) -> bool {
    let (rights, place) = (rights(entries), scope(place));
    let actions: Actions = actions.parse().unwrap();
    let target = match &place {
        Scope::Global => Target::Global,
        Scope::Namespace(name) => Target::Namespace(name),
        Scope::Table { table, .. } => match place.family() {
            None => Target::Table(table),
            Some(family) => Target::Column(table, family, place.qualifier()),
        },
    };
    with_bob(|bob| rights.allowed(bob, actions, target))
}

#[test]
fn a_right_counts_for_everything_below() {
    let places = ["-", "@n", "n:t", "n:t,f", "n:t,f,q"];
    for (at, granted) in places.iter().enumerate() {
        for (below, place) in places.iter().enumerate() {
            let entry = format!("bob {granted} R");
            assert_eq!(
                allowed(&[&entry], "R", place),
                below >= at,
                "{granted} for {place}"
            );
            assert!(!allowed(&[&entry], "WXCA", place));
        }
    }
    for other in ["-", "@m", "n:u", "m:t,f", "n:t,g", "n:t,f,r", "t"] {
        assert!(!allowed(&["bob n:t,f,q R"], "R", other), "{other}");
    }
    assert!(allowed(&["bob @default R"], "R", "t"));
    assert!(!allowed(&["bob @n R"], "R", "t"));
}

#[test]
fn rights_of_groups_count_and_those_of_others_do_not() {
    assert!(allowed(&["@dev n:t RW"], "W", "n:t,f"));
    assert!(!allowed(
        &["dev n:t RW", "@bob n:t RW", "@ops - A", "eve - A"],
        "RWXCA",
        "n:t,f"
    ));
    // Alternatives: one suffices, of whichever entry.
    assert!(allowed(&["bob @n C", "@dev n:t A"], "CA", "n:t"));
    assert!(allowed(&["bob @n C"], "CA", "n:t"));
    let rights = rights(&[]);
    let root = Subject {
        user: "root",
        groups: &[],
        superuser: true,
    };
    assert!(rights.allowed(&root, Action::Admin, Target::Global));
    assert_eq!(rights.readable(&root, &table("t"), |_| ()), Readable::All);
}

/// Goal: a check does not allocate, whatever it finds.
#[test]
fn checks_do_not_allocate() {
    let rights = rights(&["bob n:t R", "@dev @n W", "bob n:u,f,q R"]);
    let (whole, part) = (table("n:t"), table("n:u"));
    with_bob(|bob| {
        let measured = allocation_counter::measure(|| {
            assert!(rights.allowed(bob, Action::Read, Target::Table(&whole)));
            assert!(!rights.allowed(bob, Action::Admin, Target::Table(&whole)));
            assert!(rights.allowed(bob, Action::Read, Target::Column(&part, b"f", Some(b"q"))));
            assert!(rights.allowed_somewhere(bob, Action::Read, &part));
            assert!(
                rights
                    .allowed_columns(bob, Action::Read, &part, walk("f:q"))
                    .is_ok()
            );
            assert_eq!(rights.readable(bob, &whole, walk("f")), Readable::All);
        });
        assert_eq!(measured.count_total, 0);
    });
}

#[test]
fn a_table_is_known_by_any_right_to_it() {
    let known = |entries: &[&str]| {
        let rights = rights(entries);
        with_bob(|bob| rights.allowed_somewhere(bob, Actions::ALL, &table("n:t")))
    };
    assert!(known(&["bob n:t,f,q X"]));
    assert!(known(&["@dev n:t,f R"]));
    assert!(known(&["bob @n W"]));
    assert!(!known(&["bob n:u RWXCA", "eve n:t RWXCA"]));
    let rights = rights(&["bob n:t,f C"]);
    with_bob(|bob| {
        assert!(rights.allowed_somewhere(
            bob,
            Actions::from_iter([Action::Create, Action::Admin]),
            &table("n:t")
        ));
        assert!(!rights.allowed_somewhere(bob, Action::Admin, &table("n:t")));
    });
}

/// A walk over columns such as `f` and `f:q`.
fn walk(columns: &'static str) -> impl FnOnce(&mut Visit<'_>) {
    move |visit| {
        for column in columns.split_whitespace() {
            let (family, qualifier) = column
                .split_once(':')
                .map_or((column, None), |(f, q)| (f, Some(q)));
            visit(family.as_bytes(), qualifier.map(str::as_bytes));
        }
    }
}

/// Bob's part of `t`: `all`, `nothing`, or the columns of the filter.
fn readable(entries: &[&str], requested: &'static str) -> String {
    let rights = rights(entries);
    match with_bob(|bob| rights.readable(bob, &table("t"), walk(requested))) {
        Readable::All => "all".into(),
        Readable::Nothing => "nothing".into(),
        Readable::Filtered(filter) => {
            let name = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let columns = filter.columns().map(|(family, qualifier)| match qualifier {
                None => name(family),
                Some(qualifier) => format!("{}:{}", name(family), name(qualifier)),
            });
            columns.collect::<Vec<_>>().join(" ")
        }
    }
}

#[test]
fn a_read_is_filtered_to_the_granted_columns() {
    for (granted, requested, expected) in [
        (&["bob t R"][..], "f g", "all"),
        (&["bob @default R"], "", "all"),
        (&["bob t,f R"], "f", "all"),
        (&["bob t,f R"], "f:q f:r", "all"),
        (&["bob t,f R"], "f g", "f"),
        (&["bob t,f R"], "g", "nothing"),
        (&["bob t,f,q R"], "f:q", "all"),
        (&["bob t,f,q R"], "f:q f:r", "f:q"),
        (&["bob t,f,q R"], "f:r", "nothing"),
        // A family as a whole is filtered to its granted columns.
        (&["bob t,f,q R"], "f", "f:q"),
        (&["bob t,f,q R", "@dev t,f,r R", "bob t,g W"], "f g", "f:q f:r"),
        (&["bob t,f R", "@dev t,g R"], "f g", "all"),
        (&["bob t,f W"], "f", "nothing"),
        (&["eve t R"], "f", "nothing"),
        // A request without columns is one for all of them.
        (&["bob t,f R"], "", "f"),
        (&["eve t R"], "", "nothing"),
    ] {
        assert_eq!(
            readable(granted, requested),
            expected,
            "{granted:?} for {requested:?}"
        );
    }
}

#[test]
fn a_filter_lets_granted_cells_through() {
    let rights = rights(&["bob t,f,q R", "bob t,g R"]);
    let readable = with_bob(|bob| rights.readable(bob, &table("t"), walk("f g h")));
    let Readable::Filtered(filter) = readable else {
        panic!("{readable:?}")
    };
    for (family, qualifier, is_allowed) in [
        ("f", "q", true),
        ("f", "r", false),
        ("f", "", false),
        ("g", "q", true),
        ("g", "", true),
        ("h", "q", false),
    ] {
        assert_eq!(
            filter.allows(family.as_bytes(), qualifier.as_bytes()),
            is_allowed,
            "{family}:{qualifier}"
        );
    }
}

#[test]
fn a_write_needs_every_column() {
    let denied = |entries: &[&str], columns| {
        let rights = rights(entries);
        with_bob(|bob| rights.allowed_columns(bob, Action::Write, &table("t"), walk(columns))).map_err(
            |denied| {
                let name = |bytes: Option<Vec<u8>>| {
                    bytes.map_or("-".into(), |bytes| String::from_utf8(bytes).unwrap())
                };
                format!("{}:{}", name(denied.family), name(denied.qualifier))
            },
        )
    };
    assert_eq!(denied(&["bob t W"], "f:q g"), Ok(()));
    assert_eq!(denied(&["bob t W"], ""), Ok(()));
    assert_eq!(denied(&["bob t,f W"], "f:q f"), Ok(()));
    assert_eq!(denied(&["bob t,f W", "bob t,g,q W"], "f:q g:q"), Ok(()));
    assert_eq!(
        denied(&["bob t,f W", "bob t,g,q W"], "f:q g:r f:r"),
        Err("g:r".into())
    );
    assert_eq!(denied(&["bob t,f,q W"], "f"), Err("f:-".into()));
    assert_eq!(denied(&["bob t,f W"], ""), Err("-:-".into()));
    assert_eq!(denied(&["bob t R"], "f:q"), Err("f:q".into()));
}

#[test]
fn a_grant_merges_or_replaces() {
    let mut rights = rights(&["bob n:t R"]);
    rights.grant(entry("bob n:t W"), true).unwrap();
    assert_eq!(texts(&rights.entries().collect::<Vec<_>>()), ["bob table n:t RW"]);
    rights.grant(entry("bob n:t AX"), false).unwrap();
    assert_eq!(texts(&rights.entries().collect::<Vec<_>>()), ["bob table n:t XA"]);
    let error = rights.grant(entry("bob n:t "), true).unwrap_err();
    assert_eq!(error.to_string(), "No actions associated with user 'bob'");
}

#[test]
fn a_revocation_is_for_exactly_its_scope() {
    let mut rights = rights(&["bob n:t RW", "bob n:t,f RW", "@bob n:t R"]);
    let mut revoke = |text: &str| {
        let Entry {
            grantee,
            scope,
            actions,
        } = entry(text);
        rights.revoke(&grantee, &scope, actions)
    };
    assert!(revoke("bob n:t R"));
    assert!(!revoke("bob n:t R"));
    assert!(!revoke("bob - R"));
    assert!(revoke("bob n:t,f RWXCA"));
    assert!(revoke("@bob n:t "));
    assert_eq!(texts(&rights.entries().collect::<Vec<_>>()), ["bob table n:t W"]);
    with_bob(|bob| assert!(!rights.allowed(bob, Action::Read, Target::Table(&table("n:t")))));
}

#[test]
fn entries_go_with_what_they_are_for() {
    let all = [
        "bob - A",
        "bob @n C",
        "bob n:t R",
        "bob n:t,f R",
        "bob n:t,f,q W",
        "bob n:t,g R",
        "eve n:u R",
    ];
    let left = |change: fn(&mut Rights)| {
        let mut rights = rights(&all);
        change(&mut rights);
        rights.entries().count()
    };
    assert_eq!(left(|rights| rights.drop_table(&table("n:t"))), 3);
    assert_eq!(left(|rights| rights.drop_family(&table("n:t"), b"f")), 5);
    assert_eq!(left(|rights| rights.drop_namespace("n")), 6);
    assert_eq!(
        left(|rights| rights.drop_grantee(&Grantee::User("bob".into()))),
        1
    );
    let mut rights = rights(&["bob n:t,f,q R"]);
    rights.own(&table("n:t"), "eve").unwrap();
    assert_eq!(
        texts(&rights.list(Listed::Table(&table("n:t"), None, None), None)),
        ["eve table n:t RWXCA", "bob table n:t, column f:q R"]
    );
    rights.drop_table(&table("n:t"));
    with_bob(|bob| assert!(!rights.allowed_somewhere(bob, Actions::ALL, &table("n:t"))));
}

#[test]
fn lists_are_those_of_get_user_permissions() {
    let rights = rights(&[
        "bob - A",
        "@dev @n C",
        "bob n:t R",
        "@dev n:t,f R",
        "eve n:t,f,q W",
    ]);
    let name = table("n:t");
    let list = |listed, user: Option<&str>| {
        let user = user.map(|text| text.parse::<Grantee>().unwrap());
        let groups = ["dev".to_owned()];
        texts(&rights.list(listed, user.as_ref().map(|user| (user, &groups[..])))).len()
    };
    assert_eq!(list(Listed::Global, None), 1);
    assert_eq!(list(Listed::Namespace("n"), None), 1);
    assert_eq!(list(Listed::Table(&name, None, None), None), 3);
    assert_eq!(list(Listed::Table(&name, Some(b"f"), None), None), 2);
    assert_eq!(list(Listed::Table(&name, Some(b"f"), Some(b"q")), None), 1);
    assert_eq!(list(Listed::Table(&name, None, Some(b"q")), None), 3);
    // A user's own entries and those of its groups; a group's own only.
    assert_eq!(list(Listed::Table(&name, None, None), Some("bob")), 2);
    assert_eq!(list(Listed::Table(&name, None, None), Some("@dev")), 1);
    assert_eq!(list(Listed::Table(&name, None, None), Some("@ops")), 0);
}

/// The rows and qualifiers of HBase 2.6.1's `PermissionStorage` (`userPermissionRowKey`,
/// `userPermissionKey`).
#[test]
fn rows_of_the_acl_table_are_hbases() {
    let rights = rights(&[
        "bob - WR",
        "@dev @n C",
        "bob n:t,f,q R",
        "bob t A",
        "@dev t,f RWXCA",
    ]);
    let cells = rights.acl_cells();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let cells: Vec<String> = cells
        .iter()
        .map(|cell| {
            [&cell.row, &cell.qualifier, &cell.value]
                .map(|part| text(part))
                .join(" ")
        })
        .collect();
    assert_eq!(
        cells,
        [
            "@n @dev C",
            "hbase:acl bob RW",
            "n:t bob,f,q R",
            "t @dev,f RWXCA",
            "t bob A"
        ]
    );
}

/// Goal: no column twice, and no global right that is none.
#[test]
fn columns_of_acl_are_there_once() {
    let mut rights = Rights::default();
    let of = |family: &[u8], qualifier, actions: &str| Entry {
        grantee: "bob".parse().unwrap(),
        scope: Scope::table(table("t"), Some(family), qualifier).unwrap(),
        actions: actions.parse().unwrap(),
    };
    rights.grant(of(b"f,q", None, "A"), true).unwrap();
    rights.grant(of(b"f", Some(b"q"), "RW"), true).unwrap();
    let own = Entry {
        scope: Scope::table(table("hbase:acl"), None, None).unwrap(),
        ..of(b"f", None, "R")
    };
    rights.grant(own, true).unwrap();
    let cells = rights.acl_cells();
    assert_eq!(cells.len(), 1, "{cells:?}");
    assert_eq!(cells[0].qualifier, b"bob,f,q");
    assert_eq!(cells[0].value, b"RWA");
}

/// Goal: a snapshot's owner is the one that took it, not that of an older snapshot or user of its name.
#[test]
fn snapshots_have_owners() {
    let dir = tempfile::tempdir().unwrap();
    let file = RightsFile::in_dir(&dir.path().join("security"));
    let owned = |name: &str, created_ms, owner: &str| SnapshotOwner {
        name: name.to_owned(),
        created_ms,
        owner: owner.to_owned(),
    };
    file.update(|rights| {
        rights.own_snapshot(owned("s", 5, "bob"))?;
        rights.own_snapshot(owned("s2", 6, "ada"))
    })
    .unwrap();
    let (mut rights, _) = file.load().unwrap();
    assert_eq!(rights.snapshot_owner("s", 5), Some("bob"));
    assert_eq!(rights.snapshot_owner("s", 6), None);
    assert_eq!(rights.snapshot_owner("s3", 5), None);
    rights.own_snapshot(owned("s", 7, "ada")).unwrap();
    assert_eq!(rights.snapshot_owner("s", 5), None);
    assert_eq!(rights.snapshot_owner("s", 7), Some("ada"));
    rights.keep_snapshots(|name, created_ms| (name, created_ms) == ("s2", 6));
    assert_eq!(rights.snapshot_owner("s", 7), None);
    rights.drop_grantee(&"ada".parse().unwrap());
    assert_eq!(rights.snapshot_owner("s2", 6), None);
    rights.own_snapshot(owned("s", 8, "a,b")).unwrap_err();
}

#[test]
fn the_file_holds_all_entries() {
    let dir = tempfile::tempdir().unwrap();
    let file = RightsFile::in_dir(&dir.path().join("security"));
    let mut bytes = entry("bob n:t R");
    bytes.scope = Scope::table(table("n:t"), Some(b"f"), Some(b"\x00\\x41\xff\"")).unwrap();
    let ((), written, _) = file
        .update(|rights| {
            rights.grant(entry("@dev - RWXCA"), false)?;
            rights.grant(entry("bob @n C"), false)?;
            rights.grant(bytes, false)
        })
        .unwrap();
    let (read, version) = file.load().unwrap();
    assert!(!file.changed(version));
    assert_eq!(
        read.entries().collect::<Vec<_>>(),
        written.entries().collect::<Vec<_>>()
    );
    assert_eq!(read.entries().count(), 3);
    let name = table("n:t");
    let column = Target::Column(&name, b"f", Some(b"\x00\\x41\xff\""));
    with_bob(|bob| assert!(read.allowed(bob, Action::Read, column)));
}

#[test]
fn a_wrong_file_is_refused_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = RightsFile::in_dir(dir.path());
    file.update(|_| Ok(())).unwrap();
    for (entries, problem) in [
        (
            r#"{"grantee": "bob", "actions": "Q"}"#,
            "line 2: \"Q\" is no set of rights",
        ),
        (
            r#"{"grantee": "bob", "actions": ""}"#,
            "line 2: an entry has no actions",
        ),
        (
            r#"{"grantee": "a b", "actions": "R"}"#,
            "line 2: the name \"a b\" is not acceptable",
        ),
        (
            r#"{"grantee": "bob", "actions": "R", "family": "f"}"#,
            "line 2: an entry has a namespace, or a table",
        ),
        (
            r#"{"grantee": "bob", "actions": "R", "table": "t", "qualifier": "q"}"#,
            "line 2: a right to a column needs its family",
        ),
        (
            r#"{"grantee": "bob", "actions": "R", "table": "t", "family": "\\y"}"#,
            "line 2: a backslash is not followed",
        ),
        (
            r#"{"grantee": "bob", "actions": "R", "table": "a b"}"#,
            "line 2: ",
        ),
        (
            "{\"grantee\": \"bob\", \"actions\": \"R\"},\n{\"grantee\": \"bob\", \"actions\": \"W\"}",
            "bob has two entries for global",
        ),
    ] {
        std::fs::write(
            file.path(),
            format!("{{\"version\": 1, \"entries\": [\n{entries}]}}"),
        )
        .unwrap();
        let error = file.load().unwrap_err().to_string();
        assert!(
            error.contains("rights.json") && error.contains(problem),
            "{error}"
        );
    }
}

/// The rule in the plainest words: any entry of the subject at the target or above it.
fn allowed_by_rule(
    rights: &Rights,
    action: Action,
    name: &TableName,
    family: &[u8],
    qualifier: &[u8],
) -> bool {
    rights.entries().any(|entry| {
        let is_of_bob = ["bob", "@dev"].contains(&&entry.grantee.to_string()[..]);
        let covers = match &entry.scope {
            Scope::Global => true,
            Scope::Namespace(namespace) => namespace == name.namespace(),
            Scope::Table { table, .. } => {
                table == name
                    && entry.scope.family().is_none_or(|granted| granted == family)
                    && entry.scope.qualifier().is_none_or(|granted| granted == qualifier)
            }
        };
        is_of_bob && covers && entry.actions.iter().any(|granted| granted == action)
    })
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let grantees = prop::sample::select(vec!["bob", "eve", "@dev", "@ops"]);
    let scopes = prop::sample::select(vec![
        "-", "@n", "@default", "n:t", "t", "t,f", "t,f,q", "t,f,r", "t,g", "n:t,f",
    ]);
    let actions = prop::sample::subsequence(Action::ALL.to_vec(), 1..=3);
    (grantees, scopes, actions).prop_map(|(grantee, place, actions)| Entry {
        grantee: grantee.parse().unwrap(),
        scope: scope(place),
        actions: actions.into_iter().collect(),
    })
}

proptest! {
    /// Goal: index and filter decide as the rule does, after any grants and revocations.
    #[test]
    fn checks_follow_the_rule(entries in prop::collection::vec((any_entry(), any::<bool>(), any::<bool>()), 0..12)) {
        let mut rights = Rights::default();
        for (entry, is_grant, merge) in entries {
            if is_grant || merge {
                rights.grant(entry, merge).unwrap();
            } else {
                rights.revoke(&entry.grantee, &entry.scope, entry.actions);
            }
        }
        let bob = Subject { user: "bob", groups: &["dev".to_owned()], superuser: false };
        for name in [table("t"), table("n:t")] {
            let all = |visit: &mut Visit<'_>| ["f", "g"].iter().for_each(|family| visit(family.as_bytes(), None));
            let readable = rights.readable(&bob, &name, all);
            for (family, qualifier) in [("f", "q"), ("f", "r"), ("g", "q")].map(|(f, q)| (f.as_bytes(), q.as_bytes())) {
                for action in Action::ALL {
                    let target = Target::Column(&name, family, Some(qualifier));
                    let by_rule = allowed_by_rule(&rights, action, &name, family, qualifier);
                    prop_assert_eq!(rights.allowed(&bob, action, target), by_rule);
                    if action == Action::Read {
                        let is_read = match &readable {
                            Readable::All => true,
                            Readable::Filtered(filter) => filter.allows(family, qualifier),
                            Readable::Nothing => false,
                        };
                        prop_assert_eq!(is_read, by_rule);
                    }
                }
            }
        }
    }
}
