//! Differences of event counters.
//!
//! Each per-CPU counter of CONFIG_SLUB_STATS is 32 bits wide and wraps; the
//! kernel leaves CPUs with 0 out of the list, prints online CPUs only, and
//! sets all of them to 0 when somebody writes to the file (mm/slub.c,
//! `show_stat` and `clear_stat`). The printed sum alone cannot tell these apart.

use std::collections::BTreeMap;

use crate::model::{Approx, Counter, CounterId, Counters, CpuId};

/// How far one counter went on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterDelta {
    /// Which.
    pub id: CounterId,
    /// Steps over all CPUs; marked where a CPU's part had to be guessed,
    /// `None` where nothing can be said.
    pub delta: Option<Approx<u64>>,
    /// Steps by CPU, where both readings list them.
    pub cpus: Vec<(CpuId, Approx<u64>)>,
}

/// The counters that both readings have, in the kernel's order.
pub fn deltas(before: &Counters, after: &Counters) -> Vec<CounterDelta> {
    let mut list: Vec<_> = after
        .0
        .iter()
        .filter_map(|new| Some(delta(before.get(new.id)?, new)))
        .collect();
    list.sort_by_key(|d| d.id);
    list
}

fn delta(before: &Counter, after: &Counter) -> CounterDelta {
    let id = after.id;
    if complete(before) && complete(after) {
        return by_cpu(id, before, after);
    }
    let unlisted = before.cpus.is_empty() && after.cpus.is_empty();
    let delta = match (u32::try_from(before.total), u32::try_from(after.total)) {
        // A kernel for one processor prints no list: the sum is the counter.
        (Ok(old), Ok(new)) if unlisted => Some(step(old, new)),
        _ => after.total.checked_sub(before.total).map(Approx::estimate),
    };
    CounterDelta {
        id,
        delta,
        cpus: Vec::new(),
    }
}

/// Whether the list explains the sum: it is cut at the end of a page.
fn complete(counter: &Counter) -> bool {
    counter.cpus.iter().map(|(_, n)| u64::from(*n)).sum::<u64>() == counter.total
}

fn by_cpu(id: CounterId, before: &Counter, after: &Counter) -> CounterDelta {
    let old: BTreeMap<CpuId, u32> = before.cpus.iter().copied().collect();
    let new: BTreeMap<CpuId, u32> = after.cpus.iter().copied().collect();
    let cpus: Vec<_> = new
        .iter()
        .map(|(cpu, n)| (*cpu, step(old.get(cpu).copied().unwrap_or(0), *n)))
        .collect();
    // A CPU that left the list went offline or was cleared.
    let lost = old.keys().any(|cpu| !new.contains_key(cpu));
    CounterDelta {
        id,
        delta: Some(Approx {
            value: cpus.iter().map(|(_, d)| d.value).sum(),
            approx: lost || cpus.iter().any(|(_, d)| d.approx),
        }),
        cpus,
    }
}

/// Steps from one reading to the next, modulo 2^32. Going back by less than
/// half the range is a counter that was cleared: then what it counted since is
/// a lower bound.
fn step(old: u32, new: u32) -> Approx<u64> {
    let steps = new.wrapping_sub(old);
    if new >= old || steps < 1 << 31 {
        Approx::exact(u64::from(steps))
    } else {
        Approx::estimate(u64::from(new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counter(cpus: &[(u32, u32)]) -> Counter {
        Counter {
            id: CounterId::AllocFastpath,
            total: cpus.iter().map(|(_, n)| u64::from(*n)).sum(),
            cpus: cpus.iter().map(|(c, n)| (CpuId(*c), *n)).collect(),
        }
    }

    fn total(before: &Counter, after: &Counter) -> Option<Approx<u64>> {
        delta(before, after).delta
    }

    #[test]
    fn a_wrap_on_one_cpu_is_no_step_back() {
        let before = counter(&[(0, u32::MAX - 9), (1, 100)]);
        let after = counter(&[(0, 5), (1, 150)]);
        assert!(after.total < before.total);
        let d = delta(&before, &after);
        assert_eq!(d.delta, Some(Approx::exact(65)));
        assert_eq!(d.cpus[0], (CpuId(0), Approx::exact(15)));
    }

    #[test]
    fn a_cpu_the_kernel_left_out_had_counted_nothing() {
        let d = total(&counter(&[(0, 7)]), &counter(&[(0, 8), (3, 4)]));
        assert_eq!(d, Some(Approx::exact(5)));
        let from_nothing = total(&counter(&[]), &counter(&[(2, 9)]));
        assert_eq!(from_nothing, Some(Approx::exact(9)));
    }

    #[test]
    fn a_cleared_counter_or_a_lost_cpu_gives_a_marked_lower_bound() {
        let cleared = total(&counter(&[(0, 1000)]), &counter(&[(0, 20)]));
        assert_eq!(cleared, Some(Approx::estimate(20)));
        let offline = total(&counter(&[(0, 10), (1, 10)]), &counter(&[(0, 12)]));
        assert_eq!(offline, Some(Approx::estimate(2)));
    }

    #[test]
    fn without_a_full_list_only_the_sum_is_left() {
        let mut cut = counter(&[(0, 10)]);
        cut.total = 500;
        let mut later = counter(&[(0, 30)]);
        later.total = 600;
        assert_eq!(total(&cut, &later), Some(Approx::estimate(100)));
        assert_eq!(total(&later, &cut), None);
        // One processor: no list, but the sum is the counter.
        let (mut old, mut new) = (counter(&[]), counter(&[]));
        (old.total, new.total) = (u64::from(u32::MAX), 4);
        assert_eq!(total(&old, &new), Some(Approx::exact(5)));
    }

    proptest! {
        #[test]
        fn fewer_than_half_the_range_of_steps_is_always_exact(
            start in any::<u32>(), steps in 0u32..1 << 31,
        ) {
            let d = step(start, start.wrapping_add(steps));
            prop_assert_eq!(d, Approx::exact(u64::from(steps)));
        }
    }
}
