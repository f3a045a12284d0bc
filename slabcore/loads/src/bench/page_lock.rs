//! A lock of 72 bytes for each page table: in the class of 96 bytes, which others use
//! too, and in a cache of its own.
//!
//! Source of truth: "create a separate slab for page->ptl allocation" (2013):
//! with lock debugging a spinlock_t has 72 bytes and came from kmalloc-96. Each
//! round touches new pages and allocates a lock for each, as a fault does.

use super::alone::{is_stamped, per_op, stamp};
use super::{Done, Figure};
use crate::{Contender, Heap, Pool, rss};
use std::cell::RefCell;

/// Bytes of a lock, and of what else lives in its class.
const LOCK: usize = 72;
const OTHER: usize = 90;
/// Pages of a round; every fourth allocation of the class is something else.
const PAGES: usize = 8192;
const ROUNDS: usize = 6;

/// New pages, touched one by one.
struct Pages(*mut u8);

impl Pages {
    fn map() -> Option<Self> {
        // SAFETY: a new private mapping.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGES * 4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        (at != libc::MAP_FAILED).then_some(Self(at.cast()))
    }

    fn touch(&self, page: usize) {
        // SAFETY: `page` is below PAGES.
        unsafe { self.0.add(page * 4096).write_volatile(1) };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: our own mapping, to which no reference is.
        unsafe { libc::munmap(self.0.cast(), PAGES * 4096) };
    }
}

/// Faults, with a lock each from `lock`; gives nanoseconds for a fault and bytes for a lock.
fn faults(
    mut lock: impl FnMut() -> *mut u8,
    mut unlock: impl FnMut(*mut u8),
    mut other: impl FnMut(),
    mut end: impl FnMut(),
) -> Option<(f64, f64, u64)> {
    let mut times = Vec::new();
    let mut wrong = 0;
    let mut held = None;
    // What is made with the first object is not the locks'.
    unlock(lock());
    // What it is kept in is there from the start.
    let mut locks = vec![std::ptr::dangling_mut(); PAGES];
    for _ in 0..ROUNDS {
        locks.clear();
        let pages = Pages::map()?;
        let before = rss::now()?;
        times.push(per_op(PAGES, || {
            for page in 0..PAGES {
                pages.touch(page);
                let object = lock();
                // SAFETY: allocated just now, of 72 bytes.
                unsafe { stamp(object, page as u64) };
                locks.push(object);
                if page % 4 == 0 {
                    other();
                }
            }
        }));
        // Later rounds find what this one leaves.
        let now = rss::now()?.saturating_sub(before + (PAGES * 4096) as u64);
        held.get_or_insert(now);
        for (object, page) in locks.iter().copied().zip(0..) {
            // SAFETY: in use until it is freed below.
            wrong += u64::from(!unsafe { is_stamped(object, page) });
            unlock(object);
        }
        end();
    }
    let time = crate::figure::median(&times)?;
    Some((time, held? as f64 / PAGES as f64, wrong))
}

pub(super) fn run<C: Contender>(contender: &C) -> Option<Done> {
    let heap = contender.heap();
    // Others of the class, which go at the end of each round.
    let others = RefCell::new(Vec::with_capacity(PAGES));
    let other = || others.borrow_mut().push(heap.alloc(OTHER));
    let end = || {
        for object in others.borrow_mut().drain(..) {
            // SAFETY: allocated with this size, freed once.
            unsafe { heap.free(object, OTHER) };
        }
    };
    // SAFETY: allocated with this size, freed once.
    let unlock = |object| unsafe { heap.free(object, LOCK) };
    let shared = faults(|| heap.alloc(LOCK), unlock, other, end)?;
    let pool = contender.pool(LOCK)?;
    // SAFETY: as above.
    let unlock = |object| unsafe { pool.free(object) };
    let own = faults(|| pool.alloc(), unlock, other, end)?;
    let bytes = |name, value| Figure {
        name,
        unit: "bytes",
        value,
    };
    let wrong = shared.2 + own.2;
    Some(Done {
        figures: vec![
            Figure::ns("fault-shared", shared.0),
            Figure::ns("fault-own", own.0),
            bytes("held-shared", shared.1),
            bytes("held-own", own.1),
        ],
        counters: None,
        wrong: (wrong > 0).then(|| format!("{wrong} locks lost their stamps")),
    })
}
