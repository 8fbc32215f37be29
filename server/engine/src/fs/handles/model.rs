//! The handle cache under loom: reads concurrent with evictions.

use loom::thread;

use super::*;
use crate::fs::sim::{SimFs, SimOptions};
use crate::sync::check;

fn read(file: &dyn File) -> u8 {
    let mut byte = [0];
    file.read_exact_at(&mut byte, 0).unwrap();
    byte[0]
}

/// Three threads read two files with one handle: each reads its own file, and afterwards the count
/// of descriptors is that of the disk.
#[test]
fn loom_reads_beside_evictions() {
    check(2, || {
        let disk = SimFs::new(1, SimOptions::default());
        let cache = HandleCache::new(Arc::new(disk.clone()), 1);
        let [first, second] = ["0", "1"].map(|name| {
            let written = disk.open(Path::new(name), Open::CreateNew).unwrap();
            written.write_at(name.as_bytes(), 0).unwrap();
            drop(written);
            cache.open(Path::new(name), Open::Read).unwrap()
        });
        let readers = [(&first, b'0'), (&second, b'1')].map(|(file, expected)| {
            let file = Arc::clone(file);
            thread::spawn(move || assert_eq!(read(&*file), expected))
        });
        assert_eq!(read(&*first), b'0');
        for reader in readers {
            reader.join().unwrap();
        }
        assert!(disk.take_most_descriptors() <= 3);
        assert_eq!(cache.usage().open, disk.descriptors());
        drop((first, second));
        assert_eq!((cache.usage().open, disk.descriptors()), (0, 0));
    });
}
