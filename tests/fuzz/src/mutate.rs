//! Damage that follows from a seed, for tests that run the same everywhere. libFuzzer has mutations of its
//! own.

use basalt_engine::fs::sim::SplitMix64;

/// Numbers that stand at edges: of signs, of sizes, of varints.
const EDGES: [u8; 12] = [0, 1, 2, 0x0f, 0x10, 0x7f, 0x80, 0x81, 0xf0, 0xfe, 0xff, b'\''];

/// `input`, damaged in one to six places. `other` is an input to take pieces from.
#[must_use]
pub fn mutated(input: &[u8], other: &[u8], longest: usize, dice: &mut SplitMix64) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=dice.below(6) {
        mutate_once(&mut bytes, other, dice);
    }
    bytes.truncate(longest);
    bytes
}

fn mutate_once(bytes: &mut Vec<u8>, other: &[u8], dice: &mut SplitMix64) {
    let edge = EDGES[dice.below(EDGES.len() as u64) as usize];
    if bytes.is_empty() {
        bytes.push(edge);
        return;
    }
    let at = dice.below(bytes.len() as u64) as usize;
    let some = 1 + dice.below(8) as usize;
    let end = (at + some).min(bytes.len());
    match dice.below(9) {
        0 => bytes[at] ^= 1 << dice.below(8),
        1 => bytes[at] = edge,
        2 => bytes[at] = bytes[at].wrapping_add(if dice.coin() { 1 } else { 255 }),
        3 => bytes[at..end].fill(edge),
        4 => drop(bytes.drain(at..end)),
        5 => drop(bytes.splice(at..at, std::iter::repeat_n(edge, some))),
        6 => {
            let copied = bytes[at..end].to_vec();
            drop(bytes.splice(at..at, copied));
        }
        7 => bytes.truncate(at),
        _ if !other.is_empty() => {
            let from = dice.below(other.len() as u64) as usize;
            let to = (from + 1 + dice.below(32) as usize).min(other.len());
            drop(bytes.splice(at..end, other[from..to].iter().copied()));
        }
        _ => bytes.push(edge),
    }
}
