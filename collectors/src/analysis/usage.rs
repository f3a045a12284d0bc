//! Memory held, memory used, and where the difference goes.
//!
//! For a cache whose slabs are all of the preferred order
//! `memory = used + slack + free + padding`, exactly:
//!
//! * `used`: payload of the objects in use, `objects * object_size`;
//! * `slack`: metadata and alignment in their slots, `objects * (slab_size - object_size)`;
//! * `free`: slots without an object in use, `(total_objects - objects) * slab_size`;
//! * `padding`: the tail of each slab, `slabs * (slab bytes - objs_per_slab * slab_size)`.
//!
//! `objects` counts free objects parked in CPU slabs, sheaves and barns as in
//! use, so `used` is an upper bound; no formula here can know better. Where the
//! source sees those (`parked`), they count as `free`.

use crate::model::{Approx, Bytes, Cache, Objects, Slabs};

/// Derived memory figures of one cache. `None`: the source lacks what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Bytes held: `slabs * pages_per_slab * page_size`. An upper bound,
    /// marked, where slabs of a smaller fallback order are among them.
    pub memory: Option<Approx<Bytes>>,
    /// Bytes of payload in use. With only the slot size known, the slots in
    /// use, marked.
    pub used: Option<Approx<Bytes>>,
    /// `memory - used`.
    pub loss: Option<Approx<Bytes>>,
    /// Lost to metadata and alignment inside the slots in use.
    pub slack: Option<Approx<Bytes>>,
    /// Lost to slots without an object in use.
    pub free: Option<Approx<Bytes>>,
    /// Lost at the end of each slab.
    pub padding: Option<Approx<Bytes>>,
    /// `used / memory`, 0 to 1; `None` for a cache that holds nothing.
    pub utilization: Option<Approx<f64>>,
    /// `objects / total_objects`, 0 to 1; `None` for an empty cache.
    pub object_use: Option<Approx<f64>>,
    /// `1 - objects / total_objects`: the share of slots that hold no object.
    pub fragmentation: Option<Approx<f64>>,
    /// Objects that slabs of the preferred order would hold beyond
    /// `total_objects`: more than 0 means slabs of a fallback order.
    pub fallback_deficit: Option<Objects>,
}

impl Usage {
    /// Derives the figures of `cache` on a machine with pages of `page_size` bytes.
    pub fn of(cache: &Cache, page_size: u64) -> Self {
        let fallback_deficit = fallback_deficit(cache);
        let memory = memory(cache, page_size, fallback_deficit);
        let used = used(cache);
        let mut usage = Self {
            memory,
            used,
            loss: pair(memory, used).map(|(m, u)| m.zip_with(u, Bytes::saturating_sub)),
            slack: slack(cache),
            free: free(cache),
            padding: padding(cache, page_size, fallback_deficit),
            utilization: None,
            object_use: object_use(cache),
            fragmentation: None,
            fallback_deficit,
        };
        usage.utilization = ratio(
            used.map(|u| u.map(Bytes::get)),
            memory.map(|m| m.map(Bytes::get)),
        );
        usage.fragmentation = usage.object_use.map(|r| r.map(|r| 1.0 - r));
        usage
    }
}

fn pair<A, B>(a: Option<A>, b: Option<B>) -> Option<(A, B)> {
    Some((a?, b?))
}

/// A ratio held inside 0..=1; one that had to be cut is marked.
fn ratio(part: Option<Approx<u64>>, whole: Option<Approx<u64>>) -> Option<Approx<f64>> {
    let (part, whole) = pair(part, whole)?;
    if whole.value == 0 {
        return None;
    }
    let cut = part.value > whole.value;
    let mut ratio = part.zip_with(whole, |p, w| (p as f64 / w as f64).min(1.0));
    ratio.approx |= cut;
    Some(ratio)
}

fn object_use(cache: &Cache) -> Option<Approx<f64>> {
    ratio(
        cache.objects().map(|o| o.map(Objects::get)),
        cache.total_objects().map(|o| o.map(Objects::get)),
    )
}

/// See [`Usage::fallback_deficit`].
pub(super) fn fallback_deficit(cache: &Cache) -> Option<Objects> {
    let slabs = cache.slabs()?;
    let total = cache.total_objects()?;
    let per_slab = cache.objs_per_slab()?;
    if slabs.approx || total.approx {
        return None;
    }
    let full = slabs.value.get().checked_mul(per_slab.value.get())?;
    Some(Objects(full.saturating_sub(total.value.get())))
}

fn memory(cache: &Cache, page_size: u64, deficit: Option<Objects>) -> Option<Approx<Bytes>> {
    let from_slabs = pair(cache.slabs(), cache.pages_per_slab()).and_then(|(slabs, pages)| {
        let slab_bytes = pages.checked_mul(page_size)?;
        let bytes = slabs.value.get().checked_mul(slab_bytes)?;
        Some(Approx {
            value: Bytes(bytes),
            approx: slabs.approx || deficit.is_some_and(|d| d > Objects(0)),
        })
    });
    from_slabs.or_else(|| {
        cache
            .get(crate::model::Quantity::ReportedTotal)
            .map(|f| f.map(Bytes))
    })
}

fn used(cache: &Cache) -> Option<Approx<Bytes>> {
    let from_objects = cache.objects().and_then(|objects| {
        let (size, only_slot) = match (cache.object_size(), cache.slab_size()) {
            (Some(size), _) => (size, false),
            (None, Some(slot)) => (slot, true),
            (None, None) => return None,
        };
        let bytes = objects.value.get().checked_mul(size.value.get())?;
        Some(Approx {
            value: Bytes(bytes),
            approx: objects.approx || size.approx || only_slot,
        })
    });
    from_objects.or_else(|| {
        cache
            .get(crate::model::Quantity::ReportedUsed)
            .map(|f| f.map(Bytes))
    })
}

fn slack(cache: &Cache) -> Option<Approx<Bytes>> {
    let (objects, sizes) = pair(
        cache.objects(),
        pair(cache.object_size(), cache.slab_size()),
    )?;
    let (object, slot) = sizes;
    let each = slot.zip_with(object, Bytes::saturating_sub);
    Some(objects.zip_with(each, |n, b| Bytes(n.get().saturating_mul(b.get()))))
}

fn free(cache: &Cache) -> Option<Approx<Bytes>> {
    let (objects, total) = pair(cache.objects(), cache.total_objects())?;
    let unused = total.zip_with(objects, Objects::saturating_sub);
    let slot = cache.slab_size()?;
    Some(unused.zip_with(slot, |n, b| Bytes(n.get().saturating_mul(b.get()))))
}

fn padding(cache: &Cache, page_size: u64, deficit: Option<Objects>) -> Option<Approx<Bytes>> {
    let slab_bytes = Bytes(cache.pages_per_slab()?.checked_mul(page_size)?);
    let (per_slab, slot) = pair(cache.objs_per_slab(), cache.slab_size())?;
    let tail = per_slab.zip_with(slot, |n, b| {
        slab_bytes.saturating_sub(Bytes(n.get().saturating_mul(b.get())))
    });
    let slabs = cache.slabs()?;
    let mut padding = slabs.zip_with(tail, |n: Slabs, b| Bytes(n.get().saturating_mul(b.get())));
    padding.approx |= deficit.is_some_and(|d| d > Objects(0));
    Some(padding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing;
    use crate::model::{Layer, Quantity};

    fn dentry() -> Cache {
        testing::cache(
            "test",
            &[
                (Quantity::ObjectSize, 184),
                (Quantity::SlabSize, 192),
                (Quantity::ObjsPerSlab, 21),
                (Quantity::Order, 0),
                (Quantity::Objects, 400),
                (Quantity::TotalObjects, 420),
                (Quantity::Slabs, 20),
            ],
        )
    }

    #[test]
    fn the_parts_add_up_to_the_memory_held() {
        let usage = Usage::of(&dentry(), 4096);
        let sum: Bytes = [usage.used, usage.slack, usage.free, usage.padding]
            .into_iter()
            .map(|p| p.unwrap().value)
            .sum();
        assert_eq!(usage.memory, Some(Approx::exact(Bytes(81_920))));
        assert_eq!(sum, Bytes(81_920));
        assert_eq!(usage.loss, Some(Approx::exact(Bytes(81_920 - 400 * 184))));
        assert_eq!(usage.fallback_deficit, Some(Objects(0)));
    }

    #[test]
    fn fallback_slabs_make_the_memory_an_upper_bound() {
        // ext4_inode_cache of a 5.4 host: 171,921 objects where 5,931 slabs of 29 fit.
        let cache = testing::cache(
            "test",
            &[
                (Quantity::SlabSize, 1096),
                (Quantity::ObjsPerSlab, 29),
                (Quantity::PagesPerSlab, 8),
                (Quantity::Objects, 142_352),
                (Quantity::TotalObjects, 171_921),
                (Quantity::Slabs, 5931),
            ],
        );
        let usage = Usage::of(&cache, 4096);
        assert_eq!(usage.fallback_deficit, Some(Objects(78)));
        assert_eq!(usage.memory, Some(Approx::estimate(Bytes(5931 * 32_768))));
        assert!(usage.used.unwrap().approx, "only the slot size is known");
    }

    #[test]
    fn a_race_is_cut_and_marked() {
        let mut cache = dentry();
        cache.set_exact(Quantity::Objects, 500, Layer::Sysfs);
        let usage = Usage::of(&cache, 4096);
        assert_eq!(usage.object_use, Some(Approx::estimate(1.0)));
        assert_eq!(usage.free, Some(Approx::exact(Bytes(0))));
    }

    #[test]
    fn nothing_known_gives_nothing() {
        assert_eq!(
            Usage::of(&testing::cache("test", &[]), 4096),
            Usage::default()
        );
        let empty = testing::cache(
            "test",
            &[
                (Quantity::Objects, 0),
                (Quantity::TotalObjects, 0),
                (Quantity::Slabs, 0),
                (Quantity::Order, 0),
            ],
        );
        let usage = Usage::of(&empty, 4096);
        assert_eq!(usage.memory, Some(Approx::exact(Bytes(0))));
        assert_eq!(usage.utilization, None);
    }

    #[test]
    fn huge_values_do_not_overflow() {
        let cache = testing::cache(
            "test",
            &[
                (Quantity::ObjectSize, u64::MAX),
                (Quantity::SlabSize, u64::MAX),
                (Quantity::ObjsPerSlab, u64::MAX),
                (Quantity::Order, 63),
                (Quantity::Objects, u64::MAX),
                (Quantity::TotalObjects, u64::MAX),
                (Quantity::Slabs, u64::MAX),
            ],
        );
        let usage = Usage::of(&cache, u64::MAX);
        assert_eq!(usage.memory, None);
    }
}
