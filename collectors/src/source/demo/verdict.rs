//! What a validation of the engine found, in words.
//!
//! Source of truth: `slabcore::Engine::validate`, which confirms each finding
//! before it tells it, and which counts what did not hold still.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use slabcore::Engine;
use slabcore::validate::{Fault as Kind, Finding};

/// How often everything is looked at.
const PASSES: u32 = 10;
/// Time that the load has between two passes.
const BETWEEN: Duration = Duration::from_millis(10);

/// One fault and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Name of the cache.
    pub cache: String,
    /// Node.
    pub node: u32,
    /// Address of the slab; `None` when it is not about one slab.
    pub slab: Option<u64>,
    /// Stable name of the kind of fault.
    pub code: &'static str,
    /// What is wrong, for people.
    pub message: String,
}

/// What several passes over an engine found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Caches looked at.
    pub caches: u64,
    /// Slabs looked at in the last pass.
    pub slabs: u64,
    /// Passes.
    pub passes: u32,
    /// Looks at a slab, over all passes, that did not hold still.
    pub unchecked: u64,
    /// The faults, each once.
    pub faults: Vec<Fault>,
    /// Faults that are not listed, over all passes.
    pub more: u64,
}

pub(super) fn look(engine: &Engine) -> Verdict {
    let caches = engine.snapshot().caches;
    let names: BTreeMap<u32, String> = caches.into_iter().map(|c| (c.id, c.name)).collect();
    let mut verdict = Verdict {
        caches: names.len() as u64,
        ..Verdict::default()
    };
    for _ in 0..PASSES {
        let found = engine.validate();
        verdict.passes += 1;
        verdict.slabs = found.slabs;
        verdict.unchecked += found.unchecked;
        verdict.more += found.more;
        for finding in &found.findings {
            let fault = fault(finding, &names);
            if !verdict.faults.contains(&fault) {
                verdict.faults.push(fault);
            }
        }
        thread::sleep(BETWEEN);
    }
    verdict
}

fn fault(finding: &Finding, names: &BTreeMap<u32, String>) -> Fault {
    let (code, message) = words(&finding.fault);
    let name = names.get(&finding.cache).cloned();
    Fault {
        cache: name.unwrap_or_else(|| format!("cache {}", finding.cache)),
        node: finding.node,
        slab: Some(finding.slab as u64).filter(|at| *at != 0),
        code,
        message,
    }
}

fn words(kind: &Kind) -> (&'static str, String) {
    match *kind {
        Kind::PartialCount { found, counted } => (
            "partial-count",
            format!("{found} slabs on the partial list, {counted} by its counter"),
        ),
        Kind::ListBroken => ("list-broken", "the partial list's links do not fit".into()),
        Kind::OnNodeFlag => (
            "on-node-flag",
            "the mark of being on the partial list is wrong".into(),
        ),
        Kind::ForeignSlab => (
            "foreign-slab",
            "a slab of another cache or node is on the partial list".into(),
        ),
        Kind::ListedFrozen => (
            "listed-frozen",
            "a slab on the partial list is held by a CPU".into(),
        ),
        Kind::Counts { inuse, objects } => (
            "counts",
            format!("{inuse} objects in use of {objects}, which cannot be"),
        ),
        Kind::BadLink { object, link } => (
            "bad-link",
            match object {
                u16::MAX => format!("the free list begins outside the slab ({link})"),
                _ => format!("the link of object {object} leads out of the slab ({link})"),
            },
        ),
        Kind::Cycle { object } => ("cycle", format!("object {object} is free twice")),
        Kind::FreeCount { found, counted } => (
            "free-count",
            format!("{found} objects in the free list, {counted} by the counts"),
        ),
        Kind::PageMap { page } => (
            "page-map",
            format!("page {page} of the slab leads elsewhere"),
        ),
        Kind::SlabCount { found, counted } => (
            "slab-count",
            format!("{found} slabs found, {counted} by the counters"),
        ),
        Kind::BarnObject => (
            "barn-object",
            "a full sheaf of the barn holds something that is no object of the cache".into(),
        ),
        Kind::BarnObjectFree { object } => (
            "barn-object-free",
            format!("object {object} is in a sheaf of the barn and in its slab's free list"),
        ),
        // The list of kinds may grow.
        other => ("other", format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_with_the_name_of_its_cache_and_where_it_is() {
        let names = BTreeMap::from([(3, "demo_leak".to_owned())]);
        let mut finding = Finding {
            cache: 3,
            node: 1,
            slab: 0x7000,
            fault: Kind::Cycle { object: 7 },
        };
        let told = fault(&finding, &names);
        assert_eq!((&*told.cache, told.node), ("demo_leak", 1));
        assert_eq!((told.slab, told.code), (Some(0x7000), "cycle"));
        assert_eq!(told.message, "object 7 is free twice");
        (finding.cache, finding.slab) = (9, 0);
        let told = fault(&finding, &names);
        assert_eq!((&*told.cache, told.slab), ("cache 9", None));
    }
}
