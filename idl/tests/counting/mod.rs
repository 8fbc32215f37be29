//! An allocator that counts the memory of the current thread, so that a test can state a peak.

#![allow(
    unsafe_code,
    reason = "an allocator cannot be written without; it only counts and passes on"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes held, counted from the start of the measurement. Negative when older memory is freed.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator with a counter in front.
#[derive(Debug)]
pub(crate) struct Counting;

fn count(bytes: isize) {
    // A thread that ends may free after its counters are gone; that memory is of no interest.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        PEAK.with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call goes to `System` unchanged; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are those of `System::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `ptr` came from `System` with this layout, by the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// Runs `work` and returns its peak of allocated bytes, beyond those allocated before.
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    HELD.set(0);
    PEAK.set(0);
    let value = work();
    (value, usize::try_from(PEAK.get()).unwrap_or_default())
}
