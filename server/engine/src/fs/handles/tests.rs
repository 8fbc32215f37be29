//! The handle cache on a simulated disk that counts descriptors.

use super::*;
use crate::fs::sim::{OpKind, SimFs, SimOptions, SplitMix64, Times};

/// A disk with this many files; a file's content is its number.
fn disk(files: usize) -> SimFs {
    let disk = SimFs::new(1, SimOptions::default());
    for number in 0..files {
        let file = disk.open(&path(number), Open::CreateNew).unwrap();
        file.write_at(&number.to_le_bytes(), 0).unwrap();
    }
    disk.take_most_descriptors();
    disk
}

fn path(number: usize) -> PathBuf {
    PathBuf::from(format!("file-{number}"))
}

fn cache(disk: &SimFs, limit: usize) -> Arc<HandleCache> {
    HandleCache::new(Arc::new(disk.clone()), limit)
}

fn open(cache: &Arc<HandleCache>, number: usize) -> Arc<dyn File> {
    cache.open(&path(number), Open::Read).unwrap()
}

fn read(file: &dyn File) -> io::Result<usize> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(usize::from_le_bytes(bytes))
}

/// Opens the file of a number as a [`CachedFile`], whose methods a [`File`] does not have.
fn cached(cache: &Arc<HandleCache>, number: usize) -> Arc<CachedFile> {
    let _file = open(cache, number);
    let queue = cache.queue.lock();
    queue.back().unwrap().upgrade().unwrap()
}

#[test]
fn any_number_of_files_is_read_with_few_descriptors() {
    let disk = disk(20);
    let cache = cache(&disk, 3);
    let files: Vec<_> = (0..20).map(|number| open(&cache, number)).collect();
    for round in 0..3 {
        for (number, file) in files.iter().enumerate() {
            assert_eq!(read(&**file).unwrap(), number, "round {round}");
            assert_eq!(cache.usage().open, disk.descriptors());
        }
    }
    assert_eq!(disk.take_most_descriptors(), 3);
    assert_eq!(
        cache.usage(),
        HandleUsage {
            open: 3,
            limit: 3,
            opens: 80,
            evictions: 77
        }
    );
    drop(files);
    assert_eq!((cache.usage().open, disk.descriptors()), (0, 0));
}

/// A handle that was used since the last eviction outlives colder ones that were opened later.
#[test]
fn a_handle_that_is_used_stays() {
    let disk = disk(10);
    let cache = cache(&disk, 2);
    let hot = open(&cache, 0);
    let cold: Vec<_> = (1..10)
        .map(|number| {
            read(&*hot).unwrap();
            open(&cache, number)
        })
        .collect();
    assert_eq!(cache.usage().opens, 10, "the hot file was opened once");
    assert_eq!(read(&*cold[0]).unwrap(), 1);
    assert_eq!(cache.usage().opens, 11);
}

/// With every handle in use, a read exceeds the limit instead of waiting; the next one returns to
/// it.
#[test]
fn a_handle_in_use_is_counted_and_not_closed() {
    let disk = disk(4);
    let cache = cache(&disk, 1);
    let (first, second) = (cached(&cache, 0), cached(&cache, 1));
    let (one, two) = (first.handle().unwrap(), second.handle().unwrap());
    assert_eq!((cache.usage().open, disk.descriptors()), (2, 2));
    let third = open(&cache, 2);
    assert_eq!((cache.usage().open, disk.descriptors()), (3, 3));
    assert_eq!((read(&*one).unwrap(), read(&*two).unwrap()), (0, 1));
    drop((one, two));
    let _fourth = open(&cache, 3);
    assert_eq!((cache.usage().open, disk.descriptors()), (1, 1));
    assert_eq!((read(&*first).unwrap(), read(&*third).unwrap()), (0, 2));
}

#[test]
fn files_being_written_count_and_are_not_closed() {
    let disk = disk(2);
    let cache = cache(&disk, 2);
    let readers = [open(&cache, 0), open(&cache, 1)];
    let written = [7, 8].map(|number| cache.create(&path(number)).unwrap());
    assert_eq!((cache.usage().open, disk.descriptors()), (2, 2));
    assert_eq!(readers.map(|reader| read(&*reader).unwrap()), [0, 1]);
    for file in &written {
        file.write_at(b"12345678", 0).unwrap();
        assert_eq!(file.len().unwrap(), 8);
    }
    drop(written);
    assert_eq!((cache.usage().open, disk.descriptors()), (0, 0));
    let refused = cache.create(&path(7)).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(cache.usage().open, 0, "what failed to open takes no descriptor");
}

/// A failed reopening fails the read that needed it and no later one.
#[test]
fn a_failed_reopening_is_one_reads_error() {
    let disk = disk(2);
    let cache = cache(&disk, 1);
    let (first, _second) = (open(&cache, 0), open(&cache, 1));
    disk.fail(OpKind::Open, "file-0", Errno::MFILE, Times::Once);
    let error = read(&*first).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::MFILE));
    assert_eq!(cache.usage().open, 0);
    assert_eq!(read(&*first).unwrap(), 0);
}

#[test]
fn a_cached_file_is_read_only() {
    let disk = disk(1);
    let file = open(&cache(&disk, 1), 0);
    let refusals = [
        file.write_at(b"x", 0),
        file.sync_data(),
        file.sync_all(),
        file.allocate(9),
        file.set_len(9),
    ];
    for refused in refusals {
        assert_eq!(Errno::from_io_error(&refused.unwrap_err()), Some(Errno::BADF));
    }
    assert_eq!((file.len().unwrap(), read(&*file).unwrap()), (8, 0));
}

/// Advice for the whole file outlives the handle; advice for a range needs no handle.
#[test]
fn advice_for_the_whole_file_is_kept() {
    let disk = disk(2);
    let cache = cache(&disk, 1);
    let file = cached(&cache, 0);
    file.advise(0, 0, Advice::Random);
    let other = open(&cache, 1);
    file.advise(0, 4, Advice::WillNeed);
    assert!(file.slot.lock().handle.is_none());
    assert_eq!(file.slot.lock().advice, Some(Advice::Random));
    drop(other);
}

#[test]
fn files_that_are_gone_leave_the_queue() {
    let disk = disk(1);
    let cache = cache(&disk, 10);
    for _ in 0..1_000 {
        open(&cache, 0);
        assert!(cache.queue.lock().len() <= STALE_ENTRIES + 2);
    }
    assert_eq!(cache.usage().opens, 1_000);
}

/// More threads than handles, in a process limited to one descriptor per thread: no read fails.
#[test]
fn threads_never_need_more_than_one_descriptor_each() {
    const THREADS: usize = 8;
    let disk = disk(40);
    let cache = cache(&disk, 3);
    let files: Vec<_> = (0..40).map(|number| open(&cache, number)).collect();
    disk.limit_descriptors(Some(THREADS));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let files = &files;
            scope.spawn(move || {
                let mut dice = SplitMix64::new(thread as u64);
                for _ in 0..2_000 {
                    let number = dice.below(40) as usize;
                    assert_eq!(read(&*files[number]).unwrap(), number);
                }
            });
        }
    });
    assert!(disk.take_most_descriptors() <= THREADS);
    assert_eq!(cache.usage().open, disk.descriptors());
    drop(files);
    assert_eq!((cache.usage().open, disk.descriptors()), (0, 0));
}
