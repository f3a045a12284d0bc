//! Brings directories and rows together into caches, each read with no more
//! files than the demand needs.

use super::SLABINFO;
use super::entries::CacheDir;
use super::join::{Joined, Match, Rows, join};
use super::memory::{self, Memory};
use super::reader::{self, Outcome, Plan, Reader};
use crate::model::{Cache, Quantity, QuantitySet, Warning, WarningCode, Warnings};
use crate::source::Demand;

/// What /proc/slabinfo gives for every cache.
const SLABINFO_GIVES: QuantitySet = QuantitySet::of(&[
    Quantity::SlabSize,
    Quantity::ObjsPerSlab,
    Quantity::Order,
    Quantity::PagesPerSlab,
    Quantity::Objects,
    Quantity::TotalObjects,
    Quantity::Slabs,
]);

/// What was gathered.
pub(super) struct Gathered {
    /// In the order of /proc/slabinfo, then of sysfs.
    pub(super) caches: Vec<Cache>,
    /// Directories of which every file was refused.
    pub(super) denied: usize,
    /// Caches taken from an earlier sample, since their rows are the same.
    pub(super) carried: u64,
}

/// Keeps what answers to one of the names: the directories, which are
/// returned, and the rows.
pub(super) fn choose(only: &[String], all: &[Joined], rows: &mut Vec<Cache>) -> Vec<Joined> {
    let dirs: Vec<CacheDir> = all
        .iter()
        .map(|joined| &joined.dir)
        .filter(|dir| only.iter().any(|name| dir.answers_to(name)))
        .cloned()
        .collect();
    rows.retain(|row| {
        only.iter().any(|name| **name == *row.name)
            || dirs.iter().any(|dir| dir.answers_to(&row.name))
    });
    join(dirs, rows)
}

/// Caches while they are read one by one.
pub(super) struct Gathering<'a> {
    demand: &'a Demand,
    /// What is asked of the cache in focus.
    in_focus: Option<&'a Demand>,
    live: bool,
    /// The rows have lists and parts, and precedence.
    by_bpf: bool,
    /// The totals of a machine with one node are that node's figures.
    one_node: bool,
    rows: Rows,
    memory: &'a mut Memory,
    warnings: &'a mut Warnings,
    placed: Vec<(usize, Cache)>,
    denied: usize,
    moved: usize,
    carried: u64,
}

impl<'a> Gathering<'a> {
    /// `asked` is what is asked of every cache, and of the one in focus.
    pub(super) fn new(
        asked: (&'a Demand, Option<&'a Demand>),
        live: bool,
        nodes: Option<u32>,
        rows: super::Rows,
        memory: &'a mut Memory,
        warnings: &'a mut Warnings,
    ) -> Self {
        Self {
            demand: asked.0,
            in_focus: asked.1,
            live,
            by_bpf: rows.by_bpf,
            one_node: nodes == Some(1),
            rows: Rows::new(rows.caches),
            memory,
            warnings,
            placed: Vec::new(),
            denied: 0,
            moved: 0,
            carried: 0,
        }
    }

    /// What need not be read from sysfs, since the row has it.
    fn given(&self, found: &Match, demand: &Demand) -> QuantitySet {
        let enough = self.one_node || !demand.nodes;
        match found {
            Match::One(row) if self.by_bpf => {
                let row = self.rows.get(*row);
                row.map_or(QuantitySet::EMPTY, Cache::known)
            }
            Match::One(_) if self.live && enough && !demand.exact => SLABINFO_GIVES,
            _ => QuantitySet::EMPTY,
        }
    }

    /// Reads the directory with this number and joins it with its row; `more`
    /// adds what is not an attribute.
    pub(super) fn directory(
        &mut self,
        reader: &mut Reader<'_>,
        (number, joined): (usize, &Joined),
        base: &str,
        more: impl FnOnce(&mut Cache, &mut Warnings),
    ) {
        let Joined { dir, row: found } = joined;
        let focus = self.demand.focus.as_deref();
        let demand = match self.in_focus {
            Some(all) if focus.is_some_and(|name| dir.answers_to(name)) => all,
            _ => self.demand,
        };
        if let Some((place, mut cache)) = self.carried(number, found, demand) {
            more(&mut cache, self.warnings);
            self.placed.push((place, cache));
            return;
        }
        let given = self.given(found, demand);
        let plan = Plan {
            demand,
            given,
            live: self.live,
            walked: self.by_bpf,
        };
        let said = self.warnings.count();
        let mut cache = reader::blank(dir);
        if let (false, Match::One(row)) = (given.is_empty(), found)
            && let Some(row) = self.rows.get(*row)
        {
            take_from_row(&mut cache, row, given);
        }
        let outcome = self
            .memory
            .read(reader, dir, &mut cache, plan, self.warnings);
        self.count(&outcome, dir, base);
        let unread = matches!(outcome, Outcome::Denied | Outcome::Vanished);
        let alone = matches!(found, Match::One(_));
        let row = match found {
            Match::One(row) => Some(*row),
            Match::Several(list) => self.rows.choose(list, &cache),
            Match::None => None,
        };
        let row = row.and_then(|i| Some((i, self.rows.take(i)?)));
        let state = row.as_ref().map(|(_, row)| memory::state(row));
        let place = match row {
            Some((place, row)) => {
                self.moved += usize::from(!self.live && differs(&cache, &row));
                cache.name = row.name.clone();
                reader::set_names(&mut cache, dir);
                if self.by_bpf {
                    let files = std::mem::replace(&mut cache, row);
                    cache.fill_from(files);
                } else {
                    cache.fill_from(row);
                }
                place
            }
            None if unread => return,
            None => usize::MAX,
        };
        reader::settle(&mut cache, plan, self.warnings);
        // What is odd about a cache is told with every sample, so it is read with every one.
        if let Some(state) =
            state.filter(|_| self.live && alone && !unread && said == self.warnings.count())
            && !self.by_bpf
        {
            self.memory.keep(number, state, &cache, demand);
        }
        more(&mut cache, self.warnings);
        self.placed.push((place, cache));
    }

    /// The cache as an earlier sample read it, if that may stand, and its row's place.
    fn carried(&mut self, number: usize, found: &Match, demand: &Demand) -> Option<(usize, Cache)> {
        let Match::One(place) = *found else {
            return None;
        };
        if self.by_bpf {
            // The row itself has what moves.
            return None;
        }
        let cache = self
            .memory
            .recent(number, self.rows.get(place)?, demand)?
            .clone();
        self.rows.take(place);
        self.carried += 1;
        Some((place, cache))
    }

    fn count(&mut self, outcome: &Outcome, dir: &CacheDir, base: &str) {
        match outcome {
            Outcome::Denied => self.denied += 1,
            Outcome::Vanished => self.warnings.push(
                Warning::new(
                    WarningCode::Vanished,
                    "the cache went away while it was read",
                )
                .in_file(format!("{base}/{}", dir.id)),
            ),
            Outcome::Read | Outcome::Nothing => {}
        }
    }

    /// Names the lists that the kernel cut.
    pub(super) fn say_cut(&mut self, reader: &Reader<'_>) {
        reader.say_cut(self.warnings);
    }

    /// Appends the rows that have no directory.
    pub(super) fn finish(mut self, have_dirs: bool) -> Gathered {
        let joined = self.placed.len();
        self.placed.extend(self.rows.rest());
        let all = self.placed.len();
        if have_dirs && all > joined && self.demand.only.is_none() {
            say_incomplete(all - joined, all, self.warnings);
        }
        if self.moved > 0 {
            say_moved(self.moved, self.warnings);
        }
        self.placed.sort_by_key(|(place, _)| *place);
        Gathered {
            caches: self.placed.into_iter().map(|(_, cache)| cache).collect(),
            denied: self.denied,
            carried: self.carried,
        }
    }
}

/// Copies the figures a live sample need not read again from sysfs.
fn take_from_row(cache: &mut Cache, row: &Cache, given: QuantitySet) {
    cache.name = row.name.clone();
    for q in given.iter() {
        if let (Some(figure), Some(layer)) = (row.get(q), row.origin(q)) {
            cache.set(q, figure, layer);
        }
    }
}

fn differs(cache: &Cache, row: &Cache) -> bool {
    let slabs = (cache.get(Quantity::Slabs), row.get(Quantity::Slabs));
    matches!(slabs, (Some(a), Some(b)) if a != b)
}

fn say_incomplete(lone: usize, all: usize, warnings: &mut Warnings) {
    warnings.push(Warning::new(
        WarningCode::Incomplete,
        format!("{lone} of {all} caches of {SLABINFO} have no directory in sysfs: their figures are from {SLABINFO} alone"),
    ));
}

fn say_moved(moved: usize, warnings: &mut Warnings) {
    warnings.push(Warning::new(
        WarningCode::NotSimultaneous,
        format!("{moved} caches have other slab counts in {SLABINFO} than in sysfs: the files are from different moments; sysfs is shown"),
    ));
}
