//! 2022: validation beside frees.

use super::published::OF_2022;
use super::{Kind, Measure, Seed, Sheet, Value};
use slabcore::stats::{Counters, Stat};
use slabcore::{Cache, CacheBuilder, DebugFlags, Engine, EngineConfig, Policy};
use std::alloc::Layout;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(super) const SEED: Seed = Seed {
    year: 2022,
    subject: "fix the race between validate_slab and slab_free",
    question: "Can slabs be validated while objects are freed, and who pays for it?",
    machine: "an arm64 virtual machine, 32 processors, 128 GB",
    differs: "The policy is cpu-partial; before and after are without and with a validation that never ceases \
              beside, since the engine cannot be built with the race. Times are in nanoseconds.",
    published: OF_2022,
    measured: &[
        Measure {
            workload: "kmalloc",
            cases: &[8, 64, 256, 1024, 4096],
            contenders: &["cpu-partial", "cpu-partial/validate", "cpu-partial/debug=Z"],
        },
        Measure {
            workload: "concurrent",
            cases: &[8, 64, 256, 1024, 4096],
            contenders: &["cpu-partial", "cpu-partial/validate", "cpu-partial/debug=Z"],
        },
    ],
    reading: &[
        "A validation beside takes a processor of the machine, and brings lines of slabs and objects to it: with two \
         processors that is what a difference of times is. The counters tell whether an operation did more.",
    ],
    sheets,
};

const SIZE: usize = 256;
const DEPTH: usize = 500;
const ROUNDS: usize = 1500;

struct Run {
    counters: Counters,
    findings: u64,
    looks: u64,
}

impl Run {
    fn atomics(&self) -> f64 {
        let ops = self.counters.allocs() + self.counters.frees();
        self.counters.get(Stat::AtomicOps) as f64 / ops.max(1) as f64
    }
}

/// Messages through a queue; gives false if memory is short.
fn load(cache: &Cache) -> bool {
    let mut queue = VecDeque::new();
    for round in 0..ROUNDS {
        for _ in 0..=round * 7 % 40 {
            let Some(object) = cache.alloc() else {
                return false;
            };
            queue.push_back(object);
        }
        while queue.len() > DEPTH {
            if let Some(object) = queue.pop_front() {
                // SAFETY: allocated above, freed once.
                unsafe { cache.free(object) };
            }
        }
    }
    for object in queue {
        // SAFETY: as above.
        unsafe { cache.free(object) };
    }
    true
}

fn run(policy: Policy, validate: bool, flags: DebugFlags) -> Option<Run> {
    let engine = Engine::new(EngineConfig {
        reserve: 1 << 30,
        cpus: 2,
        segment: slabcore::segment::Place::Off,
        ..EngineConfig::new()
    });
    let engine = engine.ok()?;
    let layout = Layout::from_size_align(SIZE, 8).ok()?;
    let builder = CacheBuilder::new(&engine, "validated", layout).policy(policy);
    let cache = builder.debug_flags(flags).build().ok()?;
    let done = AtomicBool::new(false);
    let (mut findings, mut looks) = (0, 0);
    let sound = std::thread::scope(|scope| {
        let beside = validate.then(|| {
            let look = || {
                let (mut findings, mut looks) = (0, 0);
                while looks == 0 || !done.load(Relaxed) {
                    findings += engine.validate().findings.len() as u64;
                    looks += 1;
                }
                (findings, looks)
            };
            scope.spawn(look)
        });
        let sound = load(&cache);
        done.store(true, Relaxed);
        if let Some(beside) = beside {
            (findings, looks) = beside.join().ok()?;
        }
        Some(sound)
    })?;
    sound.then(|| Run {
        counters: cache.counters(),
        findings,
        looks,
    })
}

/// Counters that differ, but for the list lock, which validation itself takes.
fn different(a: &Counters, b: &Counters) -> u64 {
    let own = |stat: &&Stat| !matches!(stat, Stat::ListLock | Stat::ListLockContended);
    let stats = Stat::ALL.iter().filter(own);
    stats.filter(|stat| a.get(**stat) != b.get(**stat)).count() as u64
}

fn sheets(_: usize) -> Option<Vec<Sheet>> {
    let columns = [
        "policy",
        "alone",
        "validated beside",
        "counters that differ",
        "validations",
        "false findings",
        "with red zones",
    ];
    let mut sheet = Sheet::new(
        Kind::Counted,
        "locked instructions for an operation; messages of 256 bytes on one thread, another one validates",
        columns,
    );
    let red_zones: DebugFlags = "Z".parse().ok()?;
    for policy in Policy::ALL {
        let alone = run(policy, false, DebugFlags::NONE)?;
        let beside = run(policy, true, DebugFlags::NONE)?;
        let debug = run(policy, true, red_zones)?;
        let whole = |n: u64| Value::Number(n as f64, 0);
        let exact = |run: &Run| Value::Number(run.atomics(), 3);
        sheet.rows.push(vec![
            Value::Text(policy.name().to_owned()),
            exact(&alone),
            exact(&beside),
            whole(different(&alone.counters, &beside.counters)),
            whole(beside.looks + debug.looks),
            whole(beside.findings + debug.findings),
            exact(&debug),
        ]);
    }
    Some(vec![sheet])
}
