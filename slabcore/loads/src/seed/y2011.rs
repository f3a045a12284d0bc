//! 2011: empty slabs kept above a minimum, and partial lists for each processor.

use super::published::OF_2011;
use super::{Kind, Measure, RANDOM, Seed, Sheet, messages};
use crate::model::{Machine, Messages, Tally, To, WEIGHTS};
use slabcore::{CacheBuilder, Policy};

pub(super) const SEED: Seed = Seed {
    year: 2011,
    subject: "slub Discard slab page only when node partials > minimum setting",
    question: "When is an empty slab given back, and where do partial slabs wait?",
    machine: "machines as the table names them, Linux 3.1-rc2",
    differs: "The base here is the policy classic, without the fault of 3.1-rc2 that the thread found later.",
    published: OF_2011,
    measured: &[
        Measure {
            workload: "hackbench",
            cases: &[1],
            contenders: &["cpu-partial", "classic", "delayed-freeze"],
        },
        Measure {
            workload: "hackbench-processes",
            cases: &[1],
            contenders: &["cpu-partial", "classic", "delayed-freeze"],
        },
    ],
    reading: &[
        "Gain: by how much more time classic takes. It has no limit where one list lock serves more \
         processors than it can: what a thread of few processors cannot see.",
        "Processes have an engine each here, where a kernel's slabs are of all: nobody frees what another \
         process allocated, so lists are short and no lock is wanted twice. The kernel's case is that of threads.",
    ],
    sheets,
};

const CPUS: [usize; 8] = [2, 4, 8, 16, 32, 64, 128, 512];
const POLICIES: [Policy; 3] = [Policy::Classic, Policy::CpuPartial, Policy::DelayedFreeze];
const SIZE: usize = 512;
/// Messages that wait for a processor before it receives.
const DEPTH: usize = 100;
const MIN_PARTIAL: [u32; 3] = [0, 5, 30];

type Options = fn(CacheBuilder<'_>) -> CacheBuilder<'_>;

fn run(cpus: usize, options: impl Fn(CacheBuilder<'_>) -> CacheBuilder<'_>) -> Option<Tally> {
    let load = Messages {
        depth: DEPTH,
        each: (16_000 / cpus).clamp(2 * DEPTH, 1000),
        to: To::Anybody,
        work: WEIGHTS.message,
    };
    messages(cpus, &[SIZE], options, load)
}

fn sheets(most: usize) -> Option<Vec<Sheet>> {
    let mut sheets = by_cpus(most)?;
    sheets.push(min_partial()?);
    sheets.push(head_or_tail()?);
    Some(sheets)
}

fn by_cpus(most: usize) -> Option<Vec<Sheet>> {
    let names = POLICIES.map(Policy::name);
    let columns = |more: &'static [&'static str]| {
        let all = ["processors"].into_iter().chain(names);
        all.chain(more.iter().copied())
    };
    let sheet = |title: &str| Sheet::new(Kind::Model, title, columns(&[]));
    let mut locks = sheet("list locks taken, for 1000 operations");
    let mut contended = sheet("of these wanted by another processor too, %");
    let mut lines = sheet("lines moved (slab words and list locks), for 1000 operations");
    let mut time = Sheet::new(
        Kind::Model,
        "cycles of a message, and how much more classic takes, %",
        columns(&["gain"]),
    );
    for cpus in CPUS.into_iter().filter(|cpus| *cpus <= most) {
        let tallies = POLICIES.map(|policy| run(cpus, |it| it.policy(policy)));
        let tallies = tallies.into_iter().collect::<Option<Vec<_>>>()?;
        let each = |of: fn(&Tally) -> f64| tallies.iter().map(of).collect::<Vec<_>>();
        let of = cpus.to_string();
        locks.row(&of, 1, each(|t| t.per_thousand(t.locks)));
        contended.row(&of, 1, each(Tally::contended_share));
        lines.row(
            &of,
            1,
            each(|t| t.per_thousand(t.words_moved + t.locks_moved)),
        );
        let mut cycles = each(Tally::cycles_each);
        let gain = (cycles[0] / cycles[1] - 1.0) * 100.0;
        cycles.push(gain);
        time.row(&of, 0, cycles);
    }
    Some(vec![locks, contended, lines, time])
}

/// Waves of objects of each processor's own; slabs made.
fn waves(policy: Policy, min_partial: u32) -> Option<f64> {
    let mut machine = Machine::new(4, RANDOM)?;
    let cache = machine.cache("wave", SIZE, |it| {
        // Eight objects a slab: a wave is 25 slabs for each processor.
        let it = it.policy(policy).min_objects(8).max_order(0).cpu_partial(8);
        it.min_partial(min_partial)
    })?;
    let mut objects = Vec::new();
    for _ in 0..40 {
        for cpu in 0..machine.cpus() {
            for _ in 0..200 {
                objects.push((cpu, machine.alloc(cpu, cache)?));
            }
        }
        for (cpu, object) in objects.drain(..) {
            // SAFETY: allocated above, freed once.
            unsafe { machine.free(cpu, cache, object) };
        }
    }
    let tally = machine.take_tally();
    Some(tally.per_thousand(tally.slabs))
}

fn min_partial() -> Option<Sheet> {
    let names = MIN_PARTIAL.map(|n| format!("min_partial {n}"));
    let columns = std::iter::once("policy".to_owned()).chain(names);
    let mut sheet = Sheet::new(
        Kind::Model,
        "slabs made for 1000 operations, in waves of 100 slabs on 4 processors",
        columns,
    );
    for policy in POLICIES {
        let made = MIN_PARTIAL.map(|n| waves(policy, n));
        let made = made.into_iter().collect::<Option<Vec<_>>>()?;
        sheet.row(policy.name(), 2, made);
    }
    Some(sheet)
}

fn head_or_tail() -> Option<Sheet> {
    let columns = [
        "classic, partial slabs added",
        "list locks",
        "slow paths",
        "slabs made",
        "cycles",
    ];
    let mut sheet = Sheet::new(
        Kind::Model,
        "to the head or to the tail of the list: 16 processors, for 1000 operations; cycles of a message",
        columns,
    );
    let both: [(&str, Options); 2] = [
        ("to the head", |it| it.policy(Policy::Classic)),
        ("to the tail", |it| {
            it.policy(Policy::Classic).add_to_tail(true)
        }),
    ];
    for (of, options) in both {
        let tally = run(16, options)?;
        let figures = [tally.locks, tally.slow, tally.slabs].map(|n| tally.per_thousand(n));
        sheet.row(of, 1, figures.into_iter().chain([tally.cycles_each()]));
    }
    Some(sheet)
}
