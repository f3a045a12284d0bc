//! Values of the attribute files in /sys/kernel/slab.
//!
//! Formats: mm/slub.c, `show_slab_objects`, `slabs_cpu_partial_show`,
//! `show_stat`. A file is at most one page, so the `N<node>=` and `C<cpu>=`
//! lists may be cut in the middle of a token, without a newline.

use crate::model::{CpuId, NodeId};

/// Nodes a kernel can be built for (1024, `MAX_NUMNODES`), with room for more.
const MAX_NODES: u32 = 1 << 12;

/// CPUs a kernel can be built for (8192, `NR_CPUS`), with room for more.
const MAX_CPUS: u32 = 1 << 16;

/// A total with a value per node: `356 N0=300 N1=56`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeList {
    /// The sum the kernel printed.
    pub total: u64,
    /// Nodes with a value; the kernel leaves zeros out.
    pub nodes: Vec<(NodeId, u64)>,
    /// True when the list was cut at the end of the page.
    pub cut: bool,
}

/// Free objects and slabs on per-CPU partial lists: `42(4) C1=42(4)`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuPartial {
    /// Objects over all CPUs.
    pub objects: u64,
    /// Slabs over all CPUs.
    pub slabs: u64,
    /// CPU, its objects, its slabs.
    pub cpus: Vec<(CpuId, u64, u64)>,
    /// True when the list was cut at the end of the page.
    pub cut: bool,
}

/// An event counter: `664 C0=603 C1=61`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatList {
    /// The sum the kernel printed.
    pub total: u64,
    /// CPU and its 32-bit value.
    pub cpus: Vec<(CpuId, u32)>,
    /// True when the list was cut at the end of the page.
    pub cut: bool,
}

/// A plain number. `None` for anything else, a negative one included: that is
/// a race or an overflow inside the kernel, not a figure.
pub fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// `0` or `1`.
pub fn flag(text: &str) -> Option<bool> {
    match text.trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Tokens after the first, and whether the last one was cut off and left out.
fn tokens(text: &str) -> Option<(&str, Vec<&str>, bool)> {
    // Only a full page can have been cut; a shorter file may just lack its newline.
    let cut = !text.ends_with('\n') && text.len() >= 4000;
    let mut words = text.split_ascii_whitespace();
    let first = words.next()?;
    let mut rest: Vec<&str> = words.collect();
    if cut {
        rest.pop();
    }
    Some((first, rest, cut))
}

/// A larger id is not the kernel's, and each one is a row or a column.
fn labelled(token: &str, label: char, below: u32) -> Option<(u32, &str)> {
    let (id, value) = token.strip_prefix(label)?.split_once('=')?;
    let id = id.parse().ok().filter(|id| *id < below)?;
    Some((id, value))
}

/// Parses a total with values per node.
pub fn node_list(text: &str) -> Option<NodeList> {
    let (first, rest, cut) = tokens(text)?;
    let mut list = NodeList {
        total: first.parse().ok()?,
        nodes: Vec::with_capacity(rest.len()),
        cut,
    };
    for token in rest {
        let (node, value) = labelled(token, 'N', MAX_NODES)?;
        list.nodes.push((NodeId(node), value.parse().ok()?));
    }
    Some(list)
}

fn objects_and_slabs(text: &str) -> Option<(u64, u64)> {
    let (objects, slabs) = text.strip_suffix(')')?.split_once('(')?;
    Some((objects.parse().ok()?, slabs.parse().ok()?))
}

/// Parses `slabs_cpu_partial`.
pub fn cpu_partial(text: &str) -> Option<CpuPartial> {
    let (first, rest, cut) = tokens(text)?;
    let (objects, slabs) = objects_and_slabs(first)?;
    let mut list = CpuPartial {
        objects,
        slabs,
        cpus: Vec::with_capacity(rest.len()),
        cut,
    };
    for token in rest {
        let (cpu, value) = labelled(token, 'C', MAX_CPUS)?;
        let (objects, slabs) = objects_and_slabs(value)?;
        list.cpus.push((CpuId(cpu), objects, slabs));
    }
    Some(list)
}

/// Parses an event counter.
pub fn stat(text: &str) -> Option<StatList> {
    let (first, rest, cut) = tokens(text)?;
    let mut list = StatList {
        total: first.parse().ok()?,
        cpus: Vec::with_capacity(rest.len()),
        cut,
    };
    for token in rest {
        let (cpu, value) = labelled(token, 'C', MAX_CPUS)?;
        list.cpus.push((CpuId(cpu), value.parse().ok()?));
    }
    Some(list)
}

/// Numbers of a kernel list such as `0-3,7`: how many it names.
pub fn id_list_len(text: &str) -> Option<u32> {
    let mut count = 0u32;
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (u32, u32) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        count = count.checked_add(high.checked_sub(low)?.checked_add(1)?)?;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn real_values() {
        assert_eq!(number("192\n"), Some(192));
        assert_eq!(number("-2\n"), None);
        assert_eq!(number("\n"), None);
        assert_eq!(flag("1\n"), Some(true));
        assert_eq!(flag("\n"), None);
        let list = node_list("356 N0=300 N1=56\n").unwrap();
        assert_eq!(list.total, 356);
        assert_eq!(list.nodes, [(NodeId(0), 300), (NodeId(1), 56)]);
        // No NUMA: no list. 7.3 prints a literal 0.
        assert_eq!(node_list("0\n").unwrap(), NodeList::default());
        let partial = cpu_partial("5(5) C0=2(2) C1=3(3)\n").unwrap();
        assert_eq!((partial.objects, partial.slabs), (5, 5));
        assert_eq!(partial.cpus[1], (CpuId(1), 3, 3));
        assert_eq!(cpu_partial("0(0)\n").unwrap(), CpuPartial::default());
        let counter = stat("664 C0=603 C1=34 C2=20 C3=7\n").unwrap();
        assert_eq!(counter.total, 664);
        assert_eq!(counter.cpus.len(), 4);
    }

    #[test]
    fn a_list_cut_at_the_page_keeps_its_whole_tokens() {
        use std::fmt::Write as _;
        let mut text = String::from("100000");
        for cpu in 0.. {
            let _ = write!(text, " C{cpu}=12345");
            if text.len() > 4096 {
                break;
            }
        }
        text.truncate(4095);
        let list = stat(&text).unwrap();
        assert!(list.cut);
        assert_eq!(list.total, 100_000);
        assert!(list.cpus.iter().all(|(_, v)| *v == 12345));
    }

    #[test]
    fn an_id_that_no_kernel_has_is_refused() {
        assert!(node_list("1 N4095=1\n").is_some());
        assert_eq!(node_list("1 N4096=1\n"), None);
        assert_eq!(stat("1 C4294967295=1\n"), None);
        assert_eq!(cpu_partial("1(1) C99999999=1(1)\n"), None);
    }

    #[test]
    fn lists_of_ids() {
        assert_eq!(id_list_len("0-3,7\n"), Some(5));
        assert_eq!(id_list_len("0\n"), Some(1));
        assert_eq!(id_list_len("3-1"), None);
        assert_eq!(id_list_len("0-4294967295"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = (number(&text), flag(&text), node_list(&text), cpu_partial(&text), stat(&text), id_list_len(&text));
        }

        #[test]
        fn node_lists_round_trip(total: u64, nodes in proptest::collection::vec((0..MAX_NODES, any::<u64>()), 0..8)) {
            let mut text = total.to_string();
            for (node, value) in &nodes {
                use std::fmt::Write as _;
                let _ = write!(text, " N{node}={value}");
            }
            text.push('\n');
            let list = node_list(&text).unwrap();
            prop_assert_eq!(list.total, total);
            prop_assert_eq!(list.nodes, nodes.into_iter().map(|(n, v)| (NodeId(n), v)).collect::<Vec<_>>());
        }
    }
}
