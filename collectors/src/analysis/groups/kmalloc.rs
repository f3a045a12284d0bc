//! The caches behind kmalloc, by size and family.

use std::collections::BTreeMap;

use super::memcg_owner;
use crate::analysis::totals::Totals;
use crate::model::Cache;

/// Which set of general-purpose caches a size class belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KmallocFamily {
    /// `kmalloc-N`.
    Normal,
    /// `kmalloc-rcl-N` (4.20 and later): reclaimable.
    Reclaim,
    /// `kmalloc-cg-N` (5.14 and later): charged to a control group.
    Cgroup,
    /// `dma-kmalloc-N`, `kmalloc_dma-N` before 2.6.36: from the DMA zone.
    Dma,
    /// `kmalloc-rnd-NN-N` (6.6 and later): one of several copies, chosen per call
    /// site. The first copy is the normal family.
    Random,
    /// `kmalloc-no-objext-N` (7.3): never given an extension vector.
    NoObjExt,
    /// `size-N` of SLAB.
    SizeN,
    /// `size-N(DMA)` of SLAB.
    SizeNDma,
    /// A set of buckets for one kind of user, such as `msg_msg-N` (6.11 and
    /// later). Sized like kmalloc's caches but apart from them.
    Bucket,
}

impl KmallocFamily {
    /// The name in machine output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Reclaim => "reclaim",
            Self::Cgroup => "cgroup",
            Self::Dma => "dma",
            Self::Random => "random",
            Self::NoObjExt => "no-objext",
            Self::SizeN => "size-n",
            Self::SizeNDma => "size-n-dma",
            Self::Bucket => "bucket",
        }
    }
}

/// What the name of a size class says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KmallocClass {
    /// Which set.
    pub family: KmallocFamily,
    /// Which copy, for [`KmallocFamily::Random`].
    pub copy: Option<u8>,
    /// Largest request it serves, in bytes.
    pub size: u64,
}

const PREFIXES: [(&str, KmallocFamily); 7] = [
    ("kmalloc-rcl-", KmallocFamily::Reclaim),
    ("kmalloc-cg-", KmallocFamily::Cgroup),
    ("kmalloc-no-objext-", KmallocFamily::NoObjExt),
    ("kmalloc-", KmallocFamily::Normal),
    ("dma-kmalloc-", KmallocFamily::Dma),
    ("kmalloc_dma-", KmallocFamily::Dma),
    ("size-", KmallocFamily::SizeN),
];

/// The bucket sets of current kernels; other caches end in numbers too
/// (`biovec-64`, `sgpool-8`), so a set is known only by its name.
const BUCKETS: [&str; 2] = ["msg_msg-", "memdup_user-"];

/// The class of a kmalloc cache, or `None` for every other name.
pub fn kmalloc_class(name: &str) -> Option<KmallocClass> {
    let class = |family, copy, size: &str| {
        Some(KmallocClass {
            family,
            copy,
            size: class_size(size)?,
        })
    };
    if let Some(rest) = name.strip_prefix("kmalloc-rnd-") {
        let (copy, size) = rest.split_once('-')?;
        let copy = digits(copy).then(|| copy.parse().ok()).flatten()?;
        return class(KmallocFamily::Random, Some(copy), size);
    }
    if let Some(size) = name
        .strip_prefix("size-")
        .and_then(|rest| rest.strip_suffix("(DMA)"))
    {
        return class(KmallocFamily::SizeNDma, None, size);
    }
    PREFIXES.iter().find_map(|(prefix, family)| {
        let size = name.strip_prefix(prefix)?;
        class(*family, None, size)
    })
}

/// The class of a kmalloc cache or of a bucket.
pub fn size_class(name: &str) -> Option<KmallocClass> {
    kmalloc_class(name).or_else(|| {
        BUCKETS.iter().find_map(|prefix| {
            Some(KmallocClass {
                family: KmallocFamily::Bucket,
                copy: None,
                size: class_size(name.strip_prefix(prefix)?)?,
            })
        })
    })
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// `64`, `1k`, `4M`.
fn class_size(text: &str) -> Option<u64> {
    let (number, shift) = match text.as_bytes().last()? {
        b'k' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        _ => (text, 0),
    };
    if !digits(number) {
        return None;
    }
    let size = number.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (size > 0).then_some(size)
}

/// All caches of one size, over all families.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyTotals {
    /// Largest request they serve, in bytes.
    pub size: u64,
    /// Sums over all variants.
    pub totals: Totals,
    /// Sums by family; the copies of the random family are together.
    pub variants: Vec<VariantTotals>,
}

/// The caches of one size and family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariantTotals {
    /// Which set.
    pub family: KmallocFamily,
    /// Sums over its caches.
    pub totals: Totals,
}

/// Sums kmalloc caches and buckets by size, then by family, both ascending.
///
/// Per-cgroup copies (`kmalloc-64(123:container)`) count with their base.
pub fn families(caches: &[Cache], page_size: u64) -> Vec<FamilyTotals> {
    let mut sizes: BTreeMap<u64, BTreeMap<KmallocFamily, Vec<&Cache>>> = BTreeMap::new();
    for cache in caches {
        let base = memcg_owner(&cache.name).map_or(&*cache.name, |owner| owner.base);
        if let Some(class) = size_class(base) {
            let variants = sizes.entry(class.size).or_default();
            variants.entry(class.family).or_default().push(cache);
        }
    }
    sizes
        .into_iter()
        .map(|(size, variants)| FamilyTotals {
            size,
            totals: Totals::of(variants.values().flatten().copied(), page_size),
            variants: variants
                .into_iter()
                .map(|(family, caches)| VariantTotals {
                    family,
                    totals: Totals::of(caches, page_size),
                })
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Approx, Bytes, CacheId, Layer, Quantity};
    use proptest::prelude::*;

    fn parsed(name: &str) -> Option<(KmallocFamily, u64)> {
        kmalloc_class(name).map(|c| (c.family, c.size))
    }

    #[test]
    fn every_spelling_of_a_size_class_is_known() {
        use KmallocFamily::{Cgroup, Dma, NoObjExt, Normal, Random, Reclaim, SizeN, SizeNDma};
        let cases = [
            ("kmalloc-64", Normal, 64),
            ("kmalloc-1024", Normal, 1024),
            ("kmalloc-1k", Normal, 1024),
            ("kmalloc-4194304", Normal, 4 << 20),
            ("kmalloc-4M", Normal, 4 << 20),
            ("kmalloc-rcl-96", Reclaim, 96),
            ("kmalloc-cg-8k", Cgroup, 8192),
            ("dma-kmalloc-192", Dma, 192),
            ("kmalloc_dma-512", Dma, 512),
            ("kmalloc-no-objext-16", NoObjExt, 16),
            ("kmalloc-rnd-07-64", Random, 64),
            ("size-131072", SizeN, 131_072),
            ("size-64(DMA)", SizeNDma, 64),
        ];
        for (name, family, size) in cases {
            assert_eq!(parsed(name), Some((family, size)), "{name}");
        }
        assert_eq!(kmalloc_class("kmalloc-rnd-07-64").unwrap().copy, Some(7));
    }

    #[test]
    fn other_names_are_not_kmalloc() {
        for name in [
            "msg_msg-64",
            "kmalloc-node",
            "kmalloc-",
            "kmalloc-64 ",
            "kmalloc-+64",
            "kmalloc-0",
            "kmalloc-99999999999999999999k",
            "kmalloc-18446744073709551615k",
            "kmalloc-rnd-64",
            "kmalloc-rnd-999-64",
            "biovec-64",
            "size-é",
            "size-64(DMA",
        ] {
            assert_eq!(kmalloc_class(name), None, "{name}");
        }
    }

    #[test]
    fn buckets_have_a_family_of_their_own() {
        let class = size_class("msg_msg-1k").unwrap();
        assert_eq!((class.family, class.size), (KmallocFamily::Bucket, 1024));
        assert_eq!(size_class("biovec-64"), None);
        assert_eq!(size_class("sgpool-8"), None);
    }

    fn cache(name: &str, slabs: u64) -> Cache {
        let mut cache = Cache::new(CacheId(0), name);
        cache.set_exact(Quantity::Slabs, slabs, Layer::Slabinfo);
        cache.set_exact(Quantity::PagesPerSlab, 1, Layer::Slabinfo);
        cache
    }

    #[test]
    fn sizes_sum_over_their_variants_and_copies() {
        let caches = [
            cache("kmalloc-1k", 5),
            cache("kmalloc-rnd-01-64", 1),
            cache("dentry", 100),
            cache("kmalloc-rnd-15-64", 2),
            cache("kmalloc-64", 4),
            cache("kmalloc-64(12:web)", 8),
            cache("msg_msg-64", 16),
        ];
        let families = families(&caches, 4096);
        let memory = |t: &Totals| t.memory.total.unwrap();
        assert_eq!(
            families.iter().map(|f| f.size).collect::<Vec<_>>(),
            [64, 1024]
        );
        assert_eq!(memory(&families[0].totals), Approx::exact(Bytes(31 * 4096)));
        let variants: Vec<_> = families[0]
            .variants
            .iter()
            .map(|v| {
                (
                    v.family,
                    v.totals.caches,
                    memory(&v.totals).value.get() / 4096,
                )
            })
            .collect();
        assert_eq!(
            variants,
            [
                (KmallocFamily::Normal, 2, 12),
                (KmallocFamily::Random, 2, 3),
                (KmallocFamily::Bucket, 1, 16)
            ]
        );
    }

    proptest! {
        #[test]
        fn no_name_breaks_the_parser(name in "(kmalloc-|size-|kmalloc-rnd-)?\\PC{0,20}") {
            let _ = size_class(&name);
        }
    }
}
