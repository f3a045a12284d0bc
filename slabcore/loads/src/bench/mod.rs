//! The workloads of `slabctl bench`: each a few cases, each case a few figures.
//!
//! A case runs in the process that asks, on one contender; who starts processes,
//! how often and in which order is the caller's. Each workload checks what it
//! does: stamps in the objects, and counts of what was allocated and freed,
//! which the engine's own counters have to confirm.

mod alone;
mod messages;
mod page_lock;
mod processes;
mod together;

use crate::contender::Visit;
use crate::load::{self, Kind, Load};
use crate::{Contender, Held, contender};
use slabcore::stats::Counters;

/// One figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// What is told, for example `alloc`.
    pub name: &'static str,
    /// Its unit: `ns` for an operation, `bytes` for an object.
    pub unit: &'static str,
    /// How much.
    pub value: f64,
}

impl Figure {
    /// Nanoseconds for an operation.
    pub const fn ns(name: &'static str, value: f64) -> Self {
        Self {
            name,
            unit: "ns",
            value,
        }
    }
}

/// What a case gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The figures, in the order of the workload.
    pub figures: Vec<Figure>,
    /// What the engine counted meanwhile; `None` for other allocators.
    pub counters: Option<Counters>,
    /// What it holds at the end of the case; `None` for other allocators.
    pub held: Option<Held>,
    /// A mistake of the allocator: a stamp or a count that is wrong.
    pub wrong: Option<String>,
}

/// A workload.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// What its cases are: a size, or how many at a time.
    pub cases: &'static [usize],
    /// What a case is a number of.
    pub of: &'static str,
    work: Work,
}

#[derive(Debug, Clone, Copy)]
enum Work {
    Kmalloc,
    Concurrent,
    Bulk,
    Hackbench,
    Processes,
    Rawpkt,
    PageLock,
    /// One of the loads of the comparison, by size.
    Load(Kind),
}

const SIZES: &[usize] = &[8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];

/// All workloads.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "kmalloc",
        doc: "slab_test 1 and 2: 10,000 allocations, then 10,000 frees; allocation and free in pairs",
        cases: SIZES,
        of: "bytes",
        work: Work::Kmalloc,
    },
    Workload {
        name: "concurrent",
        doc: "slab_test's concurrent tests: all allocate, then free; pairs; frees by another; one allocates for all",
        cases: SIZES.split_at(10).0,
        of: "bytes",
        work: Work::Concurrent,
    },
    Workload {
        name: "bulk",
        doc: "slab_bulk_test01: so many 256-byte objects at a time, one by one and by the bulk functions",
        cases: &[1, 2, 3, 4, 8, 16, 30, 32, 34, 48, 64, 128, 158, 250],
        of: "objects",
        work: Work::Bulk,
    },
    Workload {
        name: "churn",
        doc: "random ones of 100,000 live objects are replaced",
        cases: &[64, 256],
        of: "bytes",
        work: Work::Load(Kind::Churn),
    },
    Workload {
        name: "stream",
        doc: "one thread allocates, another frees, object by object through a ring",
        cases: &[64, 256],
        of: "bytes",
        work: Work::Load(Kind::Stream),
    },
    Workload {
        name: "xmalloc",
        doc: "xmalloc-test: an allocating and a freeing thread, 4096 objects at a time",
        cases: &[64],
        of: "bytes",
        work: Work::Load(Kind::Xmalloc(1)),
    },
    Workload {
        name: "larson",
        doc: "a server whose threads come and go and inherit each other's objects of 8 to 1000 bytes",
        cases: &[0],
        of: "",
        work: Work::Load(Kind::Larson),
    },
    Workload {
        name: "mstress",
        doc: "two threads, many sizes, half kept long, a quarter exchanged; stamps checked",
        cases: &[0],
        of: "",
        work: Work::Load(Kind::Mstress),
    },
    Workload {
        name: "hackbench",
        doc: "groups of 20 senders and 20 receivers (threads), messages from the allocator through queues",
        cases: &[1, 5],
        of: "groups",
        work: Work::Hackbench,
    },
    Workload {
        name: "hackbench-processes",
        doc: "the same with processes over socket pairs, each with an allocator of its own for its buffers",
        cases: &[1, 5],
        of: "groups",
        work: Work::Processes,
    },
    Workload {
        name: "rawpkt",
        doc: "packets: head and data are allocated on one thread and freed on another, in bursts",
        cases: &[64, 1500],
        of: "bytes",
        work: Work::Rawpkt,
    },
    Workload {
        name: "ptl",
        doc: "a 72-byte lock for each page that is touched: in the class of 96 bytes, shared, and in a cache of its own",
        cases: &[72],
        of: "bytes",
        work: Work::PageLock,
    },
];

impl Workload {
    /// Whether it uses caches, to which the engine's switches apply, and not only a heap.
    pub fn has_caches(&self) -> bool {
        !self.of.is_empty()
    }

    /// The workload of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        WORKLOADS.iter().find(|workload| workload.name == name)
    }

    /// Runs a case on the contender of a name with so many threads, where it has a number of them;
    /// `None` if there is no such contender.
    pub fn run(&self, name: &str, case: usize, threads: usize) -> Option<Outcome> {
        if !self.cases.contains(&case) {
            return None;
        }
        let work = self.work;
        contender::visit(
            name,
            Run {
                work,
                case,
                threads: threads.max(1),
            },
        )?
    }
}

struct Run {
    work: Work,
    case: usize,
    threads: usize,
}

impl Visit for Run {
    type Out = Option<Outcome>;

    fn visit<C: Contender>(self, contender: &C) -> Option<Outcome> {
        let case = self.case;
        // Counters are read while the pools are there.
        let told = |done: Done| Outcome {
            figures: done.figures,
            // What processes have of their own is gone with them.
            held: done.counters.is_none().then(|| contender.held()).flatten(),
            counters: done.counters.or_else(|| contender.counters()),
            wrong: done.wrong.or_else(|| contender.wrong()),
        };
        Some(match self.work {
            Work::Kmalloc => {
                let pool = contender.pool(case)?;
                told(alone::kmalloc(&pool))
            }
            Work::Bulk => {
                let pool = contender.pool(256)?;
                told(alone::bulk(&pool, case))
            }
            Work::Concurrent => {
                let pool = contender.pool(case)?;
                told(together::concurrent(&pool, self.threads))
            }
            Work::Hackbench => {
                let pool = contender.pool(512)?;
                told(messages::hackbench(&pool, case))
            }
            Work::Processes => told(processes::hackbench(contender, case)?),
            Work::Rawpkt => {
                let (heads, data) = (contender.pool(256)?, contender.pool(case.max(512))?);
                told(messages::rawpkt(&heads, &data))
            }
            Work::PageLock => told(page_lock::run(contender)?),
            Work::Load(kind) => {
                let load = Load {
                    kind,
                    size: case,
                    target: 1.0,
                };
                let run = load::Run { load, times: 3 };
                if case == 0 {
                    let value = run.visit(contender)?;
                    return Some(told(Done::of(vec![Figure::ns("operation", value)])));
                }
                let pool = contender.pool(case)?;
                let value = run.on_pool(&pool)?;
                told(Done::of(vec![Figure::ns("operation", value)]))
            }
        })
    }
}

/// What a workload gives.
struct Done {
    figures: Vec<Figure>,
    /// What was counted, if that was in other processes.
    counters: Option<Counters>,
    wrong: Option<String>,
}

impl Done {
    const fn of(figures: Vec<Figure>) -> Self {
        Self {
            figures,
            counters: None,
            wrong: None,
        }
    }
}

#[cfg(test)]
mod tests;
