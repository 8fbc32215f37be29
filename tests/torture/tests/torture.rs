//! A short run of the torture: the real binary, killed under load.

use basalt_torture::{Figures, Options, recovery, run};

#[test]
fn kills_lose_nothing() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let options = Options {
        kills: 6,
        life_ms: 600,
        acid_columns: 10,
        full_look_every: 3,
        ..Options::new(&dir.path().join("data"))
    };
    let mut figures = Figures::default();
    if let Err(problem) = run(&options, &mut figures) {
        panic!(
            "{figures}\n{problem}\n{}\nin {}",
            problem.calls,
            dir.keep().display()
        );
    }
    println!("{figures}");
    assert_eq!(figures.kills, 6);
    assert_eq!(figures.undecided, 0);
    assert!(figures.operations > 500, "{figures}");
    assert!(figures.loads > 0 && figures.repeats > 20, "{figures}");
}

#[test]
fn a_log_comes_back() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let options = Options::new(&dir.path().join("data"));
    let measured = recovery::measure(&options, 4 << 20, 2).expect("all rows come back");
    assert!(measured.log_bytes > 4 << 20, "{measured:?}");
    assert_eq!(measured.took.len(), 2);
}
