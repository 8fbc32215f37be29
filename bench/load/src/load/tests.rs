//! The core with operations that need no server.

use super::*;

/// Operations that note their index; the third of every ten is given up.
struct Noting {
    /// There is nothing left at this index.
    end: u64,
}

impl Operations for Noting {
    type Worker = Vec<u64>;

    fn kinds(&self) -> Vec<String> {
        vec!["even".to_owned(), "odd".to_owned()]
    }

    fn worker(&self, _number: u64, _started: Instant) -> Result<Vec<u64>> {
        Ok(Vec::new())
    }

    async fn operate(&self, worker: &mut Vec<u64>, index: u64) -> Result<Option<Outcome>> {
        if index >= self.end {
            return Ok(None);
        }
        worker.push(index);
        tokio::task::yield_now().await;
        Ok(Some(Outcome {
            kind: usize::from(index % 2 == 1),
            rows: 2,
            done: index % 10 != 2,
            failures: retry::Failures::default(),
        }))
    }
}

fn plan(operations: Option<u64>) -> Plan {
    Plan {
        label: "test".to_owned(),
        connections: 3,
        pace: Pace::Closed,
        operations,
        rows_per_operation: 2,
        duration: None,
        warm_up: Duration::ZERO,
    }
}

/// Every index is carried out once, by whichever task, and none beyond the end.
#[tokio::test]
async fn operations_are_carried_out_once_each() {
    for (operations, end) in [(Some(100), u64::MAX), (None, 100), (Some(100), 100)] {
        let (measured, workers) = run(plan(operations), &Arc::new(Noting { end })).await.unwrap();
        let mut indices = workers.concat();
        indices.sort_unstable();
        assert_eq!(indices, (0..100).collect::<Vec<_>>());
        assert_eq!(measured.operations(), 90);
        assert_eq!((measured.kinds[0].given_up, measured.kinds[1].given_up), (10, 0));
        assert_eq!(measured.kinds[1].operations, 50);
        assert_eq!(measured.rows(), 180);
        assert_eq!(measured.latencies().report().count, 90);
    }
}

/// Also by tasks that ask at the same moment: the last operations are neither skipped nor replaced by ones
/// beyond the end.
#[test]
fn tasks_side_by_side_leave_no_operation_out() {
    const OPERATIONS: u64 = 5;
    for _ in 0..2_000 {
        let shared = Shared {
            plan: plan(Some(OPERATIONS)),
            operations: Arc::new(Noting { end: u64::MAX }),
            schedule: Schedule::start(Pace::Closed, None).0,
            taken: Mutex::default(),
            bar: ProgressBar::hidden(),
        };
        let together = std::sync::Barrier::new(2);
        let take_all = || {
            together.wait();
            std::iter::from_fn(|| shared.take())
                .map(|due| due.index)
                .collect()
        };
        let mut indices = std::thread::scope(|scope| {
            let other = scope.spawn(take_all);
            let own: Vec<u64> = take_all();
            [own, other.join().unwrap()].concat()
        });
        indices.sort_unstable();
        assert_eq!(indices, (0..OPERATIONS).collect::<Vec<_>>());
    }
}

/// A task that has nothing left leaves the rest to the others.
#[tokio::test]
async fn a_task_without_work_does_not_end_the_others() {
    struct Shares;
    impl Operations for Shares {
        /// Operations left.
        type Worker = u64;
        fn kinds(&self) -> Vec<String> {
            vec!["one".to_owned()]
        }
        fn worker(&self, number: u64, _started: Instant) -> Result<u64> {
            Ok(number * 10)
        }
        async fn operate(&self, left: &mut u64, _index: u64) -> Result<Option<Outcome>> {
            tokio::task::yield_now().await;
            let Some(rest) = left.checked_sub(1) else {
                return Ok(None);
            };
            *left = rest;
            Ok(Some(Outcome {
                done: true,
                ..Outcome::default()
            }))
        }
    }
    let (measured, _) = run(plan(None), &Arc::new(Shares)).await.unwrap();
    assert_eq!(measured.operations(), 30);
}

/// In an open loop the warm-up is a fixed number of operations, because each has its time.
#[tokio::test]
async fn the_warm_up_is_carried_out_and_does_not_count() {
    let plan = Plan {
        pace: Pace::Open {
            requests_per_s: 10_000.0,
        },
        warm_up: Duration::from_millis(5),
        ..plan(Some(40))
    };
    let (measured, workers) = run(plan, &Arc::new(Noting { end: u64::MAX })).await.unwrap();
    assert_eq!(workers.concat().len(), 90);
    let given_up: u64 = measured.kinds.iter().map(|kind| kind.given_up).sum();
    assert_eq!(measured.operations() + given_up, 40);
}

/// Goal: a run ends with its time, also when the next operation is due long after. The next one would be
/// after 100 seconds; a rate of one operation in the whole time is right, not one in the microseconds that
/// it took.
#[tokio::test]
async fn an_open_loop_ends_with_its_time() {
    let duration = Duration::from_millis(100);
    let plan = Plan {
        pace: Pace::Open { requests_per_s: 0.01 },
        duration: Some(duration),
        ..plan(None)
    };
    let started = Instant::now();
    let (measured, workers) = run(plan, &Arc::new(Noting { end: u64::MAX })).await.unwrap();
    let took = started.elapsed();
    assert!(
        took >= duration && took < Duration::from_secs(50),
        "it took {took:?}"
    );
    assert_eq!(workers.concat(), [0]);
    assert_eq!((measured.operations(), measured.not_begun), (1, 0));
    assert_eq!(measured.elapsed, duration);
}

/// The time of a run that its operations or the workload ended is that of its last result.
#[tokio::test]
async fn an_open_loop_that_ends_early_has_a_shorter_time() {
    let hour = Plan {
        pace: Pace::Open {
            requests_per_s: 10_000.0,
        },
        duration: Some(Duration::from_hours(1)),
        ..plan(Some(20))
    };
    for (operations, end) in [(Some(20), u64::MAX), (None, 20)] {
        let plan = Plan {
            operations,
            ..hour.clone()
        };
        let (measured, _) = run(plan, &Arc::new(Noting { end })).await.unwrap();
        assert!(
            measured.elapsed < Duration::from_mins(30),
            "{:?}",
            measured.elapsed
        );
    }
}

/// Operations that the server is too slow for are counted.
#[test]
fn operations_that_were_due_and_not_begun_are_counted() {
    let open = Plan {
        pace: Pace::Open {
            requests_per_s: 100.0,
        },
        duration: Some(Duration::from_secs(2)),
        ..plan(None)
    };
    assert_eq!([150, 200, 201].map(|begun| open.not_begun(begun)), [50, 0, 0]);
    let bounded = Plan {
        operations: Some(120),
        ..open
    };
    assert_eq!(bounded.not_begun(100), 20);
    assert_eq!(plan(Some(120)).not_begun(100), 0);
}

#[tokio::test]
async fn an_error_of_one_task_ends_the_run() {
    struct Failing;
    impl Operations for Failing {
        type Worker = ();
        fn kinds(&self) -> Vec<String> {
            vec!["one".to_owned()]
        }
        fn worker(&self, _number: u64, _started: Instant) -> Result<()> {
            Ok(())
        }
        async fn operate(&self, (): &mut (), index: u64) -> Result<Option<Outcome>> {
            tokio::task::yield_now().await;
            if index == 50 {
                return Err(Error::Usage("fifty".to_owned()));
            }
            Ok(Some(Outcome::default()))
        }
    }
    let error = run(plan(None), &Arc::new(Failing)).await.unwrap_err();
    assert_eq!(error.to_string(), "fifty");
}
