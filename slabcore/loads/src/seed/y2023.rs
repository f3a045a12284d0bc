//! 2023: slabs on a processor's partial list that are not frozen.

use super::published::OF_2023;
use super::{Kind, Measure, Seed, Sheet, Value, messages};
use crate::model::{Messages, Tally, To, WEIGHTS};
use slabcore::Policy;

pub(super) const SEED: Seed = Seed {
    year: 2023,
    subject: "slub: Delay freezing of CPU partial slabs",
    question: "What does it cost to freeze slabs that wait for a processor?",
    machine: "128 processors in 2 nodes",
    differs: "A packet here is two objects and a queue, without a network stack: the allocator's share is larger.",
    published: OF_2023,
    measured: &[
        Measure {
            workload: "rawpkt",
            cases: &[1500],
            contenders: &["delayed-freeze", "cpu-partial"],
        },
        Measure {
            workload: "hackbench",
            cases: &[1],
            contenders: &["delayed-freeze", "cpu-partial"],
        },
    ],
    reading: &[
        "Wherever slabs are frozen at all, fewer are. Locked instructions are fewer where many messages to \
         anybody wait, and slabs travel between the lists of nodes and processors. Elsewhere slabs run empty on a \
         processor's list, and the free that empties one that is not frozen asks under the node's lock whether it \
         is on the node's list: there the patches take more of them.",
        "The counts do not explain the published gain of rawpkt by themselves; which of these cases it is of, the \
         thread does not tell.",
    ],
    sheets,
};

const CPUS: [usize; 3] = [2, 16, 128];
const DEPTHS: [usize; 2] = [40, 200];

fn run(policy: Policy, cpus: usize, depth: usize, to: To) -> Option<Tally> {
    let load = Messages {
        depth,
        each: (16_000 / cpus).clamp(2 * depth, 1000),
        to,
        // A packet on the loopback device takes a third of a message through sockets.
        work: WEIGHTS.message / 3,
    };
    messages(cpus, &[512], |it| it.policy(policy), load)
}

fn sheets(most: usize) -> Option<Vec<Sheet>> {
    let columns = [
        "load",
        "waiting",
        "processors",
        "cpu-partial",
        "delayed-freeze",
        "change, %",
    ];
    let mut atomics = Sheet::new(Kind::Model, "locked instructions for a free", columns);
    let mut frozen = Sheet::new(
        Kind::Model,
        "slabs frozen or thawed, for 1000 operations",
        columns,
    );
    let mut lists = Sheet::new(
        Kind::Model,
        "slabs moved to a node's list or from it, for 1000 operations",
        columns,
    );
    let mut locks = Sheet::new(
        Kind::Model,
        "list locks taken, for 1000 operations",
        columns,
    );
    let loads = [
        ("messages to anybody", To::Anybody),
        ("packets to a partner", To::Partner),
    ];
    for (name, to) in loads {
        for depth in DEPTHS {
            for cpus in CPUS.into_iter().filter(|cpus| *cpus <= most) {
                let both =
                    [Policy::CpuPartial, Policy::DelayedFreeze].map(|it| run(it, cpus, depth, to));
                let [Some(eager), Some(delayed)] = both else {
                    return None;
                };
                let row = |sheet: &mut Sheet, decimals, of: fn(&Tally) -> f64| {
                    let (a, b) = (of(&eager), of(&delayed));
                    let change = if a > 0.0 {
                        Value::Number((b / a - 1.0) * 100.0, 1)
                    } else {
                        Value::Unknown
                    };
                    let of = [depth, cpus].map(|n| Value::Number(n as f64, 0));
                    let [depth, cpus] = of;
                    let [a, b] = [a, b].map(|figure| Value::Number(figure, decimals));
                    sheet.rows.push(vec![
                        Value::Text(name.to_owned()),
                        depth,
                        cpus,
                        a,
                        b,
                        change,
                    ]);
                };
                row(&mut atomics, 3, |t| t.per_free(t.atomics));
                row(&mut frozen, 1, |t| t.per_thousand(t.freezes));
                row(&mut lists, 1, |t| t.per_thousand(t.list_moves));
                row(&mut locks, 1, |t| t.per_thousand(t.locks));
            }
        }
    }
    Some(vec![atomics, frozen, lists, locks])
}
