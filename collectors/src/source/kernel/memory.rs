//! What a live source remembers of its caches between samples.
//!
//! What is fixed while a cache lives is read once. The rest of a cache whose
//! row in /proc/slabinfo is the same may be taken from an earlier sample for as
//! long as the demand says: most caches of a machine do not move, and their
//! attribute files are most of what a sample costs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use super::attributes::{ATTRIBUTES, Cost, Form};
use super::entries::CacheDir;
use super::join::Joined;
use super::reader::{Outcome, Plan, Reader};
use crate::model::{Cache, Ctor, Flag, Quantity, Warnings};
use crate::source::Demand;

/// What a row of /proc/slabinfo says of a cache's state.
const STATE: [Quantity; 3] = [Quantity::Objects, Quantity::TotalObjects, Quantity::Slabs];

/// Those figures.
pub(super) type State = [Option<u64>; STATE.len()];

/// Caches of earlier samples.
#[derive(Default)]
pub(super) struct Memory {
    /// What is fixed, by directory name.
    fixed: HashMap<String, Cache>,
    /// What was read not long ago, by the directory's number in `listed`.
    recent: Vec<Option<Recent>>,
    listed: Option<Arc<[Joined]>>,
    /// What the recent ones were asked for.
    asked: Option<Demand>,
    /// When this sample began.
    now: Option<Instant>,
}

/// A cache as it was read.
struct Recent {
    /// What its row said then.
    state: State,
    read: Instant,
    cache: Cache,
}

/// The figures of a row that tell whether anything of the cache moved.
pub(super) fn state(row: &Cache) -> State {
    STATE.map(|q| row.get(q).map(|figure| figure.value))
}

impl Memory {
    /// Begins a sample: recent figures of another demand or list are forgotten.
    pub(super) fn begin(&mut self, demand: &Demand, listed: &Arc<[Joined]>) {
        // Which one is in focus says nothing of the others.
        let asked = Demand {
            focus: None,
            sites_of: None,
            ..demand.clone()
        };
        let same_list = self.listed.as_ref().is_some_and(|l| Arc::ptr_eq(l, listed));
        if !same_list {
            // A cache of the same name that comes later is another one.
            let there: HashSet<&str> = listed.iter().map(|of| of.dir.id.as_str()).collect();
            self.fixed.retain(|id, _| there.contains(id.as_str()));
        }
        if !same_list || self.asked.as_ref() != Some(&asked) {
            self.recent.clear();
            self.recent.resize_with(listed.len(), || None);
            self.listed = Some(Arc::clone(listed));
            self.asked = Some(asked);
        }
        self.now = Some(Instant::now());
    }

    /// The cache as it was read not long ago, if its row is the same.
    pub(super) fn recent(&self, number: usize, row: &Cache, demand: &Demand) -> Option<&Cache> {
        if demand.unchanged_for.is_zero() {
            return None;
        }
        let recent = self.recent.get(number)?.as_ref()?;
        let same = self.now?.duration_since(recent.read) < demand.unchanged_for
            && recent.state == state(row)
            && recent.cache.name == row.name
            && same_cache(&recent.cache, row);
        same.then_some(&recent.cache)
    }

    /// Remembers a cache that was read, and what its row said.
    pub(super) fn keep(&mut self, number: usize, state: State, cache: &Cache, demand: &Demand) {
        // Of a long list the kernel estimates the objects, which may stay the same.
        let sure = cache
            .partial()
            .is_none_or(|p| p.value.get() <= Demand::WALK_LIMIT);
        // Counters move without the row.
        if demand.unchanged_for.is_zero() || demand.counters || !sure {
            return;
        }
        if let (Some(place), Some(read)) = (self.recent.get_mut(number), self.now) {
            *place = Some(Recent {
                state,
                read,
                cache: cache.clone(),
            });
        }
    }

    /// Reads a cache, with what is known of it from an earlier sample.
    pub(super) fn read(
        &mut self,
        reader: &mut Reader<'_>,
        dir: &CacheDir,
        cache: &mut Cache,
        plan: Plan<'_>,
        warnings: &mut Warnings,
    ) -> Outcome {
        let before = self
            .fixed
            .get(&dir.id)
            .filter(|before| plan.live && same_cache(before, cache));
        let outcome = match before {
            Some(before) => {
                let rest = without_known(plan.demand, before);
                let plan = Plan {
                    demand: &rest,
                    ..plan
                };
                let outcome = reader.read(dir, cache, plan, warnings);
                cache.fill_from(before.clone());
                outcome
            }
            None => reader.read(dir, cache, plan, warnings),
        };
        if plan.live && outcome == Outcome::Read {
            self.fixed.insert(dir.id.clone(), fixed_part(cache));
        }
        outcome
    }
}

/// A cache may have been destroyed and made anew under the same name.
fn same_cache(before: &Cache, now: &Cache) -> bool {
    [Quantity::SlabSize, Quantity::ObjsPerSlab]
        .into_iter()
        .all(|q| match (before.get(q), now.get(q)) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        })
}

/// The demand without what is fixed and known.
fn without_known(demand: &Demand, known: &Cache) -> Demand {
    let mut rest = demand.clone();
    for q in known.known().iter() {
        rest.quantities.remove(q);
    }
    rest.flags.retain(|f| known.flags.get(*f).is_none());
    rest.ctor &= known.ctor == Ctor::Unknown;
    rest
}

/// What of a cache cannot change while it lives.
fn fixed_part(cache: &Cache) -> Cache {
    let mut fixed = Cache::new(cache.id, cache.name.clone());
    for attribute in ATTRIBUTES.iter().filter(|a| a.cost == Cost::Static) {
        if let Form::Number(q) = attribute.form
            && let (Some(figure), Some(layer)) = (cache.get(q), cache.origin(q))
        {
            fixed.set(q, figure, layer);
        }
    }
    for flag in Flag::ALL.iter().filter(|flag| **flag != Flag::Failslab) {
        // That one can be written at any time.
        if let Some(value) = cache.flags.get(*flag) {
            fixed.flags.put(*flag, value);
        }
    }
    fixed.ctor = cache.ctor.clone();
    fixed
}
