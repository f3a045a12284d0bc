//! Slow paths counted where they are taken: programs at the entry of functions.
//!
//! Source of truth: mm/slub.c, Linux 6.1 to 7.3. A function is used for a counter
//! only where the kernel counts at its entry and nowhere else, or once for each
//! call that succeeds. One that the kernel has not, or has under another name since
//! the compiler made a variant of it, leaves its counter unknown.

use aya::Ebpf;
use aya::programs::FEntry;
use aya::programs::fentry::FEntryLink;

use super::counters::SLOW;
use super::program;
use crate::model::{CounterId, Era};
use crate::source::bpf::Refusal;
use crate::source::bpf::object::{Machine, named, refused};

/// A function, what its program is named after, and the counter that its calls are.
struct Function {
    event: &'static str,
    name: &'static str,
    counter: CounterId,
    /// Its calls are that counter on kernels with sheaves alone (7.0 and later) too.
    sheaves: bool,
}

/// In the order of the words that their programs count in.
const FUNCTIONS: [Function; 4] = [
    Function {
        event: "slow_alloc",
        name: "___slab_alloc",
        counter: CounterId::AllocSlowpath,
        sheaves: true,
    },
    Function {
        event: "slow_free",
        name: "__slab_free",
        counter: CounterId::FreeSlowpath,
        // There sheaves are flushed by it too, which the kernel does not count.
        sheaves: false,
    },
    Function {
        event: "alloc_slab",
        name: "allocate_slab",
        counter: CounterId::AllocSlab,
        sheaves: true,
    },
    Function {
        event: "free_slab",
        name: "__free_slab",
        counter: CounterId::FreeSlab,
        sheaves: true,
    },
];

/// The programs that run.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// By function; `None`: the kernel has not got it.
    links: [Option<FEntryLink>; 4],
}

impl Functions {
    /// Runs the programs at the functions that are there; where there is none, why.
    pub(super) fn attach(machine: &Machine, ebpf: &mut Ebpf) -> Result<Self, Refusal> {
        let mut why = None;
        let links = FUNCTIONS.each_ref().map(|function| {
            let link = attach(machine, ebpf, function);
            link.map_err(|refusal| why.get_or_insert(refusal).clone())
                .ok()
        });
        match why {
            Some(why) if links.iter().all(Option::is_none) => Err(why),
            _ => Ok(Self { links }),
        }
    }

    /// The counters that are known, of the words of a cache.
    pub(super) fn counters(&self, words: &[u64], era: Era) -> Vec<(CounterId, u64)> {
        let known = |place: usize| self.links.get(place).is_some_and(Option::is_some);
        of(known, words, era)
    }

    /// What the programs that run are named after.
    pub(super) fn events(&self) -> impl Iterator<Item = &'static str> {
        let all = FUNCTIONS.iter().zip(&self.links);
        all.filter_map(|(function, link)| link.as_ref().map(|_| function.event))
    }

    /// Functions that the kernel has not got.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let all = FUNCTIONS.iter().zip(&self.links);
        let missing = all.filter(|(_, link)| link.is_none());
        missing.map(|(function, _)| function.name).collect()
    }
}

fn of(known: impl Fn(usize) -> bool, words: &[u64], era: Era) -> Vec<(CounterId, u64)> {
    let usable = |function: &Function| function.sheaves || era != Era::Sheaves;
    let places = FUNCTIONS.iter().enumerate();
    let places = places.filter(|(place, function)| known(*place) && usable(function));
    places
        .filter_map(|(place, function)| Some((function.counter, *words.get(SLOW + place)?)))
        .collect()
}

fn attach(machine: &Machine, ebpf: &mut Ebpf, function: &Function) -> Result<FEntryLink, Refusal> {
    let failed = |error| refused(&format!("the entry of {}", function.name), &error);
    let program = named::<FEntry>(ebpf, &program(function.event))?;
    program.load(function.name, &machine.btf).map_err(failed)?;
    let link = program.attach().map_err(failed)?;
    program.take_link(link).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [u64; 16] = [1, 2, 3, 4, 50, 60, 70, 80, 9, 9, 9, 9, 9, 9, 9, 9];

    #[test]
    fn calls_are_counters_only_where_the_kernel_counts_them_so() {
        let before = of(|_| true, &WORDS, Era::CpuSlabs);
        let all = [
            (CounterId::AllocSlowpath, 50),
            (CounterId::FreeSlowpath, 60),
            (CounterId::AllocSlab, 70),
            (CounterId::FreeSlab, 80),
        ];
        assert_eq!(before, all);
        assert_eq!(of(|_| true, &WORDS, Era::Mixed), all);
        let later = of(|_| true, &WORDS, Era::Sheaves);
        assert_eq!(later, [all[0], all[2], all[3]], "flushes are no slow frees");
    }

    #[test]
    fn a_function_that_is_not_there_is_no_counter() {
        let found = of(|place| place != 1, &WORDS, Era::CpuSlabs);
        assert!(!found.iter().any(|(id, _)| *id == CounterId::FreeSlowpath));
        assert_eq!(found.len(), 3);
    }
}
