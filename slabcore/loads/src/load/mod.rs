//! The loads: what each does, in which unit it is told, and what the engine should reach.

mod alone;
mod larson;
mod memory;
mod mstress;
mod pass;
mod together;

use crate::contender::Visit;
use crate::{Contender, Heap, Pool};

/// What a load does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Allocate and free one object, again and again (slab_test 2).
    Pair,
    /// Allocate 10,000 objects, then free them in the same order (slab_test 1).
    Batch,
    /// Replace random ones of 100,000 live objects.
    Churn,
    /// 250 objects, in runs of so many, by the bulk functions.
    Bulk(usize),
    /// The same by the functions for one object.
    Loop(usize),
    /// Two threads at a time: 10,000 allocations, then 10,000 frees.
    Concurrent,
    /// One thread allocates 10,000 objects, another frees them; the frees.
    Remote,
    /// One thread allocates, another frees, one object at a time through a ring.
    Stream,
    /// So many pairs of an allocating and a freeing thread, 4096 objects at a time.
    Xmalloc(usize),
    /// Two threads replace random objects of 8 to 1000 bytes and hand them to new threads.
    Larson,
    /// Two threads, many sizes, half of it kept for long, a quarter exchanged; stamps checked.
    Mstress,
    /// Memory held for each live byte after a load that leaves holes.
    Held,
    /// The most memory while one thread allocates what another frees, in turns of 200,000.
    PeakStream,
    /// Memory that is still held some seconds after everything was freed.
    After,
}

/// One line of the comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// What it does.
    pub kind: Kind,
    /// Bytes of its objects; 0 for those of many sizes.
    pub size: usize,
    /// What the engine may need, as a share of what the best peer needs.
    pub target: f64,
}

const fn load(kind: Kind, size: usize, target: f64) -> Load {
    Load { kind, size, target }
}

/// All loads, in the order of the table.
pub const LOADS: &[Load] = &[
    load(Kind::Pair, 8, 0.65),
    load(Kind::Pair, 16, 0.65),
    load(Kind::Pair, 64, 0.65),
    load(Kind::Pair, 96, 0.65),
    load(Kind::Pair, 256, 0.65),
    load(Kind::Pair, 1024, 0.65),
    load(Kind::Pair, 4096, 0.65),
    load(Kind::Pair, 8192, 0.65),
    load(Kind::Pair, 16384, 0.65),
    load(Kind::Batch, 64, 1.25),
    load(Kind::Batch, 256, 1.0),
    load(Kind::Batch, 1024, 1.0),
    load(Kind::Churn, 64, 1.0),
    load(Kind::Churn, 256, 1.0),
    load(Kind::Bulk(16), 256, 1.0),
    load(Kind::Loop(16), 256, 1.0),
    load(Kind::Bulk(250), 256, 1.0),
    load(Kind::Loop(250), 256, 1.0),
    load(Kind::Concurrent, 64, 1.2),
    load(Kind::Concurrent, 256, 1.2),
    load(Kind::Remote, 64, 1.0),
    load(Kind::Remote, 256, 1.0),
    load(Kind::Stream, 64, 1.0),
    load(Kind::Stream, 256, 1.0),
    // 0.7 of rpmalloc's rate, which is not linked in: it was 1.34 times that of the best here.
    load(Kind::Xmalloc(1), 64, 1.07),
    load(Kind::Xmalloc(2), 64, 1.07),
    load(Kind::Larson, 0, 1.0),
    load(Kind::Mstress, 0, 1.0),
    load(Kind::Held, 0, 1.0),
    load(Kind::PeakStream, 256, 1.0),
    load(Kind::After, 0, 1.0),
];

impl Load {
    /// The name, as a command takes it.
    pub fn name(self) -> String {
        let size = self.size;
        match self.kind {
            Kind::Pair => format!("pair/{size}"),
            Kind::Batch => format!("batch/{size}"),
            Kind::Churn => format!("churn/{size}"),
            Kind::Bulk(n) => format!("bulk{n}/{size}"),
            Kind::Loop(n) => format!("loop{n}/{size}"),
            Kind::Concurrent => format!("concurrent/{size}"),
            Kind::Remote => format!("remote/{size}"),
            Kind::Stream => format!("stream/{size}"),
            Kind::Xmalloc(n) => format!("xmalloc{n}/{size}"),
            Kind::Larson => "larson".into(),
            Kind::Mstress => "mstress".into(),
            Kind::Held => "held".into(),
            Kind::PeakStream => format!("peak/{size}"),
            Kind::After => "after".into(),
        }
    }

    /// What its figure counts.
    pub const fn unit(self) -> &'static str {
        match self.kind {
            Kind::Held => "held/live",
            Kind::PeakStream | Kind::After => "MiB",
            _ => "ns",
        }
    }

    /// Whether it measures memory, and so needs a process of its own.
    pub const fn is_memory(self) -> bool {
        matches!(self.kind, Kind::Held | Kind::PeakStream | Kind::After)
    }
}

/// Runs a load some times and gives the median.
#[derive(Debug)]
pub struct Run {
    /// Which.
    pub load: Load,
    /// Times, after one that does not count; loads of memory run once.
    pub times: usize,
}

impl Visit for Run {
    type Out = Option<f64>;

    fn visit<C: Contender>(self, contender: &C) -> Option<f64> {
        let Load { kind, size, .. } = self.load;
        let heap = contender.heap();
        match kind {
            Kind::Held => return memory::held(&heap),
            Kind::After => return memory::after(&heap),
            Kind::Larson => return median(self.times, || larson::run(&heap)),
            Kind::Mstress => return median(self.times, || mstress::run(&heap)),
            _ => {}
        }
        self.on_pool(&contender.pool(size)?)
    }
}

impl Run {
    /// Runs a load of one size on a pool of that size.
    pub(crate) fn on_pool<P: Pool>(&self, pool: &P) -> Option<f64> {
        let Load { kind, size, .. } = self.load;
        if kind == Kind::PeakStream {
            return memory::peak_of_stream(pool, size);
        }
        median(self.times, || match kind {
            Kind::Pair => alone::pair(pool),
            Kind::Batch => alone::batch(pool),
            Kind::Churn => alone::churn(pool),
            Kind::Bulk(n) => alone::bulk(pool, n),
            Kind::Loop(n) => alone::one_by_one(pool, n),
            Kind::Concurrent => together::concurrent(pool),
            Kind::Remote => together::remote(pool),
            Kind::Stream => pass::stream(pool, size),
            Kind::Xmalloc(pairs) => pass::xmalloc(pool, size, pairs),
            _ => f64::NAN,
        })
    }
}

/// The middle one of `times` figures, after one that does not count.
fn median(times: usize, mut run: impl FnMut() -> f64) -> Option<f64> {
    run();
    let mut figures: Vec<_> = (0..times.max(1)).map(|_| run()).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

/// Nanoseconds for each of `ops` that `work` does.
fn per_op(ops: usize, work: impl FnOnce()) -> f64 {
    let start = std::time::Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / ops as f64
}

/// Writes a word as the kernel's tests do.
#[inline(always)]
fn touch(object: *mut u8) {
    // SAFETY: objects of the loads have at least 8 bytes, aligned to 8, and are the caller's.
    unsafe { object.cast::<u64>().write_volatile(22) };
}

/// An object on its way to another thread.
#[derive(Debug, Clone, Copy)]
struct Passed(*mut u8);
// SAFETY: whoever has the value owns the object.
unsafe impl Send for Passed {}

/// Frees what a table holds of a heap whose objects begin with their size.
unsafe fn free_sized<H: Heap>(heap: &H, object: *mut u8) {
    if !object.is_null() {
        // SAFETY: by the caller: the object is in use and its first word is its size.
        unsafe { heap.free(object, object.cast::<usize>().read()) };
    }
}
