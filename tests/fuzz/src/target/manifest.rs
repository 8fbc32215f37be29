//! The manifest: checking it, opening it, printing it.
//!
//! ```text
//! input  = how u8 | frames         how 1: the rest of the input is the whole manifest file
//!                                  how 2: the rest is the text of CURRENT, which gets a right checksum
//!                                  how 4: CURRENT is missing; 8: a marker behind each edit; 16: it is printed too
//! frame  = length u16 LE | how u8 | payload
//!                                  how: low two bits are left out of the numbers; 16: the payload is damaged; 32: states that
//!                                  all before it is durable
//! ```
//!
//! A manifest that `verify` accepts can be opened; the state is the same then, and after the roll
//! that opening does.

use std::path::Path;
use std::sync::Arc;

use basalt_engine::id::Uuid;
use basalt_engine::internals::crc32c;
use basalt_engine::internals::manifest::{Manifest, dump, verify};
use basalt_engine::internals::record::{fill_header, reserve_header};

use crate::disk::MANIFEST_ROLL_BYTES;
use crate::{disk, memory};

const DIR: &str = "/db";
const CURRENT: &str = "/db/CURRENT";
const FILE: &str = "/db/MANIFEST-0000000000000001";
const HEADER_BYTES: usize = 64;
const ALIGN_BYTES: usize = 512;
const IDENTITY: Uuid = Uuid([1; 16]);

/// A state is trees of small things; a table of a few bytes is some hundred bytes in memory.
const PER_INPUT_BYTE: usize = 64;

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let Some((&how, rest)) = input.split_first() else {
        return;
    };
    let mut current = format!("basalt-current 1 MANIFEST-0000000000000001 {IDENTITY}").into_bytes();
    let mut file = Vec::new();
    match how & 3 {
        1 => file = rest.to_vec(),
        2 => current = rest.to_vec(),
        _ => file = manifest(rest, how & 8 != 0),
    }
    let sum = crc32c(&current);
    current.extend_from_slice(format!(" {sum:08x}\n").as_bytes());
    let mut files = vec![(Path::new(FILE), file.as_slice())];
    if how & 4 == 0 {
        files.push((Path::new(CURRENT), &current));
    }
    let disk = disk::with_files(&files);
    let received = file.len() + current.len();
    let verified = memory::bounded(received, input.len() * PER_INPUT_BYTE, || {
        verify(&disk, Path::new(DIR))
    });
    if how & 16 != 0 {
        // Damage ends the print.
        let _ = dump(&disk, Path::new(FILE), &mut String::new());
    }
    let Ok(verified) = verified else {
        return;
    };
    let opened = Manifest::open(Arc::new(disk.clone()), Path::new(DIR), MANIFEST_ROLL_BYTES);
    let (_, state) = opened.expect("what is believed can be opened");
    assert_eq!(state, verified.state, "another state when it is opened");
    let again = verify(&disk, Path::new(DIR)).expect("what was opened is believed");
    assert_eq!(again.state, verified.state, "another state after the roll");
}

/// A manifest file with the frames of a compact log. The database is the one that the first payload names.
fn manifest(frames: &[u8], markers: bool) -> Vec<u8> {
    let mut file = vec![0; HEADER_BYTES];
    file[..8].copy_from_slice(b"BSLTMNFT");
    file[8..12].copy_from_slice(&1_u32.to_le_bytes());
    file[12..28].copy_from_slice(&IDENTITY.0);
    if let Some(cluster) = disk::frames(frames)
        .next()
        .and_then(|frame| frame.payload.get(2..18))
    {
        file[28..44].copy_from_slice(cluster);
    }
    file[44..52].copy_from_slice(&1_u64.to_le_bytes());
    let sum = crc32c(&file[..60]).to_le_bytes();
    file[60..64].copy_from_slice(&sum);
    let mut number = 0_u64;
    for frame in disk::frames(frames) {
        number += 1 + u64::from(frame.how & 3);
        put(&mut file, number, frame.how, frame.payload);
        if markers {
            put(&mut file, number, 32, b"");
        }
    }
    file
}

fn put(file: &mut Vec<u8>, number: u64, how: u8, payload: &[u8]) {
    let at = file.len().next_multiple_of(ALIGN_BYTES);
    file.resize(at, 0);
    reserve_header(file);
    file.extend_from_slice(payload);
    let durable = if how & 32 != 0 { at } else { HEADER_BYTES };
    fill_header(&mut file[at..], &IDENTITY, at as u64, number, durable as u64);
    if how & 16 != 0
        && let Some(last) = file.last_mut()
    {
        *last ^= 1;
    }
}
