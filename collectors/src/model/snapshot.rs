//! All caches at one moment, with where the figures came from.

use std::time::Duration;

use jiff::Timestamp;

use super::{Cache, Layer, QuantitySet, System, Warnings};

/// The kind of source, as the JSON contract names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginKind {
    /// The running kernel.
    Kernel,
    /// A running process, or its core, on slabcore's engine.
    Process,
    /// A saved file or directory.
    Capture,
    /// The built-in engine under a demonstration load.
    Demo,
}

impl OriginKind {
    /// The name in machine output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Process => "process",
            Self::Capture => "capture",
            Self::Demo => "demo",
        }
    }
}

/// What one layer gave to a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerReport {
    /// Which layer.
    pub layer: Layer,
    /// The file or directory inside the source.
    pub file: String,
    /// Caches it told of.
    pub caches: u64,
    /// Quantities for which it gave the figure that is shown, in any cache.
    pub gave: QuantitySet,
}

/// Where a snapshot is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Kind of source.
    pub kind: OriginKind,
    /// A path, or what was read.
    pub detail: String,
    /// When the figures were read, where known.
    pub taken_at: Option<Timestamp>,
    /// The layers that gave figures, best first.
    pub layers: Vec<LayerReport>,
    /// Figures from an earlier sample, if there are any among them.
    pub carried: Option<Carried>,
}

/// Caches of which attribute files were not read again, since their rows in
/// /proc/slabinfo had not changed (`Demand::unchanged_for`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// How many caches.
    pub caches: u64,
    /// How old what was not read again is at most.
    pub at_most: Duration,
}

impl Origin {
    /// An origin without a time and without layers.
    pub fn new(kind: OriginKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            taken_at: None,
            layers: Vec::new(),
            carried: None,
        }
    }
}

/// All caches at one moment.
///
/// `caches` is in source order; `CacheId` is the index in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Where from.
    pub origin: Origin,
    /// Which machine.
    pub system: System,
    /// The caches, in source order.
    pub caches: Vec<Cache>,
    /// What could not be read, and what to know about the figures.
    pub warnings: Warnings,
}

impl Snapshot {
    /// Recomputes what each layer gave, after the caches are final.
    ///
    /// `files` names the file of each layer.
    pub fn describe_layers(&mut self, files: &[(Layer, String)]) {
        let mut reports: Vec<LayerReport> = Vec::new();
        for (layer, file) in files {
            let caches = self.caches.iter().filter(|c| c.layers.contains(*layer));
            let mut gave = QuantitySet::EMPTY;
            let mut count = 0;
            for cache in caches {
                count += 1;
                for q in cache.known().iter() {
                    if cache.origin(q) == Some(*layer) {
                        gave.insert(q);
                    }
                }
            }
            reports.push(LayerReport {
                layer: *layer,
                file: file.clone(),
                caches: count,
                gave,
            });
        }
        reports.sort_by_key(|r| r.layer);
        self.origin.layers = reports;
    }

    /// Caches with this name or alias, in source order. Several may match.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Cache> {
        self.caches
            .iter()
            .filter(move |c| c.names().any(|n| n == name) || c.sysfs_id.as_deref() == Some(name))
    }
}
