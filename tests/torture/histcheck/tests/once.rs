//! Rows of increments and appends with nonces that must be accepted and rejected.

use basalt_histcheck::once::{Operation, State, check};
use bytes::Bytes;

fn state(sum: i64, text: &'static str) -> State {
    State {
        sum,
        text: text.into(),
    }
}

fn add(amount: i64) -> Operation {
    Operation::Add(amount)
}

fn append(piece: &'static str) -> Operation {
    Operation::Append(piece.into())
}

const ROW: Bytes = Bytes::from_static(b"row");

#[test]
fn once_and_not_yet_are_accepted() {
    for (known, pending, found, applied) in [
        (state(0, ""), None, state(0, ""), false),
        (state(7, "+1"), None, state(7, "+1"), false),
        (state(7, "+1"), Some(add(3)), state(7, "+1"), false),
        (state(7, "+1"), Some(add(3)), state(10, "+1"), true),
        (state(7, "+1"), Some(add(-7)), state(0, "+1"), true),
        (state(7, ""), Some(append("+2")), state(7, "+2"), true),
        (state(7, "+1"), Some(append("+2")), state(7, "+1"), false),
        (state(7, "+1"), Some(append("+2")), state(7, "+1+2"), true),
        (state(i64::MAX, ""), Some(add(1)), state(i64::MIN, ""), true),
        // Appending the same piece again is right if it is another operation.
        (state(7, "+1"), Some(append("+1")), state(7, "+1+1"), true),
    ] {
        assert_eq!(
            check(&ROW, &known, pending.as_ref(), &found),
            Ok(applied),
            "{found:?}"
        );
    }
}

#[test]
fn twice_and_never_are_rejected() {
    for (known, pending, found, why) in [
        (state(7, ""), Some(add(3)), state(13, ""), "was applied twice"),
        (
            state(7, "+1"),
            Some(append("+2")),
            state(7, "+1+2+2"),
            "was applied twice",
        ),
        (state(0, ""), Some(add(5)), state(10, ""), "was applied twice"),
        (state(7, ""), None, state(10, ""), "instead of"),
        (state(7, ""), None, state(4, ""), "instead of"),
        (state(7, ""), Some(add(3)), state(4, ""), "instead of"),
        (state(7, ""), Some(add(3)), state(16, ""), "instead of"),
        (state(7, "+1"), None, state(7, ""), "instead of"),
        (state(7, "+1"), Some(append("+2")), state(7, "+2+1"), "instead of"),
        (state(7, "+1"), Some(append("+2")), state(8, "+1+2"), "instead of"),
        (state(7, "+1"), Some(add(1)), state(8, "+1+2"), "instead of"),
        (state(7, "+1"), Some(add(1)), state(0, ""), "instead of"),
    ] {
        let violation = check(&ROW, &known, pending.as_ref(), &found).expect_err("wrong");
        assert!(violation.what.contains(why), "{violation}");
    }
}
