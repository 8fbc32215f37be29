//! For people: the content of a segment, and whether a log is intact.

use std::io::Write;
use std::path::Path;

use crate::cell::Cell;
use crate::fs::Vfs;
use crate::record::{FRAME_HEADER_BYTES, FrameHeader, Mark};
use crate::{Error, Result};

use super::reader::{Payload, read_file, walk};
use super::segment::SegmentHeader;

/// Prints the segment `path`, one line for its header, one per frame and, if `cells`, one per cell;
/// then how it ends. Damage is printed; it is an error only if the file is not readable at all.
pub fn dump(vfs: &dyn Vfs, path: &Path, cells: bool, out: &mut dyn Write) -> Result<()> {
    let bytes = read_file(vfs, path)?;
    let header = SegmentHeader::decode(&bytes).map_err(|bad| bad.into_error(path))?;
    let printed = |written: std::io::Result<()>| written.map_err(|e| Error::io("printing", path, e));
    printed(writeln!(
        out,
        "WAL segment {} uuid {} first sequence id {}",
        header.number, header.uuid, header.first_seq
    ))?;
    if header.predecessor.bytes > 0 {
        let before = header.predecessor;
        printed(writeln!(
            out,
            "predecessor {} bytes {} chain {:08x}",
            before.uuid, before.bytes, before.chain
        ))?;
    }
    let walked = walk(&bytes, header, path, &mut |at, frame, payload| {
        printed(print_frame(out, cells, at, frame, payload))
    })?;
    printed(match walked.broken {
        Some(what) => writeln!(out, "broken at {}: {what}", walked.end),
        None if walked.sealed => writeln!(out, "sealed at {} chain {:08x}", walked.end, walked.chain),
        None => writeln!(out, "open, {} of {} bytes used", walked.end, bytes.len()),
    })
}

fn print_frame(
    out: &mut dyn Write,
    cells: bool,
    at: usize,
    frame: &FrameHeader,
    payload: Payload<'_>,
) -> std::io::Result<()> {
    let kind = match &payload {
        Payload::Edits(_) => "edits",
        Payload::Marker => "marker",
        Payload::Seal => "seal",
    };
    let bytes = FRAME_HEADER_BYTES + frame.payload_len as usize;
    let (first, durable) = (frame.first_seq, frame.durable_upto);
    write!(
        out,
        "{at}: {kind} bytes {bytes} first sequence id {first} durable up to {durable}"
    )?;
    let Payload::Edits(edits) = payload else {
        return writeln!(out);
    };
    match edits.write_time_ms {
        Some(time_ms) => writeln!(out, " written at {time_ms} ms")?,
        None => writeln!(out)?,
    }
    for entry in edits.entries {
        let (edit, origin) = match entry {
            Ok(entry) => (entry.edit, entry.origin),
            Err(what) => return writeln!(out, "  malformed: {what}"),
        };
        let (region, first, rows) = (edit.region(), edit.first_seq(), edit.rows());
        writeln!(out, "  region {region} sequence id {first} rows {rows}")?;
        for cluster in origin.clusters() {
            writeln!(out, "    has passed cluster {cluster}")?;
        }
        let mut rest = edit;
        for cell in rest.by_ref() {
            match cell {
                Ok((_, cell)) if cells => print_cell(out, &cell)?,
                Ok(_) => {}
                Err(what) => return writeln!(out, "    malformed: {what}"),
            }
        }
        for (nonce, applied_ms) in rest.nonces() {
            match Mark::of(nonce) {
                Some(Mark { copy, next }) => writeln!(out, "    copy {copy} has followed up to row {next}")?,
                None => writeln!(out, "    nonce {nonce} of {applied_ms} ms")?,
            }
        }
    }
    Ok(())
}

fn print_cell(out: &mut dyn Write, cell: &Cell<'_>) -> std::io::Result<()> {
    let key = cell.key;
    writeln!(
        out,
        "    {} {}/{}:{}/{}/{:?} value {} bytes, tags {} bytes",
        cell.seq,
        key.row().escape_ascii(),
        key.family().escape_ascii(),
        key.qualifier().escape_ascii(),
        key.timestamp(),
        key.cell_type(),
        cell.value.len(),
        cell.tags.len()
    )
}
