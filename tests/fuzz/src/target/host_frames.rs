//! What the Java host of user code sends: frames, and its verdicts on rows.
//!
//! ```text
//! input = which parser u8 (modulo the number of parsers) | bytes from the socket
//! ```
//!
//! A frame that is read has the bytes that came. A verdict is only about rows that were asked about: their
//! numbers ascend, and cells that stay are in their rows. The host runs code of users, so all of it may come
//! from them.

use basalt_host::filter::{Asked, Kept, Verdict};
use basalt_host::frame;

use crate::memory;

/// The rows that are asked about.
const ROWS: [Asked<'static>; 3] = [(b"a", 1), (b"b", 3), (b"", 2)];
/// Memory of a step in which a body is read.
const STEP_BYTES: usize = 1 << 20;

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let Some((which, bytes)) = input.split_first() else {
        return;
    };
    if which % 2 == 0 {
        read_frame(bytes);
    } else {
        read_verdict(bytes);
    }
}

fn read_frame(bytes: &[u8]) {
    let read = memory::bounded(bytes.len(), 2 * STEP_BYTES, || frame::read(&mut &bytes[..]));
    if let Ok((kind, body)) = read {
        let mut again = Vec::new();
        frame::write(&mut again, kind, &body).expect("it was not too large");
        assert_eq!(again[..], bytes[..again.len()]);
    }
}

fn read_verdict(bytes: &[u8]) {
    // Lists of results and of their cells are larger than their encoded form.
    let beside = 16 * bytes.len();
    let Ok(verdict) = memory::bounded(bytes.len(), beside, || Verdict::parse(bytes, &ROWS)) else {
        return;
    };
    let rows: Vec<usize> = verdict.results.iter().map(|(row, _)| *row).collect();
    assert!(rows.is_sorted_by(|left, right| left < right), "{rows:?}");
    for (row, kept) in &verdict.results {
        assert!(!kept.is_empty());
        for cell in kept {
            match cell {
                Kept::Same(index) => assert!(*index < ROWS[*row].1),
                Kept::New(new) => assert!(new.key.len() + new.value.len() < bytes.len()),
            }
        }
    }
}
