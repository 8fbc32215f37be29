//! Linked lists after a crash.

use basalt_histcheck::linked::{self, Counts};

/// Nodes that are there, as `b>a` where `b` names `a` and `a` where it names none; nodes that were
/// acknowledged; and those that may be unreferenced.
type Case = (&'static str, &'static str, &'static str, &'static str);

const GOOD: &[Case] = &[
    ("nothing", "", "", ""),
    ("one node", "a", "a", "a"),
    ("one step", "a b c", "abc", "abc"),
    ("two steps", "a b>a", "ab", "b"),
    ("a chain", "a b>a c>b d>c", "abcd", "d"),
    ("a loop", "a>c b>a c>b", "abc", ""),
    ("a loop of one", "a>a", "a", ""),
    ("two loops", "a>b b>a c>d d>c", "abcd", ""),
    ("a loop and an open chain", "a>b b>a c d>c", "abcd", "d"),
    ("two chains, one step wide two", "a b c>a d>b", "abcd", "cd"),
    (
        "closed with an offset: one loop of two columns",
        "a>d b>c c>a d>b",
        "abcd",
        "",
    ),
    ("a step that was not acknowledged is there", "a b>a", "a", "ab"),
    (
        "a step that was not acknowledged is there in part",
        "a b c>a",
        "ab",
        "abcd",
    ),
    ("a step that was not acknowledged is not there", "a", "a", "ab"),
    (
        "a branch: an unknown step and the one tried after it",
        "a b>a c>a",
        "ac",
        "bc",
    ),
    ("a branch that went on", "a b>a c>a d>c", "acd", "bd"),
    (
        "closing was not acknowledged and did not happen",
        "a b>a c>b",
        "abc",
        "c",
    ),
    (
        "closing was not acknowledged and happened",
        "a>c b>a c>b",
        "abc",
        "c",
    ),
    ("closing happened in part", "a>c b c>a d>b", "abcd", "cd"),
    (
        "an unknown node before an acknowledged loop",
        "a>b b>a c>a",
        "ab",
        "c",
    ),
];

const BAD: &[Case] = &[
    ("the only node is missing", "", "a", "a"),
    ("the last node is missing", "a", "ab", "b"),
    ("the first node is missing", "b>a", "ab", "b"),
    ("a node in the middle is missing", "a c>b", "abc", "c"),
    ("undefined, and was never acknowledged", "b>a", "b", "b"),
    ("undefined in a loop", "a>c b>a", "abc", ""),
    ("undefined and unknown", "c>b", "c", "bc"),
    ("lost: no node refers to it", "a b", "ab", "b"),
    (
        "lost: the node that referred to it is gone",
        "a b>a d",
        "abd",
        "d",
    ),
    (
        "lost behind an old value: the loop is open again",
        "a b>a c>b",
        "abc",
        "",
    ),
    ("lost: a refers to the wrong one", "a>b b>a c>a", "abc", ""),
    ("lost: one of two", "a b c>a", "abc", "c"),
    ("the whole last step is missing", "a b", "abcd", "cd"),
    ("half of the last step is missing", "a b c>a", "abcd", "cd"),
    ("a whole chain is missing", "a b>a", "abcd", "bd"),
    ("the link is missing", "a b", "ab", "b"),
    ("an unacknowledged node that is not known", "a b>a x", "ab", "b"),
    ("two undefined", "c>a d>b", "abcd", "cd"),
    ("a node twice undefined", "b>a c>a", "abc", "bc"),
    ("all but one are missing", "c>b", "abc", "c"),
    ("a closed loop lost a node", "a>d b>a d>c", "abcd", ""),
];

fn count((_, nodes, acknowledged, newest): &Case) -> Counts<char> {
    let node = |word: &str| {
        let mut letters = word.split('>').filter_map(|name| name.chars().next());
        (letters.next().expect("a node"), letters.next())
    };
    let acknowledged: Vec<char> = acknowledged.chars().collect();
    linked::verify(nodes.split_whitespace().map(node), &acknowledged, |key| {
        newest.contains(*key)
    })
}

#[test]
fn good_lists_are_accepted() {
    for case in GOOD {
        let counts = count(case);
        assert!(counts.is_right(), "{}: {counts:?}", case.0);
        assert_eq!(
            counts.referenced + counts.newest,
            case.1.split_whitespace().count(),
            "{}",
            case.0
        );
    }
    assert!(GOOD.len() >= 20);
}

#[test]
fn bad_lists_are_rejected() {
    for case in BAD {
        assert!(!count(case).is_right(), "{}", case.0);
    }
    assert!(BAD.len() >= 20);
}

#[test]
fn violations_are_told_apart() {
    let counts = count(&("", "b>a d e", "bcde", "d"));
    assert_eq!(
        (counts.undefined, counts.lost, counts.missing),
        (vec!['a'], vec!['b', 'e'], vec!['c'])
    );
    assert_eq!((counts.referenced, counts.newest), (0, 1));
}
