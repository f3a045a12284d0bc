//! Allocations and frees with the share of the fast paths.

use collectors::model::{Approx, CountedBy, CounterId, Counters, Era, OriginKind, Snapshot, Unit};

use crate::cmd::select::Chosen;
use crate::cmd::{Context, cells};
use crate::output::table::{Cell, Head, Table};

/// One line a cache that has counters.
pub(super) fn table(context: &Context, snapshot: &Snapshot, chosen: &Chosen<'_>) -> Table {
    let mut table = Table::new(vec![
        Head::left("Name"),
        Head::right("Objects").key("objects"),
        Head::right("Alloc").key("allocs"),
        Head::right("Free").key("frees"),
        Head::right("%Fast(alloc)").key("alloc_fast_share"),
        Head::right("%Fast(free)").key("free_fast_share"),
        Head::right("Fallback").key("order_fallback"),
        Head::right("O").key("order"),
        Head::right("CmpX").key("cmpxchg_double_fail"),
    ]);
    let scale = context.global.scale();
    let mut counted = false;
    for row in &chosen.rows {
        let counters = row.cache.counters.as_deref();
        counted |= counters.is_some();
        let inferred = row.cache.counted_by == CountedBy::Inference;
        let paths = counters.map(|c| (Paths::alloc(c), Paths::free(c)));
        let (alloc, free) = paths.unwrap_or_default();
        let total = |id| counters.and_then(|c| c.total(id)).map(Approx::exact);
        let count = |figure| cells::maybe(figure, Unit::Count, scale);
        table.row(vec![
            Cell::text(&*row.cache.name),
            count(row.cache.get(collectors::model::Quantity::Objects)),
            count(alloc.all.map(Approx::exact)),
            count(free.all.map(Approx::exact)),
            cells::maybe_percent(alloc.fast_share(inferred)),
            cells::maybe_percent(free.fast_share(inferred)),
            count(total(CounterId::OrderFallback)),
            count(row.cache.get(collectors::model::Quantity::Order)),
            count(total(CounterId::CmpxchgDoubleFail)),
        ]);
    }
    if !counted {
        table.note("no event counters here: the kernel was built without CONFIG_SLUB_STATS, or the source does not hold them; sorted by name");
        if snapshot.origin.kind == OriginKind::Kernel {
            table.note("--paths has BPF programs count them");
        }
    } else if snapshot.system.era == Era::Sheaves {
        table.note(
            "on this kernel the fast path is the per-CPU sheaf (Linux 7.0 changed the meaning)",
        );
    }
    table
}

/// Traffic by fast and slow path. Sheaves of 6.18 and 6.19 count as fast.
#[derive(Default)]
struct Paths {
    all: Option<u64>,
    fast: Option<u64>,
    slow: Option<u64>,
}

impl Paths {
    fn new(all: Option<u64>, counters: &Counters, fast: [CounterId; 2], slow: CounterId) -> Self {
        let [main, sheaf] = fast.map(|id| counters.total(id));
        Self {
            all,
            fast: main.map(|n| n.saturating_add(sheaf.unwrap_or(0))),
            slow: counters.total(slow),
        }
    }

    fn alloc(counters: &Counters) -> Self {
        let fast = [CounterId::AllocFastpath, CounterId::AllocCpuSheaf];
        Self::new(counters.allocs(), counters, fast, CounterId::AllocSlowpath)
    }

    fn free(counters: &Counters) -> Self {
        let fast = [CounterId::FreeFastpath, CounterId::FreeCpuSheaf];
        Self::new(counters.frees(), counters, fast, CounterId::FreeSlowpath)
    }

    /// Marked where it is inferred which path was taken, or only the slow ones were
    /// counted.
    fn fast_share(&self, approx: bool) -> Option<Approx<f64>> {
        let all = self.all.filter(|all| *all > 0)?;
        let rest = || Some(all.saturating_sub(self.slow?));
        let value = self.fast.or_else(rest)? as f64 / all as f64;
        let approx = approx || self.fast.is_none();
        Some(Approx { value, approx })
    }
}
