//! The machine's own facts: kernel, page size, processors, memory, options.
//!
//! Read from a [`Tree`], so that a saved copy and the running system are one path.

use std::collections::BTreeMap;
use std::io::Read as _;

use procfs::FromBufRead as _;

use super::tree::Tree;
use super::write::manifest;
use crate::model::{System, Warning, WarningCode, Warnings};
use crate::parse::{buddyinfo, meminfo, pressure, sysfs};

const PRESSURE: &str = "proc/pressure/memory";
const BUDDYINFO: &str = "proc/buddyinfo";

/// Build options that decide what slab data a kernel can show.
const OPTIONS: &[&str] = &[
    "CONFIG_SLAB",
    "CONFIG_SLUB",
    "CONFIG_SLOB",
    "CONFIG_SLUB_TINY",
    "CONFIG_SLUB_DEBUG",
    "CONFIG_SLUB_DEBUG_ON",
    "CONFIG_SLUB_STATS",
    "CONFIG_SLUB_CPU_PARTIAL",
    "CONFIG_SLAB_MERGE_DEFAULT",
    "CONFIG_SLAB_FREELIST_RANDOM",
    "CONFIG_SLAB_FREELIST_HARDENED",
    "CONFIG_SLAB_BUCKETS",
    "CONFIG_RANDOM_KMALLOC_CACHES",
    "CONFIG_KMALLOC_PARTITION_CACHES",
    "CONFIG_DEBUG_SLAB",
    "CONFIG_MEMCG",
    "CONFIG_MEMCG_KMEM",
    "CONFIG_NUMA",
    "CONFIG_MEM_ALLOC_PROFILING",
    "CONFIG_PAGE_OWNER",
    "CONFIG_DEBUG_KMEMLEAK",
    "CONFIG_KASAN",
    "CONFIG_KFENCE",
    "CONFIG_HARDENED_USERCOPY",
    "CONFIG_FAILSLAB",
    "CONFIG_NODES_SHIFT",
    "CONFIG_NR_CPUS",
];

/// How much of the machine is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// What every report needs.
    Brief,
    /// vmstat, memory pressure and free blocks too.
    Memory,
    /// Command line and build options too.
    Full,
}

/// Reads the machine's facts. `live_page_size` is given on the running system;
/// a capture's page size is told from its files or assumed.
pub fn read(
    tree: &dyn Tree,
    live_page_size: Option<u64>,
    depth: Depth,
    warnings: &mut Warnings,
) -> System {
    let line = |path: &str| first_line(tree, path);
    let mut system = System {
        hostname: line("proc/sys/kernel/hostname").or_else(|| line("etc/hostname")),
        kernel: kernel_release(tree),
        cpus: cpus(tree),
        nodes: nodes(tree),
        ..System::default()
    };
    if let Ok(text) = tree.read("proc/meminfo") {
        system.meminfo = meminfo::parse(&text);
    }
    if depth >= Depth::Memory {
        system.vmstat = vmstat(tree);
        system.pressure = tree
            .read(PRESSURE)
            .ok()
            .and_then(|text| pressure::parse(&text));
        if let Ok(text) = tree.read(BUDDYINFO) {
            let (zones, more) = buddyinfo::parse(&text);
            system.free_blocks = zones;
            for warning in &more {
                warnings.push(warning.clone().in_file(BUDDYINFO));
            }
        }
    }
    if depth == Depth::Full {
        system.cmdline = line("proc/cmdline");
        system.config = config(tree, system.kernel.as_deref());
    }
    match live_page_size.or_else(|| page_size(tree, &system)) {
        Some(size) => system.page_size = size,
        None => assume_page_size(&mut system, warnings),
    }
    system
}

/// Sets the page size that most machines have, and says so.
pub fn assume_page_size(system: &mut System, warnings: &mut Warnings) {
    system.page_size = System::ASSUMED_PAGE_SIZE;
    system.page_size_assumed = true;
    warnings.push(Warning::new(
        WarningCode::PageSizeAssumed,
        "the page size is not in the source: 4096 bytes assumed (arm64 and ppc64 kernels may have 65536)",
    ));
}

fn first_line(tree: &dyn Tree, path: &str) -> Option<String> {
    let text = tree.read_text(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

fn kernel_release(tree: &dyn Tree) -> Option<String> {
    if let Some(release) = first_line(tree, "proc/sys/kernel/osrelease") {
        return Some(release);
    }
    // sosreport keeps uname -a; /proc/version has the release as its third word.
    let words = |path: &str, n: usize| {
        let line = first_line(tree, path)?;
        line.split_whitespace().nth(n).map(str::to_owned)
    };
    words("proc/version", 2).or_else(|| words("sos_commands/kernel/uname_-a", 2))
}

fn cpus(tree: &dyn Tree) -> Option<u32> {
    if let Some(list) = first_line(tree, "sys/devices/system/cpu/online") {
        return sysfs::id_list_len(&list);
    }
    let stat = tree.read_text("proc/stat").ok()?;
    let count = stat
        .lines()
        .filter(|l| {
            l.strip_prefix("cpu")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
        .count();
    u32::try_from(count).ok().filter(|n| *n > 0)
}

fn nodes(tree: &dyn Tree) -> Option<u32> {
    for name in ["has_memory", "online"] {
        if let Some(list) = first_line(tree, &format!("sys/devices/system/node/{name}")) {
            return sysfs::id_list_len(&list);
        }
    }
    let zones = tree.read_text("proc/zoneinfo").ok()?;
    let mut seen: Vec<&str> = zones
        .lines()
        .filter_map(|l| l.strip_prefix("Node ")?.split(',').next())
        .collect();
    seen.dedup();
    seen.sort_unstable();
    seen.dedup();
    u32::try_from(seen.len()).ok().filter(|n| *n > 0)
}

fn vmstat(tree: &dyn Tree) -> BTreeMap<String, u64> {
    let Ok(text) = tree.read("proc/vmstat") else {
        return BTreeMap::new();
    };
    procfs::VmStat::from_buf_read(&text[..]).map_or_else(
        |_| BTreeMap::new(),
        |stat| {
            stat.0
                .into_iter()
                .filter_map(|(k, v)| Some((k, u64::try_from(v).ok()?)))
                .collect()
        },
    )
}

fn config_text(tree: &dyn Tree, release: Option<&str>) -> Option<Vec<u8>> {
    if let Ok(packed) = tree.read("proc/config.gz") {
        let mut text = Vec::new();
        let limit = super::tree::MAX_FILE;
        let reader = flate2::read::GzDecoder::new(&packed[..]).take(limit);
        if std::io::BufReader::new(reader)
            .read_to_end(&mut text)
            .is_ok()
        {
            return Some(text);
        }
    }
    let release = release?;
    [
        format!("boot/config-{release}"),
        format!("config-{release}"),
        "config".to_owned(),
    ]
    .iter()
    .find_map(|path| tree.read(path).ok())
}

/// The slab-related build options. An option that a readable configuration
/// does not name is `n`: not set, or unknown to that kernel.
fn config(tree: &dyn Tree, release: Option<&str>) -> BTreeMap<String, String> {
    let Some(text) = config_text(tree, release) else {
        return BTreeMap::new();
    };
    let Ok(config) = procfs::KernelConfig::from_buf_read(&text[..]) else {
        return BTreeMap::new();
    };
    OPTIONS
        .iter()
        .map(|name| {
            let value = match config.0.get(*name) {
                Some(procfs::ConfigSetting::Yes) => "y".to_owned(),
                Some(procfs::ConfigSetting::Module) => "m".to_owned(),
                Some(procfs::ConfigSetting::Value(value)) => value.clone(),
                None => "n".to_owned(),
            };
            ((*name).to_owned(), value)
        })
        .collect()
}

/// The lines of the kernel's configuration that matter here: the options above
/// and the page size. `None` when the configuration cannot be read.
pub(super) fn config_lines(tree: &dyn Tree) -> Option<Vec<u8>> {
    let text = config_text(tree, kernel_release(tree).as_deref())?;
    let mut out = String::new();
    for line in String::from_utf8_lossy(&text).lines() {
        let name = line.strip_prefix("# ").unwrap_or(line);
        let name = name.split(['=', ' ']).next().unwrap_or("");
        let page = ["PAGE_SHIFT", "PAGE_SIZE", "K_PAGES"];
        let wanted = OPTIONS.contains(&name)
            || (name.starts_with("CONFIG_") && page.iter().any(|mark| name.contains(mark)));
        if wanted {
            out.push_str(line);
            out.push('\n');
        }
    }
    Some(out.into_bytes())
}

/// The page size as far as the files tell it: stated by a capture of this
/// program, by architecture where that has only one, else from one amount given
/// both in pages and in kB.
fn page_size(tree: &dyn Tree, system: &System) -> Option<u64> {
    if let Some(size) = manifest::page_size(tree) {
        return Some(size);
    }
    let marks = ["x86_64", "amd64", "i686", "i386", "armv7", "armv6", "armv5"];
    let words = [
        system.kernel.clone(),
        first_line(tree, "proc/version"),
        first_line(tree, "sos_commands/kernel/uname_-a"),
        first_line(tree, "uname"),
    ];
    if words
        .iter()
        .flatten()
        .any(|text| marks.iter().any(|mark| text.contains(mark)))
    {
        return Some(4096);
    }
    let pages = vmstat(tree);
    let pairs = [
        ("nr_slab_reclaimable", system.meminfo.s_reclaimable),
        ("nr_slab_unreclaimable", system.meminfo.s_unreclaim),
        ("nr_free_pages", system.meminfo.mem_free),
    ];
    pairs
        .into_iter()
        .find_map(|(key, bytes)| nearest_page_size(bytes?.get(), *pages.get(key)?))
}

/// The page size that fits best; the two amounts are from different moments,
/// but sizes in use are a factor of two apart at least.
fn nearest_page_size(bytes: u64, pages: u64) -> Option<u64> {
    if pages < 64 {
        return None;
    }
    let ratio = bytes as f64 / pages as f64;
    [4096u64, 8192, 16384, 65536]
        .into_iter()
        .find(|size| (ratio / *size as f64 - 1.0).abs() < 0.25)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bytes;
    use crate::source::tree::MemTree;

    fn tree(files: &[(&str, &str)]) -> MemTree {
        let mut tree = MemTree::new("test");
        for (path, text) in files {
            tree.insert_file(path, text.as_bytes().to_vec());
        }
        tree
    }

    #[test]
    fn an_arm_host_with_64k_pages_is_told_from_its_counts() {
        let tree = tree(&[
            ("proc/sys/kernel/osrelease", "4.18.0-80.el8.aarch64\n"),
            (
                "proc/meminfo",
                "MemFree: 6400000 kB\nSReclaimable: 640000 kB\n",
            ),
            (
                "proc/vmstat",
                "nr_free_pages 100100\nnr_slab_reclaimable 10010\n",
            ),
        ]);
        let mut warnings = Warnings::default();
        let system = read(&tree, None, Depth::Brief, &mut warnings);
        assert_eq!(system.page_size, 65536);
        assert!(!system.page_size_assumed && warnings.is_empty());
    }

    #[test]
    fn a_capture_states_its_page_size() {
        let manifest = "slabctl-capture 1\nkernel: 6.6.1.aarch64\npage-size: 65536\n";
        let mut warnings = Warnings::default();
        let with = |text: &str, warnings: &mut Warnings| {
            let tree = tree(&[("MANIFEST", text), ("proc/slabinfo", "")]);
            read(&tree, None, Depth::Brief, warnings)
        };
        assert_eq!(with(manifest, &mut warnings).page_size, 65536);
        assert!(warnings.is_empty());
        for broken in [
            "page-size: 65536\n",
            "slabctl-capture 1\npage-size: 5\n",
            "slabctl-capture 1\n\npage-size: 65536\n",
        ] {
            assert!(with(broken, &mut warnings).page_size_assumed, "{broken}");
        }
    }

    #[test]
    fn pressure_and_free_blocks_are_read_where_they_are_asked_for() {
        let tree = tree(&[
            (
                PRESSURE,
                "some avg10=1.50 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
            ),
            (BUDDYINFO, "Node 0, zone Normal 5 6\nodd\n"),
        ]);
        let with = |depth| {
            let mut warnings = Warnings::default();
            let system = read(&tree, Some(4096), depth, &mut warnings);
            (system, warnings)
        };
        let (brief, warnings) = with(Depth::Brief);
        assert!(brief.pressure.is_none() && brief.free_blocks.is_empty());
        assert!(warnings.is_empty());
        let (system, warnings) = with(Depth::Memory);
        assert_eq!(system.pressure.unwrap().some.avg10, 150);
        assert_eq!(system.free_blocks[0].free, [5, 6]);
        assert_eq!(
            warnings.iter().next().unwrap().to_string(),
            "proc/buddyinfo:2: no zone with its free blocks, ignored"
        );
    }

    #[test]
    fn an_unknown_page_size_is_assumed_and_said() {
        let mut warnings = Warnings::default();
        let system = read(
            &tree(&[("proc/slabinfo", "")]),
            None,
            Depth::Brief,
            &mut warnings,
        );
        assert!(system.page_size_assumed);
        assert!(warnings.has(WarningCode::PageSizeAssumed));
    }

    #[test]
    fn processors_nodes_and_options_come_from_a_saved_tree() {
        let tree = tree(&[
            ("proc/stat", "cpu  1 2\ncpu0 1\ncpu1 1\nintr 5\n"),
            (
                "proc/zoneinfo",
                "Node 0, zone DMA\nNode 0, zone Normal\nNode 1, zone Normal\n",
            ),
            (
                "proc/version",
                "Linux version 5.4.0-97-generic (x86_64-linux-gnu-gcc)\n",
            ),
            (
                "boot/config-5.4.0-97-generic",
                "CONFIG_SLUB=y\n# CONFIG_SLUB_STATS is not set\nCONFIG_NR_CPUS=8192\n",
            ),
            ("proc/meminfo", "Slab: 10 kB\n"),
        ]);
        let mut warnings = Warnings::default();
        let system = read(&tree, None, Depth::Full, &mut warnings);
        assert_eq!((system.cpus, system.nodes), (Some(2), Some(2)));
        assert_eq!(system.page_size, 4096);
        assert_eq!(system.config["CONFIG_SLUB"], "y");
        assert_eq!(system.config["CONFIG_SLUB_STATS"], "n");
        assert_eq!(system.config["CONFIG_NR_CPUS"], "8192");
        assert_eq!(system.meminfo.slab, Some(Bytes(10240)));
    }
}
