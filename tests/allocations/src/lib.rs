//! Counts what is allocated, and who holds it, for tests that bound memory. A crate of its own, since an
//! allocator is `unsafe` by its trait and the product forbids that.
//!
//! Every block names its owner, so that it is taken from the same count on whichever thread it is freed. Counts
//! are of one thread: they miss what crosses threads.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::marker::PhantomData;
use std::pin::pin;

/// How many owners there are at one time; the next one takes the place of the first.
const PLACES: usize = 1024;

/// What goes before each block at least, and holds the place of its owner.
const PREFIX: usize = 8;

/// What one owner holds, in bytes.
struct Count {
    held: Cell<isize>,
    /// The most that was held since the last call.
    peak: Cell<isize>,
}

thread_local! {
    static COUNTS: [Count; PLACES] = const {
        [const {
            Count {
                held: Cell::new(0),
                peak: Cell::new(0),
            }
        }; PLACES]
    };
    /// Whose is what is allocated now.
    static PRESENT: Cell<u32> = const { Cell::new(0) };
    /// The place that was given out last.
    static LAST: Cell<u32> = const { Cell::new(0) };
}

/// An allocator with a count per owner. Install it as `#[global_allocator]`.
#[derive(Debug)]
pub struct Counting<A = System>(pub A);

/// Who can hold something, on the thread on which it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner(u32);

/// While it lives, what is allocated has an owner.
#[derive(Debug)]
pub struct Scope {
    before: u32,
    /// It must end on its thread.
    stays: PhantomData<*const ()>,
}

impl Owner {
    /// No owner: what it holds is not counted.
    pub const NONE: Self = Self(0);

    /// An owner that holds nothing yet.
    #[expect(clippy::new_without_default, reason = "each one is another")]
    pub fn new() -> Self {
        let place = LAST.get() % (PLACES as u32 - 1) + 1;
        LAST.set(place);
        let owner = Self(place);
        owner.count(|count| {
            count.held.set(0);
            count.peak.set(0);
        });
        owner
    }

    /// What is allocated from now on is its, until the scope ends.
    pub fn enter(self) -> Scope {
        Scope { before: PRESENT.replace(self.0), stays: PhantomData }
    }

    /// Does work, and what it allocates is its.
    pub async fn does<T>(self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        std::future::poll_fn(|context| {
            let _scope = self.enter();
            work.as_mut().poll(context)
        })
        .await
    }

    /// Bytes that it holds.
    pub fn held(self) -> usize {
        self.count(|count| count.held.get()).max(0).unsigned_abs()
    }

    /// The most bytes that it held since this was last asked.
    pub fn take_peak(self) -> usize {
        let peak = self.count(|count| count.peak.replace(count.held.get()));
        peak.max(0).unsigned_abs()
    }

    fn count<T>(self, of: impl FnOnce(&Count) -> T) -> T {
        COUNTS.with(|counts| of(&counts[self.0 as usize % PLACES]))
    }

    fn add(self, grown: usize, freed: usize) {
        if self == Self::NONE {
            return;
        }
        self.count(|count| {
            let now = count.held.get() + grown.cast_signed() - freed.cast_signed();
            count.held.set(now);
            if now > count.peak.get() {
                count.peak.set(now);
            }
        });
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        PRESENT.set(self.before);
    }
}

/// Runs `work` and returns how many bytes more than before were held at its peak.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let owner = Owner::new();
    let scope = owner.enter();
    let result = work();
    drop(scope);
    (result, owner.take_peak())
}

/// What goes before a block of this alignment.
fn prefix(align: usize) -> usize {
    align.max(PREFIX)
}

/// The layout of a block of so many bytes with what goes before it.
fn whole(size: usize, align: usize) -> Option<Layout> {
    let size = size.checked_add(prefix(align))?;
    Layout::from_size_align(size, align.max(align_of::<u32>())).ok()
}

/// Names the owner of a block before it.
///
/// # Safety
/// `base` is null, or the begin of a block of the layout that [`whole`] gives for `layout`.
unsafe fn hand_out(base: *mut u8, layout: Layout) -> *mut u8 {
    if base.is_null() {
        return base;
    }
    let owner = Owner(PRESENT.get());
    owner.add(layout.size(), 0);
    // SAFETY: the block is longer than its prefix, which holds at least 8 bytes; both are aligned for `u32`.
    unsafe {
        let block = base.add(prefix(layout.align()));
        block.cast::<u32>().sub(1).write(owner.0);
        block
    }
}

/// Whose a block is.
///
/// # Safety
/// It was handed out by [`hand_out`].
unsafe fn owner_of(block: *mut u8) -> Owner {
    // SAFETY: as there.
    Owner(unsafe { block.cast::<u32>().sub(1).read() })
}

// SAFETY: every call is passed on with the prefix added, which keeps the alignment since it is a multiple of
// it, and with the same prefix taken away when a block comes back; counting allocates nothing.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(whole) = whole(layout.size(), layout.align()) else {
            return std::ptr::null_mut();
        };
        // SAFETY: the layout is not empty.
        unsafe { hand_out(self.0.alloc(whole), layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(whole) = whole(layout.size(), layout.align()) else {
            return std::ptr::null_mut();
        };
        // SAFETY: the layout is not empty.
        unsafe { hand_out(self.0.alloc_zeroed(whole), layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let prefix = prefix(layout.align());
        // SAFETY: the block was handed out for this layout, so its prefix is before it, and the sum and the
        // alignment were found valid then.
        unsafe {
            owner_of(block).add(0, layout.size());
            let align = layout.align().max(align_of::<u32>());
            let whole = Layout::from_size_align_unchecked(layout.size() + prefix, align);
            self.0.dealloc(block.sub(prefix), whole);
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let prefix = prefix(layout.align());
        let (Some(before), Some(after)) =
            (whole(layout.size(), layout.align()), whole(size, layout.align()))
        else {
            return std::ptr::null_mut();
        };
        // SAFETY: as in `dealloc`; the prefix moves with the block.
        unsafe {
            let owner = owner_of(block);
            let base = self.0.realloc(block.sub(prefix), before, after.size());
            if base.is_null() {
                return base;
            }
            owner.add(size, layout.size());
            base.add(prefix)
        }
    }
}
