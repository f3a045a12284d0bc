//! One table of the attribute files: what each is, what it costs, where it goes.
//!
//! Source: mm/slub.c and Documentation/ABI/testing/sysfs-kernel-slab, Linux
//! 2.6.22 to 7.3.

use crate::model::{
    Approx, Cache, CounterId, CpuPart, Ctor, Flag, Layer, NodeId, NodePart, Objects, Quantity,
    QuantitySet, Slabs,
};
use crate::parse::sysfs;

/// How often an attribute can change, and what reading it costs the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// Fixed when the cache is created: read once.
    Static,
    /// Changes; no list is walked.
    Dynamic,
    /// Walks the partial list under `list_lock` with interrupts off.
    Walk,
}

/// What is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Number(Quantity),
    Nodes(Quantity),
    CpuPartial,
    Flag(Flag),
    Ctor,
    Counter(CounterId),
}

/// One attribute file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attribute {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) cost: Cost,
}

const fn number(q: Quantity, cost: Cost) -> Attribute {
    Attribute {
        name: match q {
            Quantity::AliasCount => "aliases",
            q => q.name(),
        },
        form: Form::Number(q),
        cost,
    }
}

const fn nodes(q: Quantity, cost: Cost) -> Attribute {
    Attribute {
        name: q.name(),
        form: Form::Nodes(q),
        cost,
    }
}

const fn fixed(flag: Flag) -> Attribute {
    Attribute {
        name: flag.name(),
        form: Form::Flag(flag),
        cost: Cost::Static,
    }
}

/// Everything but the counters. `partial` stands before the two that walk, so
/// that the length of the list is known before it is walked.
pub(super) const ATTRIBUTES: &[Attribute] = &[
    number(Quantity::ObjectSize, Cost::Static),
    number(Quantity::SlabSize, Cost::Static),
    number(Quantity::ObjsPerSlab, Cost::Static),
    number(Quantity::Order, Cost::Static),
    number(Quantity::Align, Cost::Static),
    number(Quantity::Usersize, Cost::Static),
    number(Quantity::SheafCapacity, Cost::Static),
    number(Quantity::AliasCount, Cost::Dynamic),
    number(Quantity::MinPartial, Cost::Dynamic),
    number(Quantity::CpuPartial, Cost::Dynamic),
    number(Quantity::RemoteNodeDefragRatio, Cost::Dynamic),
    Attribute {
        // 2.6.22 to 2.6.24
        name: "defrag_ratio",
        form: Form::Number(Quantity::RemoteNodeDefragRatio),
        cost: Cost::Dynamic,
    },
    Attribute {
        name: "ctor",
        form: Form::Ctor,
        cost: Cost::Static,
    },
    fixed(Flag::CacheDma),
    fixed(Flag::HwcacheAlign),
    fixed(Flag::Poison),
    fixed(Flag::ReclaimAccount),
    fixed(Flag::RedZone),
    fixed(Flag::SanityChecks),
    fixed(Flag::StoreUser),
    fixed(Flag::Trace),
    fixed(Flag::DestroyByRcu),
    fixed(Flag::Failslab),
    nodes(Quantity::Partial, Cost::Dynamic),
    nodes(Quantity::Slabs, Cost::Dynamic),
    nodes(Quantity::TotalObjects, Cost::Dynamic),
    nodes(Quantity::CpuSlabs, Cost::Dynamic),
    Attribute {
        name: "slabs_cpu_partial",
        form: Form::CpuPartial,
        cost: Cost::Dynamic,
    },
    nodes(Quantity::Objects, Cost::Walk),
    nodes(Quantity::ObjectsPartial, Cost::Walk),
];

/// The attributes that are event counters.
pub(super) fn counters() -> impl Iterator<Item = Attribute> {
    let ids = CounterId::ALL.iter().filter(|id| id.is_of_kernel());
    ids.map(|id| Attribute {
        name: id.name(),
        form: Form::Counter(*id),
        cost: Cost::Dynamic,
    })
}

/// What the text of an attribute came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// All of it is in the cache.
    Whole,
    /// The kernel cut the list at the end of its page.
    Cut,
    /// It does not parse.
    Broken,
}

impl Stored {
    const fn list(cut: bool) -> Self {
        if cut { Self::Cut } else { Self::Whole }
    }
}

/// Puts the text of an attribute into the cache.
pub(super) fn store(cache: &mut Cache, attribute: &Attribute, text: &str) -> Stored {
    let layer = Layer::Sysfs;
    cache.layers.insert(layer);
    let stored = match attribute.form {
        Form::Number(q) => sysfs::number(text).map(|v| {
            cache.set_exact(q, v, layer);
            Stored::Whole
        }),
        Form::Nodes(q) => sysfs::node_list(text).map(|list| {
            store_nodes(cache, q, &list);
            Stored::list(list.cut)
        }),
        Form::CpuPartial => sysfs::cpu_partial(text).map(|list| {
            store_cpu_partial(cache, &list);
            Stored::list(list.cut)
        }),
        Form::Flag(flag) => sysfs::flag(text).map(|v| {
            cache.flags.put(flag, v);
            Stored::Whole
        }),
        Form::Ctor => {
            let symbol = text.trim();
            cache.ctor = if symbol.is_empty() {
                Ctor::None
            } else {
                Ctor::Symbol(symbol.into())
            };
            Some(Stored::Whole)
        }
        Form::Counter(id) => sysfs::stat(text).map(|list| {
            let counters = cache.counters.get_or_insert_default();
            counters.0.push(crate::model::Counter {
                id,
                total: list.total,
                cpus: list.cpus,
            });
            Stored::list(list.cut)
        }),
    };
    stored.unwrap_or(Stored::Broken)
}

fn store_nodes(cache: &mut Cache, q: Quantity, list: &sysfs::NodeList) {
    cache.set_exact(q, list.total, Layer::Sysfs);
    for (node, value) in &list.nodes {
        let value = *value;
        let part = node_part(cache, *node);
        match q {
            Quantity::Slabs => part.slabs = Some(Slabs(value)),
            Quantity::Objects => part.objects = Some(Objects(value)),
            Quantity::TotalObjects => part.total_objects = Some(Objects(value)),
            Quantity::Partial => part.partial = Some(Slabs(value)),
            Quantity::ObjectsPartial => part.objects_partial = Some(Objects(value)),
            Quantity::CpuSlabs => part.cpu_slabs = Some(Slabs(value)),
            _ => {}
        }
    }
}

/// The part of that node, made when it is new; parts stay sorted.
pub(super) fn node_part(cache: &mut Cache, node: NodeId) -> &mut NodePart {
    let at = match cache.nodes.binary_search_by_key(&node, |p| p.node) {
        Ok(at) => at,
        Err(at) => {
            cache.nodes.insert(at, NodePart::new(node));
            at
        }
    };
    &mut cache.nodes[at]
}

fn store_cpu_partial(cache: &mut Cache, list: &sysfs::CpuPartial) {
    cache.set_exact(Quantity::SlabsCpuPartial, list.slabs, Layer::Sysfs);
    // Since Linux 5.16 the kernel no longer counts the objects and prints half
    // of the capacity ("mm/slub: convert PARTIAL_FREE to slabs").
    let half = cache
        .get(Quantity::ObjsPerSlab)
        .and_then(|n| n.value.checked_mul(list.slabs))
        .map(|capacity| capacity / 2);
    let figure = Approx {
        value: list.objects,
        approx: list.slabs > 0 && half.is_none_or(|half| half.abs_diff(list.objects) <= 1),
    };
    cache.set(Quantity::ObjectsCpuPartial, figure, Layer::Sysfs);
    for (cpu, objects, slabs) in &list.cpus {
        let mut part = CpuPart::new(*cpu);
        part.objects_cpu_partial = Some(Objects(*objects));
        part.slabs_cpu_partial = Some(Slabs(*slabs));
        cache.cpus.push(part);
    }
}

/// Gives every node named anywhere a 0 where the kernel left it out of a list
/// that was read, since it leaves only zeros out. Of the lists in `cut` the end
/// is missing, so that a node left out of them is unknown.
pub(super) fn complete_nodes(cache: &mut Cache, cut: QuantitySet) {
    let read = cache.known();
    let from_sysfs =
        |q: Quantity| read.contains(q) && !cut.contains(q) && cache.origin(q) == Some(Layer::Sysfs);
    let have = [
        from_sysfs(Quantity::Slabs),
        from_sysfs(Quantity::Objects),
        from_sysfs(Quantity::TotalObjects),
        from_sysfs(Quantity::Partial),
        from_sysfs(Quantity::ObjectsPartial),
        from_sysfs(Quantity::CpuSlabs),
    ];
    for part in &mut cache.nodes {
        let zero_slabs = |slot: &mut Option<Slabs>, have| {
            if have {
                slot.get_or_insert_default();
            }
        };
        let zero_objects = |slot: &mut Option<Objects>, have| {
            if have {
                slot.get_or_insert_default();
            }
        };
        zero_slabs(&mut part.slabs, have[0]);
        zero_objects(&mut part.objects, have[1]);
        zero_objects(&mut part.total_objects, have[2]);
        zero_slabs(&mut part.partial, have[3]);
        zero_objects(&mut part.objects_partial, have[4]);
        zero_slabs(&mut part.cpu_slabs, have[5]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CacheId;

    fn attribute(name: &str) -> Attribute {
        *ATTRIBUTES.iter().find(|a| a.name == name).unwrap()
    }

    #[test]
    fn the_walk_comes_after_the_length_of_the_list() {
        let at = |name| ATTRIBUTES.iter().position(|a| a.name == name).unwrap();
        assert!(at("partial") < at("objects"));
        assert!(at("partial") < at("objects_partial"));
        // slabs_cpu_partial is judged with the help of objs_per_slab.
        assert!(at("objs_per_slab") < at("slabs_cpu_partial"));
    }

    #[test]
    fn half_the_capacity_is_an_estimate_and_a_count_is_not() {
        let mut cache = Cache::new(CacheId(0), "x");
        assert_eq!(
            store(&mut cache, &attribute("objs_per_slab"), "21\n"),
            Stored::Whole
        );
        assert_eq!(
            store(
                &mut cache,
                &attribute("slabs_cpu_partial"),
                "42(4) C1=42(4)\n"
            ),
            Stored::Whole
        );
        assert!(cache.get(Quantity::ObjectsCpuPartial).unwrap().approx);
        assert_eq!(
            store(
                &mut cache,
                &attribute("slabs_cpu_partial"),
                "5(5) C0=2(2) C1=3(3)\n"
            ),
            Stored::Whole
        );
        assert!(!cache.get(Quantity::ObjectsCpuPartial).unwrap().approx);
    }

    #[test]
    fn a_node_left_out_of_a_list_has_zero() {
        let mut cache = Cache::new(CacheId(0), "x");
        store(&mut cache, &attribute("slabs"), "8 N0=4 N1=4\n");
        store(&mut cache, &attribute("partial"), "1 N1=1\n");
        complete_nodes(&mut cache, QuantitySet::EMPTY);
        assert_eq!(cache.nodes[0].partial, Some(Slabs(0)));
        assert_eq!(cache.nodes[1].partial, Some(Slabs(1)));
        assert_eq!(cache.nodes[0].objects, None, "not read");
    }

    #[test]
    fn rubbish_is_refused() {
        let mut cache = Cache::new(CacheId(0), "x");
        for name in ["slabs", "order", "poison", "slabs_cpu_partial"] {
            let stored = store(&mut cache, &attribute(name), "nonsense\n");
            assert_eq!(stored, Stored::Broken, "{name}");
        }
        assert!(cache.known().is_empty());
    }
}
