//! Caches and snapshots made by hand, for the tests beside the formulas.

use crate::model::{
    Cache, CacheId, Layer, Origin, OriginKind, Quantity, Snapshot, System, Warnings,
};

/// A capture of a machine with pages of 4 KiB.
pub(super) fn snapshot(caches: Vec<Cache>) -> Snapshot {
    Snapshot {
        origin: Origin::new(OriginKind::Capture, "test"),
        system: System {
            page_size: 4096,
            ..System::default()
        },
        caches,
        warnings: Warnings::default(),
    }
}

/// A cache with these figures of sysfs.
pub(super) fn cache(name: &str, figures: &[(Quantity, u64)]) -> Cache {
    Cache::new(CacheId(0), name).with(Layer::Sysfs, figures)
}

/// Slabs of one page with 32 objects of 100 bytes in slots of 128.
pub(super) fn sysfs(slabs: u64, objects: u64, partial: u64, objects_partial: u64) -> Cache {
    let figures = [
        (Quantity::ObjectSize, 100),
        (Quantity::SlabSize, 128),
        (Quantity::ObjsPerSlab, 32),
        (Quantity::Order, 0),
        (Quantity::Slabs, slabs),
        (Quantity::TotalObjects, slabs * 32),
        (Quantity::Objects, objects),
        (Quantity::Partial, partial),
        (Quantity::ObjectsPartial, objects_partial),
    ];
    cache("x", &figures)
}
