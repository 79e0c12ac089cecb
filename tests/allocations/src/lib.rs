//! Counts what a thread allocates, for tests that bound memory. A crate of its own, since an
//! allocator is `unsafe` by its trait and the product forbids that.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes held, less those that other threads freed.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// The most that were held.
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with a count per thread. Install it as `#[global_allocator]`.
#[derive(Debug)]
pub struct Counting;

/// Runs `work` and tells how many bytes more than before were held at its peak.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    let most = PEAK.get() - before;
    (result, most.unsigned_abs())
}

fn count(grown: usize, freed: usize) {
    // A thread that ends has no counts any more.
    let _ended = HELD.try_with(|held| {
        let now = held.get() + grown.cast_signed() - freed.cast_signed();
        held.set(now);
        let _ended = PEAK.try_with(|peak| peak.set(peak.get().max(now)));
    });
}

// SAFETY: every call is passed on to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
