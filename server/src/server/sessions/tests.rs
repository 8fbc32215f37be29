//! Goal: a session's owner reaches it, no other caller does, and no path leaks one. Method: the
//! table of sessions alone, with scans that never open a table.

use super::*;

const LEASE: Duration = Duration::from_mins(1);
const ME: Owner = Owner::Connection(1);
const OTHER: Owner = Owner::Connection(2);

fn sessions(change: impl FnOnce(&mut config::Scanner)) -> Arc<Sessions> {
    let mut config = config::Scanner {
        max_sessions: 4,
        max_sessions_per_connection: 2,
        max_http_sessions: 1,
        ..config::Scanner::default()
    };
    change(&mut config);
    Arc::new(Sessions::new(&config))
}

fn scan() -> OpenScan {
    OpenScan {
        remote: None,
        scanner: None,
        pending: PendingScan {
            table: basalt_engine::schema::TableName::parse(b"t").unwrap(),
            scan: std::sync::Arc::default(),
        },
        sort_columns: false,
        unreturned: None,
        user: None,
        memory: None,
    }
}

#[test]
fn only_the_owner_reaches_a_session() {
    let sessions = sessions(|_| {});
    for (owner, strangers) in [(ME, [OTHER, Owner::Http]), (Owner::Http, [ME, OTHER])] {
        let id = sessions.open(owner, LEASE, scan()).unwrap();
        for stranger in strangers {
            assert_eq!(sessions.fetch(id, stranger).unwrap_err(), SessionError::Unknown);
            assert!(!sessions.close(id, stranger));
        }
        let fetching = sessions.fetch(id, owner).unwrap();
        assert_eq!(sessions.fetch(id, owner).unwrap_err(), SessionError::Busy);
        drop(fetching);
        assert!(sessions.fetch(id, owner).is_ok());
        assert!(sessions.close(id, owner) && !sessions.close(id, owner));
    }
}

#[test]
fn limits_hold_and_slots_come_back() {
    let sessions = sessions(|_| {});
    let refused = |owner| sessions.open(owner, LEASE, scan()).unwrap_err();
    let first = sessions.open(ME, LEASE, scan()).unwrap();
    sessions.open(ME, LEASE, scan()).unwrap();
    let limit = "scanner.max_sessions_per_connection";
    assert_eq!(refused(ME), SessionError::TooMany { limit, value: 2 });
    sessions.open(Owner::Http, LEASE, scan()).unwrap();
    let limit = "scanner.max_http_sessions";
    assert_eq!(refused(Owner::Http), SessionError::TooMany { limit, value: 1 });
    sessions.open(OTHER, LEASE, scan()).unwrap();
    let limit = "scanner.max_sessions";
    assert_eq!(refused(OTHER), SessionError::TooMany { limit, value: 4 });
    assert_eq!(sessions.len(), 4, "a refused session took no slot");
    assert!(sessions.close(first, ME));
    sessions.close_owner(OTHER);
    assert_eq!(sessions.len(), 2);
    sessions.open(ME, LEASE, scan()).unwrap();
}

#[test]
fn an_expired_session_is_gone_but_not_one_in_use() {
    let sessions = sessions(|_| {});
    let idle = sessions.open(ME, Duration::ZERO, scan()).unwrap();
    sessions.open(ME, Duration::ZERO, scan()).unwrap();
    assert_eq!(
        sessions.fetch(idle, ME).unwrap_err(),
        SessionError::Unknown,
        "expired before the reaper came"
    );
    sessions.expire();
    assert_eq!(sessions.len(), 0);
    let in_use = sessions.open(ME, LEASE, scan()).unwrap();
    let fetching = sessions.fetch(in_use, ME).unwrap();
    sessions.expire();
    assert_eq!(sessions.len(), 1);
    drop(fetching);
    assert!(sessions.close(in_use, ME));
}

/// The lease counts from the end of the last fetch.
#[test]
fn a_fetch_renews_the_lease() {
    let sessions = sessions(|_| {});
    let id = sessions.open(ME, LEASE, scan()).unwrap();
    let expires = |sessions: &Sessions| sessions.by_id.get(&id).unwrap().expires;
    let before = expires(&sessions);
    let fetching = sessions.fetch(id, ME).unwrap();
    let middle = Instant::now();
    drop(fetching);
    assert!(expires(&sessions) >= middle + LEASE && middle + LEASE > before);
}

/// A session that is too old is removed although it is fetched from all the while; a running fetch
/// may finish.
#[test]
fn age_ends_a_session_whatever_its_lease() {
    let sessions = sessions(|config| config.max_age_ms = 1);
    let id = sessions.open(ME, LEASE, scan()).unwrap();
    sessions.by_id.get_mut(&id).unwrap().opened -= Duration::from_secs(1);
    assert_eq!(sessions.fetch(id, ME).unwrap_err(), SessionError::Unknown);
    let scan = sessions.by_id.get_mut(&id).unwrap().scan.get_mut().take();
    sessions.expire();
    assert_eq!(sessions.len(), 1, "being fetched from");
    *sessions.by_id.get_mut(&id).unwrap().scan.get_mut() = scan;
    sessions.expire();
    assert_eq!(sessions.len(), 0);
}

/// A fetch that panics, and one whose session is closed under it: the scan returns, or ends.
#[test]
fn a_fetch_that_ends_badly_leaks_nothing() {
    let sessions = sessions(|_| {});
    let id = sessions.open(ME, LEASE, scan()).unwrap();
    let fetching = sessions.fetch(id, ME).unwrap();
    std::thread::spawn(move || {
        let _fetching = fetching;
        panic!("a fetch that goes wrong");
    })
    .join()
    .unwrap_err();
    let fetching = sessions.fetch(id, ME).expect("the scan came back");
    sessions.close_owner(ME);
    assert_eq!(sessions.len(), 0, "the connection died in the middle of a fetch");
    drop(fetching);
    assert_eq!(sessions.len(), 0);
    assert_eq!(sessions.fetch(id, ME).unwrap_err(), SessionError::Unknown);
}

/// Ids neither count up nor repeat, and are not negative, as HBase's are not.
#[test]
fn ids_say_nothing_about_each_other() {
    let sessions = sessions(|config| {
        config.max_sessions = 1_000;
        config.max_sessions_per_connection = 1_000;
    });
    let ids: Vec<i32> = (0..1_000)
        .map(|_| sessions.open(ME, LEASE, scan()).unwrap())
        .collect();
    assert!(ids.iter().all(|id| *id >= 0));
    let distinct: std::collections::BTreeSet<i32> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), ids.len());
    // Half of the bits of a random id differ from those of the one before.
    let flipped: u32 = ids.windows(2).map(|pair| (pair[0] ^ pair[1]).count_ones()).sum();
    let mean = f64::from(flipped) / (ids.len() - 1) as f64;
    assert!((14.0..17.0).contains(&mean), "{mean} bits differ on average");
}
