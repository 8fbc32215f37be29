//! Measures how fast one thread, and several, commit edits of 150 bytes, with and without
//! fdatasync. Compares the number of syncs with a bare loop of writes and syncs on a preallocated
//! file, which is the disk's limit.
//!
//! `cargo run --release -p basalt-engine --example wal_throughput -- [DIR]`; the directory (default: a
//! temporary one) should be on the disk that is to be measured.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use basalt_engine::Result;
use basalt_engine::cell::CellType;
use basalt_engine::clock::SystemClock;
use basalt_engine::fs::{Open, RealFs, Vfs};
use basalt_engine::id::{RegionId, SeqId};
use basalt_engine::internals::record::EditBuilder;
use basalt_engine::internals::wal::{Logging, Wal, WalOptions};
use basalt_engine::metrics::{Counters, NoListener};
use basalt_engine::options::WalSync;

fn main() -> Result<()> {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let base = std::env::args_os()
        .nth(1)
        .map_or(temporary.path().to_path_buf(), PathBuf::from);
    for (sync, threads, edits) in [
        (WalSync::Os, 1, 2_000_000),
        (WalSync::Os, 4, 1_000_000),
        (WalSync::Fsync, 1, 5_000),
        (WalSync::Fsync, 16, 50_000),
        (WalSync::Fsync, 64, 200_000),
    ] {
        run(base.join(format!("{sync:?}-{threads}")), sync, threads, edits)?;
    }
    for bytes in [150, 150 * 64] {
        bare(&base.join("bare"), bytes, 5_000);
    }
    Ok(())
}

/// Writes and syncs one after the other, without a log.
fn bare(path: &Path, bytes: usize, syncs: u64) {
    let vfs = RealFs;
    let file = vfs.open(path, Open::CreateNew).expect("a file");
    file.allocate(bytes as u64 * syncs).expect("room");
    file.sync_all().expect("a sync");
    let begun = Instant::now();
    for number in 0..syncs {
        file.write_at(&vec![7; bytes], number * bytes as u64)
            .expect("a write");
        file.sync_data().expect("a sync");
    }
    println!(
        "bare: {:.0} syncs/s of {bytes} bytes",
        syncs as f64 / begun.elapsed().as_secs_f64()
    );
    std::fs::remove_file(path).expect("removing the file");
}

fn run(dir: PathBuf, sync: WalSync, threads: u64, edits: u64) -> Result<()> {
    std::fs::create_dir_all(&dir).expect("a directory for the segments");
    let counters = Arc::new(Counters::default());
    let options = WalOptions {
        dir: dir.clone(),
        segment_bytes: 64 << 20,
        sync,
        clock: Arc::new(SystemClock::new()),
        commit_thread: false,
    };
    let vfs = Arc::new(RealFs);
    let wal = Wal::create(
        vfs,
        options,
        0,
        SeqId::ZERO,
        Arc::clone(&counters),
        Arc::new(NoListener),
    )?;
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut builder = EditBuilder::new();
                for number in 0..edits / threads {
                    builder.begin(RegionId(1));
                    builder.begin_row();
                    let row = number.to_be_bytes();
                    builder.cell_of(&row, b"f", b"qualifier", 1, CellType::Put, &[7; 110], b"");
                    let edit = builder.finish();
                    let mut reserved = wal.reserve(1, edit.len() as u64).expect("room");
                    let appended = wal
                        .append(&mut reserved, edit, 1, &[], Logging::Sync)
                        .expect("append");
                    appended.applied().wait().expect("commit");
                }
            });
        }
    });
    let took = begun.elapsed().as_secs_f64();
    println!(
        "{sync:?}, {threads} threads: {:.0} edits/s, {:.0} syncs/s, {:.1} edits/group, {} bytes/edit",
        edits as f64 / took,
        counters.wal_syncs.get() as f64 / took,
        edits as f64 / counters.wal_groups.get() as f64,
        counters.wal_bytes.get() / edits,
    );
    wal.close()?;
    std::fs::remove_dir_all(dir).expect("removing the segments");
    Ok(())
}
