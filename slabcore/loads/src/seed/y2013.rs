//! 2013: a cache of its own for the locks of page tables.

use super::published::OF_2013;
use super::{Kind, Measure, RANDOM, Seed, Sheet, Value};
use crate::model::Machine;
use crate::rng::Rng;
use slabcore::Policy;
use std::collections::BTreeMap;
use std::ptr::NonNull;

pub(super) const SEED: Seed = Seed {
    year: 2013,
    subject: "create a separate slab for page->ptl allocation",
    question: "What does a lock of 72 bytes cost in kmalloc-96, among others?",
    machine: "a server of 4 sockets, with lock debugging",
    differs: "There are no page tables here: a lock for each page that is touched, used by one processor, and \
              every fourth object of the class is something that any other processor uses.",
    published: OF_2013,
    measured: &[Measure {
        workload: "ptl",
        cases: &[72],
        contenders: &["cpu-partial", "hybrid"],
    }],
    reading: &[
        "Memory: 96 bytes against 72, and what one long-lived neighbour pins. Lines: of objects of 96 bytes \
         every second boundary is inside a line of 64, so a lock shares a line with a neighbour; in a \
         cache of its own the neighbours are locks of the same processor.",
        "The published gain of 440 % is not explained by the lines of a lock alone, and not claimed here.",
    ],
    sheets,
};

const LOCK: usize = 72;
const LINE: usize = 64;
const EACH: usize = 300;
/// Times that each lock is taken.
const TURNS: usize = 4;
const CPUS: [usize; 4] = [2, 16, 64, 120];

/// Who had a line last.
#[derive(Default)]
struct Lines(BTreeMap<usize, usize>);

impl Lines {
    /// A processor writes to an object; gives the lines that another one had.
    fn touch(&mut self, cpu: usize, object: NonNull<u8>) -> u64 {
        let at = object.as_ptr() as usize;
        let mut moved = 0;
        for line in at / LINE..=(at + LOCK - 1) / LINE {
            let before = self.0.insert(line, cpu);
            moved += u64::from(before.is_some_and(|last| last != cpu));
        }
        moved
    }
}

/// What one way to keep the locks gave.
struct Kept {
    /// Bytes of slabs for each lock.
    bytes: f64,
    /// Lines moved for 1000 times that a lock was taken.
    lines: f64,
    /// Percent of the slabs' bytes that stay when the locks are freed.
    pinned: f64,
}

/// Locks of `cpus` processors, in objects of `size` bytes; with others among them if they are shared.
fn run(cpus: usize, size: usize, shared: bool) -> Option<Kept> {
    let mut machine = Machine::new(cpus, RANDOM)?;
    let cache = machine.cache("locks", size, |it| it.policy(Policy::CpuPartial))?;
    let mut rng = Rng::new(RANDOM);
    let (mut locks, mut others) = (Vec::new(), Vec::new());
    for n in 0..EACH {
        for cpu in 0..cpus {
            locks.push((cpu, machine.alloc(cpu, cache)?));
            if shared && n % 3 == 2 {
                let user = rng.below(cpus);
                others.push((user, machine.alloc(cpu, cache)?));
            }
        }
    }
    let mut lines = Lines::default();
    let mut moved = 0;
    for turn in 0..=TURNS {
        // The first turn only brings the lines where they are used.
        moved *= u64::from(turn > 1);
        for (at, (cpu, lock)) in locks.iter().enumerate() {
            moved += lines.touch(*cpu, *lock);
            // Their own lines are not the locks' to pay.
            if let Some((user, other)) = others.get(at / 3).filter(|_| at % 3 == 2) {
                lines.touch(*user, *other);
            }
        }
    }
    let bytes = |machine: &Machine| {
        let it = machine.snapshot(cache)?;
        Some(((it.slabs * 4096) << it.order) as f64)
    };
    let held = bytes(&machine)?;
    let n = locks.len() as f64;
    let of_locks = held * n / (n + others.len() as f64);
    for (cpu, lock) in locks {
        // SAFETY: allocated above, freed once.
        unsafe { machine.free(cpu, cache, lock) };
    }
    machine.shrink(cache);
    let kept = bytes(&machine)?;
    for (cpu, other) in others {
        // SAFETY: as above.
        unsafe { machine.free(cpu, cache, other) };
    }
    Some(Kept {
        bytes: of_locks / n,
        lines: moved as f64 * 1000.0 / (n * TURNS as f64),
        pinned: kept * 100.0 / held,
    })
}

fn sheets(most: usize) -> Option<Vec<Sheet>> {
    let columns = [
        "processors",
        "in kmalloc-96",
        "in their own cache",
        "change, %",
    ];
    let sheet = |title: &str| Sheet::new(Kind::Model, title, columns);
    let mut bytes = sheet("bytes of slabs for a lock");
    let mut lines = sheet("lines moved, for 1000 times that a lock is taken");
    let mut pinned = sheet("of the slabs' bytes kept after all locks are freed, %");
    for cpus in CPUS.into_iter().filter(|cpus| *cpus <= most) {
        let (shared, own) = (run(cpus, 96, true)?, run(cpus, LOCK, false)?);
        let row = |sheet: &mut Sheet, of: fn(&Kept) -> f64| {
            let (a, b) = (of(&shared), of(&own));
            let change = if a > 0.0 {
                Value::Number((b / a - 1.0) * 100.0, 1)
            } else {
                Value::Unknown
            };
            let [n, a, b] = [(cpus as f64, 0), (a, 1), (b, 1)].map(|(f, d)| Value::Number(f, d));
            sheet.rows.push(vec![n, a, b, change]);
        };
        row(&mut bytes, |kept| kept.bytes);
        row(&mut lines, |kept| kept.lines);
        row(&mut pinned, |kept| kept.pinned);
    }
    Some(vec![bytes, lines, pinned])
}
