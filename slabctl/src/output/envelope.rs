//! What every JSON document has around its body: source, machine, warnings.
//!
//! Source of truth: `collectors::model`. Each document is a struct of its own
//! that starts with `schema`, `generated_at`, `source` and `system`, goes on
//! with its body and ends with `warnings`; these are the types of those fields.

use collectors::model::{
    Allocator, Bytes, LayerReport, Origin, Quantity, QuantitySet, System, Warnings,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// A moment as RFC 3339 with offset, as in `2026-01-31T12:00:00Z`.
pub(crate) fn moment(time: Option<Timestamp>) -> Option<String> {
    time.map(|t| t.to_string())
}

/// Field names of these quantities in a cache row.
///
/// The count of aliases is left out: a row has the aliases themselves.
pub(crate) fn field_names(set: QuantitySet) -> Vec<&'static str> {
    set.iter()
        .filter(|q| *q != Quantity::AliasCount)
        .map(Quantity::name)
        .collect()
}

/// Where the figures are from.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Source<'a> {
    /// Kind of source: the running kernel, a process on slabcore, a saved
    /// file or directory, a recording of slabctl, or the built-in engine.
    #[schemars(extend("enum" = ["kernel", "process", "capture", "recording", "demo"]))]
    pub(crate) kind: &'a str,
    /// A path, or what was read.
    pub(crate) detail: &'a str,
    /// When the figures were read, RFC 3339 with offset; null when the source does not tell.
    #[schemars(extend("format" = "date-time"))]
    pub(crate) taken_at: Option<String>,
    /// The layers that gave figures, best first. A figure is from the first
    /// layer that has it.
    pub(crate) layers: Vec<LayerInfo<'a>>,
}

impl<'a> Source<'a> {
    /// Describes `origin`.
    pub(crate) fn of(origin: &'a Origin) -> Self {
        Self {
            kind: origin.kind.name(),
            detail: &origin.detail,
            taken_at: moment(origin.taken_at),
            layers: origin.layers.iter().map(LayerInfo::of).collect(),
        }
    }
}

/// What one layer of a source gave.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LayerInfo<'a> {
    /// The kind of text or memory, for example "sysfs" or "slabinfo".
    pub(crate) layer: &'a str,
    /// The file or directory inside the source.
    pub(crate) file: &'a str,
    /// Number of caches the layer told of, in the whole source.
    pub(crate) caches: u64,
    /// Fields of a cache row for which this layer gave the figure shown, in any cache.
    pub(crate) fields: Vec<&'a str>,
}

impl<'a> LayerInfo<'a> {
    fn of(report: &'a LayerReport) -> Self {
        Self {
            layer: report.layer.name(),
            file: &report.file,
            caches: report.caches,
            fields: field_names(report.gave),
        }
    }
}

/// The machine the figures are of.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SystemInfo<'a> {
    /// Kernel release as `uname -r` prints it; null when the source does not tell.
    pub(crate) kernel: Option<&'a str>,
    /// Bytes in a page.
    pub(crate) page_size: u64,
    /// True when the source does not tell the page size and `page_size` is an
    /// assumption; every figure in bytes that comes from pages depends on it.
    pub(crate) page_size_assumed: bool,
    /// Number of processors online; null when unknown.
    pub(crate) cpus: Option<u32>,
    /// Number of NUMA nodes with memory; null when unknown.
    pub(crate) nodes: Option<u32>,
    /// How the allocator keeps free objects near the CPUs, told from the
    /// attributes themselves: CPU slabs (SLUB up to 6.17), both (6.18 and
    /// 6.19), sheaves (7.0 and later), or the SLAB allocator.
    #[schemars(extend("enum" = ["cpu-slabs", "mixed", "sheaves", "slab", "unknown"]))]
    pub(crate) era: &'static str,
    /// `Slab` of /proc/meminfo in bytes; null when unknown.
    pub(crate) meminfo_slab_bytes: Option<u64>,
    /// `SReclaimable` of /proc/meminfo in bytes; null when unknown.
    pub(crate) reclaimable_bytes: Option<u64>,
    /// `SUnreclaim` of /proc/meminfo in bytes; null when unknown.
    pub(crate) unreclaimable_bytes: Option<u64>,
    /// Host name; null when unknown.
    pub(crate) hostname: Option<&'a str>,
    /// Which allocator the kernel was built with.
    #[schemars(extend("enum" = ["slub", "slab", "unknown"]))]
    pub(crate) allocator: &'static str,
    /// `MemTotal` of /proc/meminfo in bytes; null when unknown.
    pub(crate) mem_total_bytes: Option<u64>,
}

impl<'a> SystemInfo<'a> {
    /// Describes `system`.
    pub(crate) fn of(system: &'a System) -> Self {
        let memory = &system.meminfo;
        Self {
            kernel: system.kernel.as_deref(),
            page_size: system.page_size,
            page_size_assumed: system.page_size_assumed,
            cpus: system.cpus,
            nodes: system.nodes,
            era: system.era.name(),
            meminfo_slab_bytes: memory.slab.map(Bytes::get),
            reclaimable_bytes: memory.s_reclaimable.map(Bytes::get),
            unreclaimable_bytes: memory.s_unreclaim.map(Bytes::get),
            hostname: system.hostname.as_deref(),
            allocator: allocator(system.allocator),
            mem_total_bytes: memory.mem_total.map(Bytes::get),
        }
    }
}

const fn allocator(allocator: Allocator) -> &'static str {
    match allocator {
        Allocator::Slub => "slub",
        Allocator::Slab => "slab",
        Allocator::Unknown => "unknown",
    }
}

/// Something that could not be read, or that a reader of the figures must know.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WarningOut {
    /// Stable code, for example "broken-row". Programs should pass over codes
    /// they do not know; "suppressed" says how many warnings were left out.
    pub(crate) code: &'static str,
    /// One line for people, without the file and line.
    pub(crate) message: String,
    /// The file inside the source; null when there is none.
    pub(crate) file: Option<String>,
    /// The line in that file, from 1; null when there is none.
    pub(crate) line: Option<u64>,
}

impl WarningOut {
    /// All of `warnings` in their order, and last how many were not kept.
    pub(crate) fn all(warnings: &Warnings) -> Vec<Self> {
        let mut list: Vec<_> = warnings
            .iter()
            .map(|w| Self {
                code: w.code.name(),
                message: w.message.clone(),
                file: w.file.clone(),
                line: w.line,
            })
            .collect();
        let more = warnings.suppressed();
        if more > 0 {
            list.push(Self {
                code: "suppressed",
                message: format!("{more} further warnings are not listed"),
                file: None,
                line: None,
            });
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collectors::model::{Warning, WarningCode};

    #[test]
    fn warnings_that_were_dropped_are_counted_in_one_last_warning() {
        let mut warnings = Warnings::default();
        for line in 1..=1003 {
            warnings.push(Warning::new(WarningCode::BrokenRow, "x").at_line(line));
        }
        let list = WarningOut::all(&warnings);
        assert_eq!(list.len(), 1001);
        assert_eq!((list[0].code, list[0].line), ("broken-row", Some(1)));
        assert_eq!(list[1000].code, "suppressed");
        assert_eq!(list[1000].message, "3 further warnings are not listed");
        assert!(WarningOut::all(&Warnings::default()).is_empty());
    }

    #[test]
    fn a_moment_has_an_offset() {
        assert_eq!(
            moment(Some(Timestamp::UNIX_EPOCH)).as_deref(),
            Some("1970-01-01T00:00:00Z")
        );
        assert_eq!(moment(None), None);
    }
}
