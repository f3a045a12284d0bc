//! Snapshots and moments for tests of several modules.

use std::sync::Arc;
use std::time::Duration;

use collectors::model::{
    Bytes, Cache, CacheId, Era, Flag, Layer, Origin, OriginKind, Quantity, Snapshot, System,
    Warnings,
};

use crate::model::{Key, Moment, Sample};

/// A cache of 64-byte objects with so many slabs, half of them in use.
pub(crate) fn cache(name: &str, slabs: u64) -> Cache {
    let mut cache = Cache::new(CacheId(0), name);
    for (quantity, value) in [
        (Quantity::ObjectSize, 64),
        (Quantity::SlabSize, 64),
        (Quantity::ObjsPerSlab, 64),
        (Quantity::Order, 0),
        (Quantity::Slabs, slabs),
        (Quantity::TotalObjects, slabs * 64),
        (Quantity::Objects, slabs * 32),
        (Quantity::Partial, slabs / 2),
        (Quantity::CpuSlabs, slabs.min(2)),
    ] {
        cache.set_exact(quantity, value, Layer::Sysfs);
    }
    cache.aliases = Some(Vec::new());
    cache.flags.put(Flag::ReclaimAccount, slabs > 100);
    cache
}

/// A snapshot of a running kernel with these caches.
pub(crate) fn snapshot(mut caches: Vec<Cache>) -> Snapshot {
    for (cache, id) in caches.iter_mut().zip(0..) {
        cache.id = CacheId(id);
    }
    let mut snapshot = Snapshot {
        origin: Origin {
            kind: OriginKind::Kernel,
            detail: "/".to_owned(),
            taken_at: Some(jiff::Timestamp::UNIX_EPOCH),
            layers: Vec::new(),
            carried: None,
        },
        system: System {
            hostname: Some("testhost".to_owned()),
            kernel: Some("6.18.0".to_owned()),
            page_size: 4096,
            cpus: Some(2),
            nodes: Some(1),
            era: Era::Mixed,
            ..System::default()
        },
        caches,
        warnings: Warnings::default(),
    };
    let meminfo = &mut snapshot.system.meminfo;
    meminfo.slab = Some(Bytes(12 << 20));
    meminfo.s_reclaimable = Some(Bytes(8 << 20));
    meminfo.s_unreclaim = Some(Bytes(4 << 20));
    snapshot.describe_layers(&[(Layer::Sysfs, "sys/kernel/slab".to_owned())]);
    snapshot
}

/// A snapshot as a moment, so many seconds after the start.
pub(crate) fn moment(snapshot: Snapshot, keys: &Arc<[Key]>, second: u64) -> Moment {
    Moment {
        snapshot: Arc::new(snapshot),
        keys: Arc::clone(keys),
        at: Duration::from_secs(second),
        took: Duration::from_millis(2),
    }
}

/// A sample as the sampler hands it over, so many seconds after the start.
pub(crate) fn sample(caches: Vec<Cache>, second: u64) -> Sample {
    let mut snapshot = snapshot(caches);
    let shift = jiff::SignedDuration::from_secs(i64::try_from(second).unwrap());
    let start = jiff::Timestamp::UNIX_EPOCH;
    snapshot.origin.taken_at = Some(start.checked_add(shift).unwrap());
    Sample {
        snapshot,
        at: Duration::from_secs(second),
        took: Duration::from_millis(2),
        full: second == 0,
        replaced: 0,
        cpu_time: Duration::from_millis(4 * second),
        sites: None,
    }
}
