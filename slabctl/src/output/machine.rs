//! The machine on which something was measured, as far as it is known.

use schemars::JsonSchema;
use serde::Serialize;

/// The machine, as far as it is known.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Machine {
    /// Kernel release; null when unknown.
    kernel: Option<String>,
    /// Processors that may be used; null when unknown.
    cpus: Option<u64>,
    /// Name of the processor's model; null when unknown.
    model: Option<String>,
    /// NUMA nodes; null when unknown.
    nodes: Option<u64>,
}

impl Machine {
    /// This one.
    pub(crate) fn here() -> Self {
        let line = |path: &str| std::fs::read_to_string(path).ok();
        let model = line("/proc/cpuinfo").and_then(|text| {
            let named = text.lines().find(|l| l.starts_with("model name"))?;
            Some(named.split_once(':')?.1.trim().to_owned())
        });
        Self {
            kernel: line("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
            cpus: std::thread::available_parallelism()
                .ok()
                .map(|n| n.get() as u64),
            model,
            nodes: nodes(),
        }
    }

    /// How many nodes it has, for people.
    pub(crate) fn nodes_in_words(&self) -> String {
        match self.nodes {
            Some(1) => "1 node".to_owned(),
            Some(n) => format!("{n} nodes"),
            None => "nodes unknown".to_owned(),
        }
    }

    /// A line for people.
    pub(crate) fn line(&self) -> String {
        let unknown = || "unknown".to_owned();
        let model = self.model.clone().unwrap_or_else(unknown);
        let cpus = self.cpus.map_or_else(unknown, |n| n.to_string());
        let kernel = self.kernel.clone().unwrap_or_else(unknown);
        format!("{model}, {cpus} processors, Linux {kernel}")
    }
}

/// Nodes that the kernel tells of.
fn nodes() -> Option<u64> {
    let entries = std::fs::read_dir("/sys/devices/system/node").ok()?;
    let is_node = |name: &str| {
        let number = name.strip_prefix("node");
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let count = names
        .filter(|name| name.to_str().is_some_and(is_node))
        .count();
    (count > 0).then_some(count as u64)
}
