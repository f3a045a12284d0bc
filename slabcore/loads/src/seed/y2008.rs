//! 2008: `slub_min_objects` and the number of processors.

use super::published::OF_2008;
use super::{Kind, Measure, Seed, Sheet, Value, messages};
use crate::model::{Messages, Tally, To, WEIGHTS};
use slabcore::Policy;

pub(super) const SEED: Seed = Seed {
    year: 2008,
    subject: "hackbench regression since 2.6.25-rc",
    question: "How many objects should a slab hold, on so many processors?",
    machine: "16 processors in 4 sockets (Tigerton), Linux 2.6.25-rc5",
    differs: "The times here are of threads on the processors that there are, where a list lock is hardly \
              ever wanted twice; the model has 16. Both are the policy classic.",
    published: OF_2008,
    measured: &[Measure {
        workload: "hackbench",
        cases: &[1],
        contenders: &[
            "classic/min-objects=8",
            "classic/min-objects=16",
            "classic/min-objects=32",
            "classic/min-objects=64",
        ],
    }],
    reading: &[
        "A message is an object of 256 bytes and one of 512. The messages that wait for a processor (40) were \
         chosen, once for all columns, so that the model has the published shares; the third table shows \
         what other numbers do. Costs are those of docs/BENCH.md.",
        "The published times rise more from 16 to 8 than the share of slow paths explains: everything else took \
         more time, too. The model does not have that.",
    ],
    sheets,
};

const MIN_OBJECTS: [u32; 4] = [8, 16, 32, 64];
const CPUS: usize = 16;
/// Messages that wait for a processor before it receives: chosen to fit, once for all.
const DEPTH: usize = 40;
const DEPTHS: [usize; 4] = [20, 40, 60, 80];
/// A head and its data.
const SIZES: [usize; 2] = [256, 512];

fn run(depth: usize, min_objects: u32) -> Option<Tally> {
    let load = Messages {
        depth,
        each: 1000,
        to: To::Anybody,
        work: WEIGHTS.message,
    };
    // Both, as the option is for all caches.
    messages(
        CPUS,
        &SIZES,
        |it| it.policy(Policy::Classic).min_objects(min_objects),
        load,
    )
}

fn sheets(_: usize) -> Option<Vec<Sheet>> {
    let of = |depth| {
        MIN_OBJECTS
            .map(|n| run(depth, n))
            .into_iter()
            .collect::<Option<Vec<_>>>()
    };
    let tallies = of(DEPTH)?;
    let columns = |first: &str| {
        let names = MIN_OBJECTS.map(|n| n.to_string());
        std::iter::once(first.to_owned())
            .chain(names)
            .collect::<Vec<_>>()
    };
    let mut beside = Sheet::new(
        Kind::Model,
        "16 logical processors, by min_objects, beside what was published",
        columns("of"),
    );
    let each = |of: fn(&Tally) -> f64| tallies.iter().map(of).collect::<Vec<_>>();
    let times = |figures: &[f64]| {
        let last = figures.last().copied().unwrap_or(f64::NAN);
        figures.iter().map(|f| f / last).collect::<Vec<_>>()
    };
    let told = OF_2008[0].sheet();
    let row = |of: &str| told.figures(of);
    beside.row(
        "share of slow paths, published, %",
        0,
        row("slow alloc + slow free + add_partial, %"),
    );
    beside.row("share of slow paths, model, %", 1, each(Tally::slow_share));
    let seconds = row("hackbench 100 process 2000, s");
    beside.row("time, published, of that at 64", 2, times(&seconds));
    beside.row(
        "time, model, of that at 64",
        2,
        times(&each(Tally::cycles_each)),
    );
    let mut why = Sheet::new(
        Kind::Model,
        "what explains it, for 1000 operations",
        columns("of"),
    );
    why.row("slow paths", 1, each(|t| t.per_thousand(t.slow)));
    why.row("list locks taken", 1, each(|t| t.per_thousand(t.locks)));
    why.row(
        "of these wanted by another too, %",
        1,
        each(Tally::contended_share),
    );
    why.row(
        "locked instructions",
        1,
        each(|t| t.per_thousand(t.atomics)),
    );
    why.row(
        "lines moved: slab words",
        1,
        each(|t| t.per_thousand(t.words_moved)),
    );
    why.row(
        "lines moved: list locks",
        1,
        each(|t| t.per_thousand(t.locks_moved)),
    );
    why.row("slabs made", 2, each(|t| t.per_thousand(t.slabs)));
    let mut depths = Sheet::new(
        Kind::Model,
        "share of slow paths by messages that wait for a processor, %",
        columns("messages"),
    );
    for depth in DEPTHS {
        let tallies = if depth == DEPTH {
            tallies.clone()
        } else {
            of(depth)?
        };
        depths.row(&depth.to_string(), 1, tallies.iter().map(Tally::slow_share));
    }
    debug_assert!(
        depths
            .rows
            .iter()
            .all(|row| matches!(row[0], Value::Number(..)))
    );
    Some(vec![beside, why, depths])
}
