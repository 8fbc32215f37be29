//! The allocator: jemalloc, or the system's without the feature `jemalloc` (ThreadSanitizer has its own, and
//! so have tests that count).
//!
//! Either way, large allocations go back to the system when they are freed. Memstore chunks, blocks
//! in transit and replies are large, and freed memory must not count against a budget
//! (`tests/e2e/tests/memory.rs`).
//!
//! - jemalloc: allocations of 1 MiB and more (`oversize_threshold`; the default is 8 MiB) come from
//!   an arena of their own, which retains nothing. Memory retained by other arenas goes back little
//!   by little within ten seconds (`dirty_decay_ms`, its default), as long as the program
//!   allocates.
//! - glibc takes allocations of 128 KiB and more from the system one by one, and returns each when
//!   it is freed. But the first such free raises that threshold, up to 32 MiB (mallopt(3),
//!   `M_MMAP_THRESHOLD`): from then on they come from heaps, one for each thread or so, that retain
//!   freed memory. Setting the threshold explicitly keeps it fixed.
//! - Other allocators have other ways; there nothing is done.
//!
//! The gain from jemalloc: docs/decisions/0009-where-work-runs.md.
#![allow(unsafe_code)]

#[cfg(all(feature = "jemalloc", not(target_env = "msvc"), not(test)))]
mod jemalloc {
    #[global_allocator]
    static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

    /// jemalloc's settings, which it reads before `main`.
    // SAFETY: the name is the one under which jemalloc of this crate (prefix `_rjem_`) looks for a pointer to
    // its settings, a C string; a reference to an array is such a pointer, the array ends with a zero, and
    // nothing else has that name.
    #[unsafe(export_name = "_rjem_malloc_conf")]
    static SETTINGS: &[u8; 27] = b"oversize_threshold:1048576\0";
}

/// Pieces of this size and more go back to the system when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
const MMAP_THRESHOLD_BYTES: i32 = 128 << 10;

/// Fixes glibc's threshold: for libraries in C, and for all allocations without jemalloc. Returns
/// whether there was one to fix. Called once, before there are threads.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
pub(crate) fn give_back_large_pieces() -> bool {
    // SAFETY: `mallopt` takes two numbers and changes a parameter of the allocator; it may be called at any
    // time, and no other thread runs yet that could call it, too.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES) == 1 }
}

/// Nothing to keep.
#[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
pub(crate) fn give_back_large_pieces() -> bool {
    true
}
