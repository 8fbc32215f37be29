//! Memory of the allocator, owned: what the chunks of an arena are made of.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Alignment of everything handed out.
pub(super) const ALIGN: usize = 8;

/// HBase's chunk size for memstores (`hbase.hregion.memstore.mslab.chunksize`), and a huge page of x86-64 and
/// AArch64: searches in a large memstore jump about in it, and with small pages most of their time would go
/// into translating addresses.
pub(super) const CHUNK_MAX_BYTES: usize = if cfg!(any(miri, loom)) { 8 << 10 } else { 2 << 20 };

/// Memory that nobody else has, given back to the allocator when dropped. What is in it is not initialised.
pub(super) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory, which is not tied to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// REQUIRES: `bytes` is not 0.
    pub(super) fn allocate(bytes: usize) -> Self {
        // Chunks of the full size lie where one huge page fits, see `CHUNK_MAX_BYTES`.
        let align = if bytes == CHUNK_MAX_BYTES { bytes } else { ALIGN };
        let layout =
            Layout::from_size_align(bytes, align).expect("a chunk is far smaller than the address space");
        assert_ne!(bytes, 0, "nobody asks for a chunk of nothing");
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout);
        };
        #[cfg(all(target_os = "linux", not(any(miri, loom))))]
        if bytes == CHUNK_MAX_BYTES {
            // SAFETY: the range was allocated above, and the advice does not change what it holds. An error
            // means that the kernel does not do huge pages; then it is slower, and nothing else.
            let _ = unsafe {
                rustix::mm::madvise(start.as_ptr().cast(), bytes, rustix::mm::Advice::LinuxHugepage)
            };
        }
        Self { start, layout }
    }

    /// Its first byte.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Bytes.
    pub(super) fn len(&self) -> usize {
        self.layout.size()
    }

    /// Marks the bytes as not initialised, so that Miri reports a read of them. Nothing in other builds.
    pub(super) fn mark_uninitialized(&mut self) {
        // As a constant it leaves nothing of this behind.
        let bytes = if cfg!(miri) { self.len() } else { 0 };
        for offset in 0..bytes {
            // SAFETY: the byte is inside the memory, which is ours alone; any value of it is allowed.
            unsafe {
                let byte = self.start.add(offset).cast::<MaybeUninit<u8>>();
                byte.write(MaybeUninit::uninit());
            }
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
