//! The heap of the process: made at the first allocation, and what else is done once.
//!
//! Nothing is locked while it is made, so that a fork finds no lock held and an allocation from
//! inside (the C library allocates for a handler of forks) makes one of its own: who is first to
//! publish wins, the other heaps go.

use crate::environment::{self, Settings, TABLE, Variable};
use crate::output::{say, set_log};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use slabcore::heap::Heap;

static HEAP: AtomicPtr<Heap> = AtomicPtr::new(ptr::from_ref(Heap::nothing()).cast_mut());

/// The heap as it is: one that gives nothing and knows nothing before the first allocation.
#[inline(always)]
pub(crate) fn heap_now() -> &'static Heap {
    // SAFETY: a published heap lives as long as the process.
    unsafe { &*HEAP.load(Ordering::Acquire) }
}

/// The heap; the empty one only if the system refuses the memory for another.
#[inline]
pub(crate) fn heap() -> &'static Heap {
    let now = heap_now();
    if now.engine().is_some() {
        return now;
    }
    make()
}

#[cold]
fn make() -> &'static Heap {
    static SAID: AtomicBool = AtomicBool::new(false);
    let aloud = !SAID.swap(true, Ordering::AcqRel);
    let mut settings = environment::of_process(aloud);
    settings.engine.own_code = own_code();
    if let Some(path) = settings.log {
        set_log(path);
    }
    let Some(made) = Heap::make(settings.engine) else {
        if aloud {
            say(format_args!(
                "the system refuses addresses for a heap (about 80 MiB): allocations fail"
            ));
        }
        return heap_now();
    };
    let nothing = ptr::from_ref(Heap::nothing()).cast_mut();
    let made_at = ptr::from_ref(made).cast_mut();
    let order = (Ordering::AcqRel, Ordering::Acquire);
    match HEAP.compare_exchange(nothing, made_at, order.0, order.1) {
        Ok(_) => begin(made, &settings),
        // SAFETY: only this call knows it.
        Err(_) => unsafe { made.unmake() },
    }
    heap_now()
}

/// Runs once, when the heap has been published: the place for what others are to see of it.
fn begin(heap: &'static Heap, settings: &Settings) {
    if settings.engine.sample_every > 0
        && let Some(engine) = heap.engine()
        && !engine.catch_guard_faults()
    {
        say(format_args!(
            "the system refuses a handler of SIGSEGV: accesses to guard pages are not explained"
        ));
    }
    if settings.help {
        for Variable {
            name,
            values,
            default,
            what,
            ..
        } in TABLE
        {
            say(format_args!("{name}: {what} ({values}; {default})"));
        }
    }
}

/// First address and end of this library's code.
fn own_code() -> (usize, usize) {
    unsafe extern "C" {
        static __ehdr_start: u8;
        static etext: u8;
    }
    // Addresses only: the linker sets them, nothing is read there.
    (
        (&raw const __ehdr_start) as usize,
        (&raw const etext) as usize,
    )
}

/// Has the heap made when the library is loaded, so that complaints do not depend on allocations.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        heap();
    }
    at_load
};
