//! Rows that are registers: decided without a search.
//!
//! If every write sets the same columns, each time to other values, then the values of a read
//! identify the write it read from. A write and its reads stand together in every order. Let
//! `finish` be when the first of them returned and `start` when the last was invoked. All of one
//! cluster must come before all of another if its `finish` is before the other's `start`; the calls
//! can be ordered exactly if no two clusters must both come before each other, and no read returned
//! before its write was invoked (Gibbons and Korach).
//!
//! A write of unknown outcome that no call read from needs no place.

use std::collections::HashMap;

use super::{Verdict, apply_changes};
use crate::history::{Call, Change, Columns, Op, Outcome};
use crate::notation;

/// A write and the reads of its values.
struct Cluster {
    /// `None` for the initial values.
    write: Option<usize>,
    /// A time, or -1 for the beginning.
    finish: i128,
    start: i128,
    /// Whether it has to have a place.
    needed: bool,
}

/// Decides about the piece; `None` if it is not a register.
pub(super) fn decide(calls: &[&Call], initial: &Columns) -> Option<Verdict> {
    let mut columns = None;
    let mut clusters = vec![Cluster {
        write: None,
        finish: -1,
        start: -1,
        needed: true,
    }];
    let mut by_image = HashMap::from([(initial.clone(), 0)]);
    for (index, call) in calls.iter().enumerate() {
        let Op::Write(changes) = &call.op else {
            if call.op == Op::Get {
                continue;
            }
            return None;
        };
        if changes.iter().any(|change| !matches!(change, Change::Put(..))) {
            return None;
        }
        let image = apply_changes(&Columns::new(), changes);
        let names: Vec<_> = image.keys().cloned().collect();
        if *columns.get_or_insert_with(|| names.clone()) != names
            || by_image.insert(image, clusters.len()).is_some()
        {
            return None;
        }
        let unknown = call.outcome == Outcome::Unknown;
        clusters.push(Cluster {
            write: Some(index),
            finish: i128::from(call.returned),
            start: i128::from(call.invoked),
            needed: !unknown,
        });
    }
    // A column that was there before and that no write sets would stay.
    let names = columns?;
    if initial.keys().any(|column| !names.contains(column)) {
        return None;
    }
    Some(place(calls, clusters, &by_image))
}

fn place(calls: &[&Call], mut clusters: Vec<Cluster>, by_image: &HashMap<Columns, usize>) -> Verdict {
    for call in calls {
        let Some(found) = call.row_read() else { continue };
        let shown = || notation::print([*call]).trim_end().to_owned();
        let Some(cluster) = by_image.get(found) else {
            return Verdict::Wrong(format!("read what no call wrote, or a part of it: {}", shown()));
        };
        let cluster = &mut clusters[*cluster];
        if let Some(write) = cluster.write
            && call.is_before(calls[write])
        {
            return Verdict::Wrong(format!("read what was written only later: {}", shown()));
        }
        cluster.finish = cluster.finish.min(i128::from(call.returned));
        cluster.start = cluster.start.max(i128::from(call.invoked));
        cluster.needed = true;
    }
    clusters.retain(|cluster| cluster.needed);
    match contradiction(&clusters) {
        None => Verdict::Right,
        Some((one, other)) => {
            let show = |cluster: &Cluster| match cluster.write {
                Some(write) => notation::print([calls[write]]).trim_end().to_owned(),
                None => "what was there before".to_owned(),
            };
            Verdict::Wrong(format!(
                "[{}] and [{}] must each come before the other",
                show(one),
                show(other)
            ))
        }
    }
}

/// Two clusters that must come before each other. At least one of such a pair is a forward zone: `finish`
/// before `start`. Forward zones must be disjoint, so that sorted ones need to be compared with their
/// neighbours only, and another cluster with at most one of them.
fn contradiction(clusters: &[Cluster]) -> Option<(&Cluster, &Cluster)> {
    let clash = |one: &Cluster, other: &Cluster| one.finish < other.start && other.finish < one.start;
    let (mut forward, other): (Vec<_>, Vec<_>) = clusters
        .iter()
        .partition(|cluster| cluster.finish < cluster.start);
    forward.sort_by_key(|cluster| cluster.finish);
    if let Some(pair) = forward.windows(2).find(|pair| clash(pair[0], pair[1])) {
        return Some((pair[0], pair[1]));
    }
    for cluster in other {
        let above = forward.partition_point(|zone| zone.finish < cluster.start);
        if let Some(zone) = above.checked_sub(1).and_then(|index| forward.get(index))
            && clash(zone, cluster)
        {
            return Some((zone, cluster));
        }
    }
    None
}
