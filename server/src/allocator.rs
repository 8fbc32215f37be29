//! What the system's allocator does with large pieces of memory: it gives them back when they are freed.
//!
//! glibc takes pieces of 128 KiB and more from the system one by one, and gives each back when it is freed. But the first such piece that is
//! freed raises that mark, up to 32 MiB (mallopt(3), `M_MMAP_THRESHOLD`): from then on the pieces of memstores, blocks on their way and
//! answers come from heaps, one for each thread or so, that keep what is freed. A server that may use 128 MiB then holds 270 MiB
//! (`tests/tests/memory.rs`). Setting the mark keeps it where it is.
//!
//! Called once, before there are threads. Other allocators have other ways; there nothing is done.
#![allow(unsafe_code)]

/// Pieces of this size and more go back to the system when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
const MMAP_THRESHOLD_BYTES: i32 = 128 << 10;

/// Keeps the mark where it is. Tells whether there was one to keep.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
pub(crate) fn give_back_large_pieces() -> bool {
    // SAFETY: `mallopt` takes two numbers and changes a parameter of the allocator; it may be called at any time, and no other thread
    // runs yet that could call it, too.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES) == 1 }
}

/// Nothing to keep.
#[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
pub(crate) fn give_back_large_pieces() -> bool {
    true
}
