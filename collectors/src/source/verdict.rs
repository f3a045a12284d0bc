//! What validations of engines found, in words.
//!
//! Source of truth: `slabcore::Engine::validate` and `slabcore::inspect`, which confirm each
//! finding before they tell it, and count what did not hold still.

use std::borrow::Cow;
use std::collections::BTreeMap;

use slabcore::finding::Finding;
use slabcore::validate::Validation;

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
    pub code: Cow<'static, str>,
    /// What is wrong, for people.
    pub message: String,
}

/// What several passes over an engine found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Caches looked at in the last pass.
    pub caches: u64,
    /// Slabs looked at in the last pass.
    pub slabs: u64,
    /// Passes.
    pub passes: u32,
    /// Looks at a slab, over all passes, that did not hold still.
    pub unchecked: u64,
    /// Looks at a cache, over all passes, that moved all the time: nothing is said of it.
    pub moving: u64,
    /// The faults, each once.
    pub faults: Vec<Fault>,
    /// Faults that are not listed, over all passes.
    pub more: u64,
    /// A look came to its limit: what is beyond was not checked.
    pub cut: bool,
}

impl Verdict {
    /// Adds one pass over an engine whose caches have these names.
    pub(super) fn add(&mut self, found: &Validation, names: &BTreeMap<u32, String>) {
        self.unchecked += found.unchecked;
        self.moving += found.moving;
        self.more += found.more;
        self.cut |= found.cut;
        for finding in &found.findings {
            self.tell(fault(finding, names));
        }
    }

    /// Each fault is told once.
    pub(super) fn tell(&mut self, fault: Fault) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }
}

fn fault(finding: &Finding, names: &BTreeMap<u32, String>) -> Fault {
    let name = names.get(&finding.cache).cloned();
    Fault {
        cache: name.unwrap_or_else(|| format!("cache {}", finding.cache)),
        node: finding.node,
        slab: finding.slab.map(|at| at as u64),
        code: finding.kind.code().into(),
        message: finding.kind.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_with_the_name_of_its_cache_and_where_it_is() {
        let names = BTreeMap::from([(3, "demo_leak".to_owned())]);
        let kind = slabcore::finding::Fault::Cycle { object: 7 };
        let mut finding = Finding::new(3, 1, kind).in_slab(0x7000);
        let told = fault(&finding, &names);
        assert_eq!((&*told.cache, told.node), ("demo_leak", 1));
        assert_eq!((told.slab, told.code), (Some(0x7000), "cycle".into()));
        assert_eq!(told.message, "object 7 is in the free list twice");
        (finding.cache, finding.slab) = (9, None);
        let told = fault(&finding, &names);
        assert_eq!((&*told.cache, told.slab), ("cache 9", None));
    }
}
