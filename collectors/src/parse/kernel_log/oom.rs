//! What an out-of-memory report says of slab memory.
//!
//! Purpose: the table of unreclaimable caches and the machine's counters, by
//! way of the parser that reads them from files. Source of truth: mm/show_mem.c.
//! Which pages are counted where is said at [`COUNTED`].

use super::report::Oom;
use crate::parse::oom_table;

/// Counters in pages that do not overlap: together with slab they are all
/// pages but those that were handed out whole and counted nowhere. `mapped`,
/// `shmem`, `dirty` and `writeback` are parts of the others.
const COUNTED: &[&str] = &[
    "active_anon",
    "inactive_anon",
    "isolated_anon",
    "active_file",
    "inactive_file",
    "isolated_file",
    "unevictable",
    "slab_reclaimable",
    "slab_unreclaimable",
    "pagetables",
    "sec_pagetables",
    "kernel_misc_reclaimable",
    "free",
    "free_pcp",
];

/// Without these the sum says nothing.
const NEEDED: usize = 10;

pub(super) fn begun(comm: Option<String>, order: Option<u32>) -> Oom {
    Oom {
        comm,
        order,
        ..Oom::default()
    }
}

/// Reads the text of the report.
pub(super) fn finish(oom: &mut Oom, text: &str) {
    oom.memory = oom_table::memory(text.as_bytes()).unwrap_or_default();
    oom.accounted = accounted(text);
    if text.contains("slab info:") {
        oom.caches = oom_table::parse(text.as_bytes()).caches;
    }
}

/// Whether there is anything to say.
pub(super) fn tells_of_slab(oom: &Oom) -> bool {
    !oom.caches.is_empty() || oom.memory.slab_unreclaimable.is_some()
}

fn accounted(text: &str) -> Option<u64> {
    let (_, text) = text.split_once("Mem-Info:")?;
    let mut sum = 0u64;
    let mut seen = [false; COUNTED.len()];
    for word in text.split_ascii_whitespace() {
        // Per-node lines have the same words in kB.
        let Some((key, Ok(pages))) = word.split_once(':').map(|(k, v)| (k, v.parse::<u64>()))
        else {
            continue;
        };
        if let Some(at) = COUNTED.iter().position(|counted| *counted == key)
            && !std::mem::replace(&mut seen[at], true)
        {
            sum = sum.checked_add(pages)?;
        }
    }
    (seen.iter().filter(|s| **s).count() >= NEEDED).then_some(sum)
}
