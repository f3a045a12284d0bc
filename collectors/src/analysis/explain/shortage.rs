//! Failed allocations and memory that ran out, explained.
//!
//! Purpose: whether slab memory is the cause, the victim, or neither. Source of
//! truth: slab_out_of_memory() of mm/slub.c, mm/show_mem.c. One report is one
//! moment: it cannot tell a leak from a cache.

use super::finding::{Class, Finding, Kind};
use super::frames;
use super::words::{cache_name, counted};
use crate::model::{Cache, Quantity};
use crate::parse::kernel_log::report::{AllocationFailure, NodeSlabs, Oom, Report};
use crate::units::{self, Scale, size};

/// Page sizes that kernels have.
const PAGES: [u64; 3] = [4096, 16384, 65536];

/// A cache that holds less than this is no reason for a shortage.
const SMALL: u64 = 1 << 20;

/// Slab memory below this part of all memory is not why memory is short.
const ACQUITTED: f64 = 0.25;

/// A cache with more than this part of the table dominates it.
const DOMINANT: f64 = 0.5;

pub(super) fn failure(report: &Report, found: &AllocationFailure) -> Finding {
    let mut finding = Finding::new(Kind::AllocationFailure, Class::Shortage);
    finding.detected = report.detected.clone();
    finding.cache = found.cache.as_deref().map(cache_name);
    finding.reason.clone_from(&found.gfp);
    finding.detected_by = frames::user(&report.detected.stack).map(|f| f.symbol.clone());
    finding.nodes.clone_from(&found.nodes);
    if found.cache.is_none() {
        finding.headline = String::from(
            "an allocation failed for want of a slab; the line that names the cache is missing",
        );
        finding.not_known("Which cache: the kernel limits how often it prints this, and only the lines on nodes are left.");
        return finding;
    }
    let name = finding
        .cache
        .as_ref()
        .map(|c| c.root.clone())
        .unwrap_or_default();
    let atomic = found
        .gfp
        .as_deref()
        .is_some_and(|gfp| gfp.contains("GFP_ATOMIC"));
    let kind = if atomic {
        "an atomic allocation"
    } else {
        "an allocation"
    };
    finding.headline = format!("{name}: {kind} failed for want of a new slab");
    if atomic {
        finding.certain("The caller could not wait (GFP_ATOMIC): nothing was reclaimed for it. Such callers have to expect failure.");
    }
    group(&mut finding, found);
    for node in &found.nodes {
        on_node(&mut finding, found, node);
    }
    if found.debug_order {
        finding.certain("Debugging made the smallest slab larger: it needs more contiguous pages than without (option O turns that off).");
    }
    let elsewhere = found.nodes.iter().any(|n| n.free > 0);
    let dry = found.nodes.iter().any(|n| n.free == 0);
    if elsewhere && dry {
        finding.likely("Free objects on another node do not help: an allocation looks there only by chance (remote_node_defrag_ratio), so this is no bug.");
    }
    if found.nodes.is_empty() {
        finding.not_known("How full the nodes are: the lines on nodes are missing.");
    }
    finding
}

/// A cache of a control group fails at the group's limit.
fn group(finding: &mut Finding, found: &AllocationFailure) {
    let Some((id, cgroup)) = finding.cache.as_ref().and_then(|c| c.cgroup.clone()) else {
        finding.do_next("Look at free memory and its fragmentation on the node: /proc/buddyinfo, /proc/zoneinfo, vm.min_free_kbytes.");
        return;
    };
    finding.certain(format!(
        "The cache is the part of it that is charged to control group {id} ({cgroup})."
    ));
    let held: Option<u64> = found.order.map(|order| {
        let slabs: u64 = found.nodes.iter().map(|n| n.slabs).sum();
        slabs
            .saturating_mul(PAGES[0])
            .saturating_mul(1 << order.min(12))
    });
    let small = held.filter(|held| *held < SMALL && !found.nodes.is_empty());
    if let Some(held) = small {
        finding.certain(format!(
            "It holds only {} there (pages of 4 KiB assumed).",
            size(held, Scale::Iec)
        ));
    }
    finding.likely(format!(
        "The limit of the control group {cgroup} was reached, not the memory of the node: a new slab is charged to it."
    ));
    finding.do_next(format!("Look at the memory limit and usage of {cgroup} (memory.max, memory.events; memory.kmem.* of version 1)."));
}

fn on_node(finding: &mut Finding, found: &AllocationFailure, node: &NodeSlabs) {
    let head = format!(
        "Node {}: {}, {}, {} free.",
        node.node,
        counted(node.slabs, "slab"),
        counted(node.objects, "object"),
        node.free
    );
    let full = full_slab(found, node);
    let (Some(full), Some(min)) = (full, found.min_order) else {
        finding.certain(head);
        return;
    };
    let (Some(slot), Some(order)) = (found.slot_size, found.order) else {
        return;
    };
    let smallest = full.page.saturating_mul(1 << min.min(12)) / slot;
    let missing = node
        .slabs
        .saturating_mul(full.objects)
        .saturating_sub(node.objects);
    if missing == 0 || smallest >= full.objects {
        finding.certain(head);
        return;
    }
    let short = missing / (full.objects - smallest);
    let average = node.objects as f64 / node.slabs as f64;
    finding.certain(format!(
        "{head} A slab of order {order} holds {} objects, and these hold {average:.1} on average: as if {short} of them were of order {min}.",
        full.objects
    ));
    if node.free == 0 {
        finding.likely(format!(
            "Node {} had no contiguous pages for full slabs before, and then none at all: it is short of memory or fragmented.",
            node.node
        ));
    }
}

struct Full {
    page: u64,
    objects: u64,
}

/// Objects of a slab of the usual order, with the smallest page that fits.
fn full_slab(found: &AllocationFailure, node: &NodeSlabs) -> Option<Full> {
    let slot = found.slot_size.filter(|n| *n > 0)?;
    let order = found.order?.min(12);
    let average = node.objects.checked_div(node.slabs)?;
    PAGES.iter().find_map(|page| {
        let objects = (page << order) / slot;
        (objects >= average && objects > 0).then_some(Full {
            page: *page,
            objects,
        })
    })
}

fn percent(share: f64) -> String {
    format!("{} %", units::percent(share))
}

fn used(cache: &Cache) -> u64 {
    cache.get(Quantity::ReportedUsed).map_or(0, |v| v.value)
}

fn total(cache: &Cache) -> u64 {
    cache.get(Quantity::ReportedTotal).map_or(0, |v| v.value)
}

pub(super) fn oom(report: &Report, found: &Oom) -> Finding {
    let mut finding = Finding::new(Kind::OomSlabTable, Class::CannotTell);
    finding.detected = report.detected.clone();
    if finding.detected.comm.is_none() {
        finding.detected.comm.clone_from(&found.comm);
    }
    let mut order: Vec<&Cache> = found.caches.iter().collect();
    order.sort_by_key(|c| (std::cmp::Reverse(total(c)), c.name.clone()));
    let sum: u64 = order.iter().fold(0, |sum, c| sum.saturating_add(total(c)));
    let share = found.memory.slab_share();
    figures(&mut finding, found, &order, sum);
    match share {
        Some(share) if share < ACQUITTED => acquitted(&mut finding, found, share),
        Some(share) => {
            finding.class = Class::Growth;
            finding.headline = format!("memory ran out, and slab holds {} of it", percent(share));
        }
        None => {
            finding.headline =
                String::from("memory ran out; the report does not tell how much there is");
        }
    }
    if finding.class != Class::NotSlab
        && let Some(first) = order.first()
        && sum > 0
        && total(first) as f64 / sum as f64 > DOMINANT
    {
        dominant(&mut finding, first);
    }
    finding
}

fn figures(finding: &mut Finding, found: &Oom, order: &[&Cache], sum: u64) {
    if order.is_empty() {
        return;
    }
    let top: Vec<String> = order
        .iter()
        .take(3)
        .map(|c| format!("{} {}", c.name, size(total(c), Scale::Iec)))
        .collect();
    finding.certain(format!(
        "The table of what cannot be reclaimed: {}, {} in all; the largest: {}.",
        counted(order.len() as u64, "cache"),
        size(sum, Scale::Iec),
        top.join(", ")
    ));
    if let Some(order) = found.order.filter(|order| *order > 0) {
        finding.certain(format!(
            "The allocation that failed was of order {order}, which is only the trigger."
        ));
    }
}

fn acquitted(finding: &mut Finding, found: &Oom, share: f64) {
    finding.class = Class::NotSlab;
    finding.headline = format!(
        "memory ran out, and slab holds only {} of it: not a slab problem",
        percent(share)
    );
    finding.certain(format!(
        "All of slab, reclaimable or not, is {} of memory.",
        percent(share)
    ));
    let usable = match (found.memory.ram, found.memory.reserved) {
        (Some(ram), Some(reserved)) => ram.checked_sub(reserved),
        (ram, _) => ram,
    };
    let lost = usable
        .zip(found.accounted)
        .and_then(|(usable, counted)| Some((usable.checked_sub(counted)?, usable)));
    if let Some((lost, usable)) = lost.filter(|(lost, usable)| *lost > usable / 4) {
        finding.likely(format!(
            "{} of memory ({}) is in no counter of the report: whole pages that a driver or subsystem took and did not give back.",
            percent(lost as f64 / usable as f64),
            counted(lost, "page")
        ));
        finding.do_next("Look for who holds whole pages: page_owner=on at boot, or /proc/allocinfo (6.10 and later).");
    } else {
        finding.do_next(
            "Look at the other counters of the report: anonymous memory, files, page tables.",
        );
    }
}

fn dominant(finding: &mut Finding, cache: &Cache) {
    finding.class = Class::Growth;
    finding.cache = Some(cache_name(&cache.name));
    let (held, total) = (used(cache), total(cache));
    finding.headline = format!(
        "memory ran out, and {} holds {} of unreclaimable slab",
        cache.name,
        size(total, Scale::Iec)
    );
    let live = held as f64 / total.max(1) as f64;
    finding.certain(format!(
        "Objects in use are {} of what {} holds: {}.",
        percent(live),
        cache.name,
        if live > 0.8 {
            "it is not fragmentation"
        } else {
            "much of it is free space in slabs"
        }
    ));
    if live > 0.8 {
        finding.likely(format!("Its owner made very many objects: {}.", cache.name));
        finding.possible("A leak, or a cache without a limit whose objects are all still in use. One table cannot tell them apart.");
        finding.not_known("Whether the objects are lost: they may all be reachable.");
        finding.do_next(format!(
            "See whether it stays after the load ends and after echo 2 > /proc/sys/vm/drop_caches (slabctl diff before after): a leak stays. Who allocates: {}.",
            super::words::tracking(finding)
        ));
    }
}
