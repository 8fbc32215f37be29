//! The limit of memory: refused input has taken little, and accepted input at most the stated
//! amount.
//!
//! Counted are the bytes that Rust code asks the allocator for, at the moment of most of them,
//! beyond those allocated before. (Zstandard's own contexts, which are C and made once for each
//! thread, are not seen.) The count is the process's: measure in one thread, while the others wait.

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Memory that handling an input may take whatever its size, in bytes.
pub const BASE_BYTES: usize = 64 << 10;

/// Memory that handling an input may take on top for each byte of it.
pub const PER_INPUT_BYTE: usize = 2;

/// Additional bytes that an accepted message may decode to
/// ([`basalt_idl::wire::DECODED_BYTES_BASE`]).
pub const DECODED_BYTES: usize = basalt_idl::wire::DECODED_BYTES_BASE;

/// The result of `work`, and its peak of allocated memory in bytes.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let result = work();
    (result, ALLOCATOR.peak_usage().saturating_sub(before))
}

/// The limit for an input of `received` bytes.
pub fn limit(received: usize) -> usize {
    received * PER_INPUT_BYTE + BASE_BYTES
}

/// Runs `handle`, which reads an input of `received` bytes. Panics when a refusal took more than [`limit`]
/// and `beside`, or an acceptance more than [`DECODED_BYTES`] above that.
pub fn bounded<T, E>(received: usize, beside: usize, handle: impl Fn() -> Result<T, E>) -> Result<T, E> {
    let refused = limit(received) + beside;
    let allowed = |result: &Result<T, E>| refused + if result.is_ok() { DECODED_BYTES } else { 0 };
    checked(received, allowed, handle)
}

/// Runs `handle`, which reads an input of `received` bytes. Panics when it took more than `allowed` bytes.
pub fn within<T>(received: usize, allowed: usize, handle: impl Fn() -> T) -> T {
    checked(received, |_| allowed, handle)
}

/// A limit that seems to be broken is checked a second time: memory that is allocated once for the
/// whole process is not the input's.
fn checked<T>(received: usize, allowed: impl Fn(&T) -> usize, handle: impl Fn() -> T) -> T {
    let (result, peak) = peak_of(&handle);
    if peak <= allowed(&result) {
        return result;
    }
    drop(result);
    let (again, peak) = peak_of(&handle);
    let allowed = allowed(&again);
    assert!(
        peak <= allowed,
        "an input of {received} bytes took {peak} bytes of memory; {allowed} are allowed"
    );
    again
}
