//! Goal: calls are charged to every limit that they touch, wait for the slowest, or are refused
//! without a charge. Method: tokio's clock stands still and is moved by hand.

use basalt_engine::fs::sim::{SimFs, SimOptions};
use tokio::time::advance;

use super::*;

const NO_WAIT: Option<Duration> = None;

fn table(name: &str) -> TableName {
    TableName::parse(name.as_bytes()).unwrap()
}

/// Limits of a rehearsal, an engine for quotas, and both together.
struct Rig {
    engine: Arc<Engine>,
    capacity: Capacity,
}

impl Rig {
    fn new(set: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        config.quota.max_wait_ms = 2_000;
        set(&mut config);
        let engine = crate::rig::engine_on(&SimFs::new(1, SimOptions::default()), &config);
        let capacity = Capacity::new(&config, &engine).unwrap();
        Self { engine, capacity }
    }

    fn set_quota(&self, owner: Owner, kind: ThrottleType, per_second: u64) {
        let setting = Setting {
            limit: Limit::per_second(per_second).unwrap(),
            is_cluster: false,
        };
        let set = |settings: &mut Settings| {
            settings.insert(kind, setting);
        };
        self.capacity.change_quota(&self.engine, owner, set).unwrap();
    }

    /// Writes rows of 100 bytes on servers, as listed; returns how long to wait.
    fn write(&self, rows: &[(u16, u64)]) -> Result<Option<Duration>, Exceeded> {
        let mut charge = Charge::default();
        for (server, rows) in rows {
            (0..*rows).for_each(|_| charge.add(Some(*server), Cost::write(100)));
        }
        let until = self.capacity.charge(None, &table("t"), &mut charge)?;
        Ok(until.map(|until| until - Instant::now()))
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a call that waits has a time")]
fn seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

#[tokio::test(start_paused = true)]
async fn each_server_has_its_own_capacity_and_a_batch_waits_for_the_slowest() {
    let rig = Rig::new(|config| {
        config.rehearsal.servers = 3;
        config.rehearsal.requests_per_second = 100;
    });
    assert!(rig.capacity.is_on());
    assert_eq!(rig.write(&[(0, 100)]), Ok(NO_WAIT));
    assert_eq!(rig.write(&[(1, 100)]), Ok(NO_WAIT), "another one's");
    assert_eq!(rig.write(&[(0, 100), (1, 50), (2, 50)]), Ok(seconds(1)));
    // The first owes a second, the second half of one, the third has half of one left.
    assert_eq!(rig.write(&[(2, 50)]), Ok(NO_WAIT));
    assert_eq!(rig.write(&[(1, 50)]), Ok(seconds(1)));
    assert_eq!(rig.write(&[(0, 100)]), Ok(seconds(2)));
    advance(Duration::from_secs(3)).await;
    assert_eq!(rig.write(&[(0, 100), (1, 100), (2, 100)]), Ok(NO_WAIT));
}

/// Goal: a refused call takes no tokens of any limit; the text is one that HBase's client reads the
/// time from.
#[tokio::test(start_paused = true)]
async fn a_call_that_would_wait_too_long_is_refused_and_pays_nothing() {
    let rig = Rig::new(|config| {
        config.rehearsal.servers = 2;
        config.rehearsal.write_requests_per_second = 100;
        config.rehearsal.requests_per_second = 1_000_000;
    });
    assert_eq!(rig.write(&[(1, 100)]), Ok(NO_WAIT));
    assert_eq!(rig.write(&[(1, 100)]), Ok(seconds(1)));
    assert_eq!(rig.write(&[(1, 100)]), Ok(seconds(2)));
    for _ in 0..3 {
        let refused = rig.write(&[(0, 100), (1, 1)]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "number of write requests exceeded - wait 2sec, 10ms; rehearsal-2 has the limit 100req/sec of WRITE_NUMBER, \
             and quota.max_wait_ms is 2000"
        );
    }
    assert_eq!(rig.write(&[(0, 100)]), Ok(NO_WAIT), "it was charged with nothing");
    advance(Duration::from_secs(1)).await;
    assert_eq!(rig.write(&[(1, 1)]), Ok(Some(Duration::from_millis(1_010))));
}

#[tokio::test(start_paused = true)]
async fn bytes_read_are_charged_where_they_were_read() {
    let rig = Rig::new(|config| {
        config.rehearsal.servers = 2;
        config.rehearsal.read_bytes_per_second = 1_000;
        config.rehearsal.read_requests_per_second = 10;
    });
    let fetch = |server| {
        let mut charge = Charge::default();
        charge.add(Some(server), Cost::READ);
        let until = rig.capacity.charge(None, &table("t"), &mut charge).unwrap();
        (charge, until.map(|until| until - Instant::now()))
    };
    let (charge, wait) = fetch(0);
    assert_eq!(wait, NO_WAIT);
    // It began on the first server and went on to the second.
    rig.capacity
        .charge_read(&charge, &[(0, 2_500), (1, 1_200)], 3_700);
    assert_eq!(fetch(0).1, Some(Duration::from_millis(1_500)));
    assert_eq!(fetch(1).1, Some(Duration::from_millis(200)));
    // One for the fetch that came over from the first, one for the last check, eight more.
    for _ in 0..8 {
        assert_eq!(fetch(1).1, Some(Duration::from_millis(200)));
    }
    advance(Duration::from_millis(99)).await;
    rig.capacity.charge_read(&fetch(1).0, &[], 0);
    advance(Duration::from_millis(100)).await;
    assert_eq!(
        fetch(1).1,
        Some(Duration::from_millis(1)),
        "it was charged with requests, too"
    );
}

#[tokio::test(start_paused = true)]
async fn quotas_hold_back_whom_they_are_for() {
    let rig = Rig::new(|config| config.quota.user = "me".into());
    assert!(!rig.capacity.is_on());
    let write = |name: &str| {
        let mut charge = Charge::default();
        (0..10).for_each(|_| charge.add(None, Cost::write(100)));
        let until = rig.capacity.charge(None, &table(name), &mut charge);
        until.map(|until| until.map(|until| until - Instant::now()))
    };
    rig.set_quota(Owner::Table(table("t")), ThrottleType::WriteSize, 1_000);
    assert!(rig.capacity.is_on());
    assert_eq!(
        [write("t"), write("t"), write("other")],
        [Ok(NO_WAIT), Ok(seconds(1)), Ok(NO_WAIT)]
    );
    rig.set_quota(
        Owner::Namespace("default".into()),
        ThrottleType::RequestNumber,
        10,
    );
    assert_eq!(
        [write("other"), write("other"), write("ns:t")],
        [Ok(NO_WAIT), Ok(seconds(1)), Ok(NO_WAIT)]
    );
    let text = |name| loop {
        if let Err(refused) = write(name) {
            break refused.to_string();
        }
    };
    assert!(text("other").contains("; namespace default has the limit 10req/sec of REQUEST_NUMBER"));
    let user = |name: &str| Owner::User {
        name: name.into(),
        scope: UserScope::All,
    };
    rig.set_quota(user("you"), ThrottleType::RequestNumber, 1);
    assert_eq!(
        [write("ns:t"), write("ns:t"), write("ns:t")],
        [const { Ok(NO_WAIT) }; 3]
    );
    rig.set_quota(user("me"), ThrottleType::RequestNumber, 10);
    assert!(text("ns:t").contains("; user me has the limit 10req/sec of REQUEST_NUMBER"));
    let mut charge = Charge::default();
    (0..200).for_each(|_| charge.add(None, Cost::write(100)));
    let refused = rig.capacity.charge(Some("you"), &table("ns:t"), &mut charge);
    let refused = refused.map(|_| charge.total).unwrap_or_default();
    assert_eq!(
        refused.writes, 200,
        "the first call of another user goes ahead, over the limit"
    );
    let refused = rig
        .capacity
        .charge(Some("you"), &table("ns:t"), &mut charge)
        .unwrap_err();
    assert!(
        refused.to_string().contains("; user you has the limit 1req/sec"),
        "{refused}"
    );
    assert_eq!(
        rig.capacity.charge(Some("third"), &table("ns:t"), &mut charge),
        Ok(None)
    );
    let owners: Vec<_> = rig
        .capacity
        .list_quotas()
        .iter()
        .map(|quota| quota.owner.clone())
        .collect();
    for owner in owners {
        rig.capacity
            .change_quota(&rig.engine, owner, Settings::clear)
            .unwrap();
    }
    assert!(!rig.capacity.is_on(), "nothing is left to be paid");
    assert_eq!(
        [write("other"), write("t"), write("ns:t")],
        [const { Ok(NO_WAIT) }; 3]
    );
}

#[test]
fn times_are_those_that_hbases_client_reads() {
    for (time, text) in [
        (Duration::ZERO, "0ms"),
        (Duration::from_nanos(1), "1ms"),
        (Duration::from_millis(1_001), "1sec, 1ms"),
        (Duration::from_millis(65_015), "1min, 5sec, 15ms"),
        (Duration::from_secs(302), "5mins, 2sec, 0ms"),
        (Duration::from_millis(3_785_001), "1hr, 3mins, 5sec, 1ms"),
        (Duration::from_hours(50), "50hrs, 0ms"),
    ] {
        assert_eq!(hbase_time(time), text);
    }
}
