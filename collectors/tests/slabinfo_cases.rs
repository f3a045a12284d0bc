//! Real slabinfo texts, from Linux 2.4 to 7.3, give the figures that were
//! worked out for them by hand.

use collectors::analysis::Usage;
use collectors::model::{Allocator, Cache, Layer, Quantity, WarningCode};
use collectors::parse::slabinfo::{Slabinfo, parse, recognise};

const PAGE: u64 = 4096;

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("data/slabinfo/", $name))
    };
}

fn kib(cache: &Cache) -> u64 {
    let Some(memory) = Usage::of(cache, PAGE).memory else {
        panic!("nothing known of the memory of {}", cache.name);
    };
    memory.value.get() / 1024
}

fn cache<'a>(info: &'a Slabinfo, name: &str) -> &'a Cache {
    let mut found = info.parsed.caches.iter().filter(|c| &*c.name == name);
    let cache = found.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(found.next().is_none(), "{name} twice");
    cache
}

fn figure(cache: &Cache, quantity: Quantity) -> Option<u64> {
    cache.get(quantity).map(|f| f.value)
}

/// Objects in use, objects, slabs.
fn objects(cache: &Cache) -> [Option<u64>; 3] {
    [Quantity::Objects, Quantity::TotalObjects, Quantity::Slabs].map(|q| figure(cache, q))
}

/// Parses a text without any warning and checks the sums over its caches.
fn check(text: &[u8], caches: usize, empty: usize, total: u64, top: [(&str, u64); 3]) -> Slabinfo {
    assert!(recognise(text));
    let info = parse(text);
    let warnings: Vec<_> = info.parsed.warnings.iter().collect();
    assert!(warnings.is_empty(), "{warnings:?}");
    check_sums(&info, caches, empty, total, top);
    info
}

fn check_sums(info: &Slabinfo, caches: usize, empty: usize, total: u64, top: [(&str, u64); 3]) {
    let list = &info.parsed.caches;
    assert_eq!(list.len(), caches);
    for (i, cache) in list.iter().enumerate() {
        assert_eq!(cache.id.0 as usize, i);
    }
    let none = list
        .iter()
        .filter(|c| figure(c, Quantity::Slabs) == Some(0));
    assert_eq!(none.count(), empty);
    assert_eq!(list.iter().map(kib).sum::<u64>(), total);
    let mut by_size: Vec<_> = list.iter().map(|c| (&*c.name, kib(c))).collect();
    by_size.sort_by_key(|(_, kib)| std::cmp::Reverse(*kib));
    assert_eq!(by_size[..3], top);
}

#[test]
fn linux_2_4_smp() {
    let info = check(
        data!("2.4-smp-1.1.txt"),
        69,
        18,
        45_656,
        [
            ("buffer_head", 21_192),
            ("inode_cache", 14_208),
            ("dentry_cache", 5820),
        ],
    );
    assert_eq!(info.version.unwrap().to_string(), "1.1");
    assert!(info.smp && !info.statistics && info.header_seen);
    assert_eq!(info.allocator, Allocator::Slab);
    let buffers = cache(&info, "buffer_head");
    assert_eq!(objects(buffers), [158_790, 211_920, 5298].map(Some));
    assert_eq!(figure(buffers, Quantity::SlabSize), Some(96));
    assert_eq!(figure(buffers, Quantity::ObjsPerSlab), Some(40));
    assert_eq!(figure(buffers, Quantity::ActiveSlabs), Some(5172));
    let tunables = buffers.tunables.as_deref().unwrap();
    assert_eq!((tunables.limit, tunables.batchcount), (252, 126));
    assert_eq!(tunables.sharedfactor, None);
    let dma = info
        .parsed
        .caches
        .iter()
        .filter(|c| c.name.ends_with("(DMA)"));
    assert_eq!(dma.count(), 13);
    // An empty cache does not tell how many objects a slab would have.
    assert_eq!(
        figure(cache(&info, "nfs_read_data"), Quantity::ObjsPerSlab),
        None
    );
}

#[test]
fn linux_2_4_statistics() {
    let text = data!("2.4-up-statistics.txt");
    let info = parse(text);
    assert!(info.parsed.warnings.is_empty());
    let top = [("buffer_head", 768), ("size-128", 64)];
    let list = &info.parsed.caches;
    assert_eq!(list.len(), 59);
    assert_eq!(list.iter().map(kib).sum::<u64>(), 1288);
    for (name, size) in top {
        assert_eq!(kib(cache(&info, name)), size);
    }
    assert_eq!(kib(cache(&info, "filp")), 52);
    assert_eq!(kib(cache(&info, "inode_cache")), 52);
    let empty = list
        .iter()
        .filter(|c| figure(c, Quantity::Slabs) == Some(0));
    assert_eq!(empty.count(), 25);
    assert!(info.statistics && !info.smp);
    let buffers = cache(&info, "buffer_head")
        .slab_statistics
        .as_deref()
        .unwrap();
    assert_eq!(buffers.maxobjs, Some(7129));
    let areas = cache(&info, "vm_area_struct");
    assert_eq!(figure(areas, Quantity::Objects), Some(49));
    let areas = areas.slab_statistics.as_deref().unwrap();
    assert_eq!(areas.listallocs, Some(1_229_416));
    assert_eq!(areas.allochit, None);
    assert!(list.iter().all(|c| c.tunables.is_none()));
    assert_eq!(
        figure(cache(&info, "size-256"), Quantity::SlabSize),
        Some(264)
    );
}

#[test]
fn open_harmony_is_named_as_not_linux() {
    let info = parse(data!("openharmony.txt"));
    check_sums(
        &info,
        3,
        0,
        3164,
        [("slab-[24]", 1984), ("slab-[16]", 864), ("slab-[32]", 316)],
    );
    assert_eq!(
        objects(cache(&info, "slab-[24]")),
        [78_315, 83_328, 496].map(Some)
    );
    let warnings: Vec<_> = info.parsed.warnings.iter().collect();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].code, WarningCode::LookAlike);
    assert!(warnings[0].message.starts_with("not Linux: "));
    assert_eq!(info.allocator, Allocator::Unknown);
    assert_eq!(info.parsed.broken_rows, 0);
}

#[test]
fn arm_board_with_slab() {
    let info = check(
        data!("4.4-arm-slab.txt"),
        84,
        37,
        13_276,
        [("inode_cache", 2924), ("dentry", 1736), ("jffs2_i", 1172)],
    );
    assert_eq!(info.allocator, Allocator::Slab);
    let proxies = cache(&info, "nsproxy");
    assert_eq!(figure(proxies, Quantity::Objects), Some(41_245));
    assert_eq!(kib(proxies), 1016);
    let tunables = proxies.tunables.as_deref().unwrap();
    assert_eq!(
        (tunables.limit, tunables.batchcount, tunables.sharedfactor),
        (120, 60, Some(8))
    );
    assert_eq!(figure(proxies, Quantity::ActiveSlabs), Some(254));
    assert!(proxies.slab_statistics.is_none());
}

#[test]
fn arm_router_with_slub() {
    let info = check(
        data!("4.1-arm-router.txt"),
        67,
        15,
        23_272,
        [
            ("kmalloc-2048", 4000),
            ("fat_inode_cache", 3456),
            ("buffer_head", 2172),
        ],
    );
    assert_eq!(info.allocator, Allocator::Slub);
    let inodes = cache(&info, "fat_inode_cache");
    assert_eq!(objects(inodes), [7938, 8208, 432].map(Some));
    // Under SLUB these columns say nothing.
    assert_eq!(figure(inodes, Quantity::ActiveSlabs), None);
    assert!(inodes.tunables.is_none());
}

#[test]
fn embedded_2_6_with_parentheses_in_names() {
    let info = check(
        data!("2.6-up-slab.txt"),
        126,
        62,
        2428,
        [
            ("inode_cache", 388),
            ("nfs_inode_cache", 316),
            ("size-4096", 292),
        ],
    );
    let dma = |c: &&Cache| c.name.starts_with("size-") && c.name.ends_with("(DMA)");
    let twins: Vec<_> = info.parsed.caches.iter().filter(dma).collect();
    assert_eq!(twins.len(), 15);
    assert!(twins.iter().all(|c| kib(c) == 0));
    assert!(!cache(&info, "biovec-(256)").name.is_empty());
    assert_eq!(info.allocator, Allocator::Slab);
}

#[test]
fn names_with_colons_and_slashes() {
    let info = check(
        data!("debug-names-with-colons.txt"),
        300,
        140,
        668_096,
        [
            ("ext4_inode_cache", 117_920),
            ("buffer_head", 111_168),
            ("dentry", 87_264),
        ],
    );
    for name in ["iwl_cmd_pool:0000:04:00.0", "L2TP/IPv6", "L2TP/IP"] {
        cache(&info, name);
    }
    let size = |name| figure(cache(&info, name), Quantity::SlabSize);
    assert_eq!(size("dentry"), Some(528));
    assert_eq!(size("buffer_head"), Some(440));
    // The payload is not in the file; the slot must not pass for it.
    assert_eq!(figure(cache(&info, "dentry"), Quantity::ObjectSize), None);
}

#[test]
fn core_os() {
    let info = check(
        data!("4.18-coreos.txt"),
        142,
        34,
        196_400,
        [
            ("xfs_inode", 30_528),
            ("kmalloc-1024", 23_056),
            ("dentry", 21_744),
        ],
    );
    assert_eq!(
        figure(cache(&info, "kmalloc-8"), Quantity::Objects),
        Some(402_432)
    );
    assert_eq!(
        figure(cache(&info, "avtab_node"), Quantity::Objects),
        Some(382_840)
    );
}

#[test]
fn output_of_grep_without_a_header() {
    let info = check(
        data!("6.6-grep-debug.txt"),
        6,
        2,
        2144 + 4 * 16 + 16 + 18 * 8,
        [
            ("kmalloc-1k", 2144),
            ("skbuff_head_cache", 144),
            ("skbuff_small_head", 64),
        ],
    );
    assert_eq!((info.version, info.header_seen), (None, false));
    assert_eq!(info.allocator, Allocator::Slub);
    let kmalloc = cache(&info, "kmalloc-1k");
    assert_eq!(objects(kmalloc), [661, 670, 67].map(Some));
    assert_eq!(figure(kmalloc, Quantity::SlabSize), Some(3072));
    assert_eq!(
        objects(cache(&info, "skbuff_small_head")),
        [0, 76, 4].map(Some)
    );
}

#[test]
fn fedora_with_brackets_and_long_names() {
    let info = check(
        data!("fedora-gfs2-debug.txt"),
        136,
        38,
        1_338_844,
        [
            ("xfs_inode", 522_176),
            ("dentry", 256_936),
            ("buffer_head", 98_532),
        ],
    );
    assert_eq!(
        objects(cache(&info, "xfs_inode"))[..2],
        [257_641, 261_088].map(Some)
    );
    assert_eq!(
        objects(cache(&info, "kmalloc-64"))[..2],
        [636_212, 647_040].map(Some)
    );
    for name in [
        "gfs2_glock(aspace)",
        "gfs2_glock",
        "page->ptl",
        "nf_conntrack_ffffffff81f20800",
    ] {
        cache(&info, name);
    }
}

#[test]
fn two_nodes_agree_with_meminfo_to_the_page() {
    let info = check(
        data!("two-nodes-128g.txt"),
        129,
        50,
        1_452_008,
        [
            ("buffer_head", 652_868),
            ("xfs_inode", 338_528),
            ("dentry", 102_944),
        ],
    );
    assert_eq!(
        figure(cache(&info, "buffer_head"), Quantity::Objects),
        Some(6_365_463)
    );
}

#[test]
fn open_stack_with_fallback_slabs() {
    let info = parse(data!("5.4-openstack.txt"));
    assert!(info.parsed.warnings.is_empty());
    check_sums(
        &info,
        223,
        99,
        920_532,
        [
            ("ext4_inode_cache", 189_792),
            ("buffer_head", 88_404),
            ("dentry", 84_856),
        ],
    );
    let deficit = |name| {
        Usage::of(cache(&info, name), PAGE)
            .fallback_deficit
            .unwrap()
            .get()
    };
    assert_eq!(deficit("ext4_inode_cache"), 171_999 - 171_921);
    assert_eq!(deficit("inode_cache"), 7);
    assert_eq!(deficit("task_struct"), 4);
    assert_eq!(deficit("radix_tree_node"), 56);
    assert_eq!(
        figure(cache(&info, "kmalloc-32"), Quantity::Objects),
        Some(866_841)
    );
}

#[test]
fn three_rows_keep_their_exact_names() {
    let info = check(
        data!("three-rows.txt"),
        3,
        0,
        104,
        [("TCP", 64), ("kmalloc-1k", 32), ("kmalloc-192", 8)],
    );
    assert_eq!(figure(cache(&info, "TCP"), Quantity::Order), Some(3));
}

#[test]
fn a_statistics_row_with_tabs_after_a_mail() {
    let info = parse(data!("2.6.24-statistics-tabs.txt"));
    assert!(
        info.parsed.warnings.is_empty(),
        "{:?}",
        info.parsed.warnings
    );
    assert_eq!(info.parsed.caches.len(), 1);
    let mm = cache(&info, "mm_struct");
    assert_eq!(objects(mm), [38, 98, 14].map(Some));
    assert_eq!(kib(mm), 56);
    let statistics = mm.slab_statistics.as_deref().unwrap();
    let global = [
        statistics.listallocs,
        statistics.maxobjs,
        statistics.grown,
        statistics.reaped,
        statistics.error,
        statistics.maxfreeable,
        statistics.nodeallocs,
        statistics.remotefrees,
        statistics.alienoverflow,
    ];
    assert_eq!(global, [2781, 196, 49, 31, 0, 1, 0, 0, 0].map(Some));
    let cpu = [
        statistics.allochit,
        statistics.allocmiss,
        statistics.freehit,
        statistics.freemiss,
    ];
    assert_eq!(cpu, [368_800, 11_864, 368_920, 11_721].map(Some));
    assert_eq!(statistics.live_by_counters(), Some(23));
    assert!(info.statistics && !info.header_seen);
}

#[test]
fn a_control_group_from_the_output_of_grep() {
    let info = check(
        data!("memcg-grep.txt"),
        4,
        2,
        8,
        [("kmalloc-16", 4), ("pde_opener", 4), ("TCPv6", 0)],
    );
    let group = "/kubepods.slice/kubepods-podf00f1a6b_5fe6_4fca_b005_ba162aa468ef.slice/\
                 crio-35c9d39b58f5a7ad7b9294a67cb3c7a9df219df7bf3b712ff43524254af6664a.scope";
    for cache in &info.parsed.caches {
        assert_eq!(cache.cgroup.as_deref(), Some(group));
        assert_eq!(cache.origin(Quantity::Slabs), Some(Layer::Memcg));
    }
    assert_eq!(info.version.unwrap().to_string(), "2.1");
}

#[test]
fn carriage_returns_and_a_cut_upload() {
    let info = parse(data!("crlf-truncated.txt"));
    check_sums(
        &info,
        58,
        30,
        9752,
        [("inode_cache", 2924), ("dentry", 1736), ("jffs2_i", 1172)],
    );
    let warnings: Vec<_> = info.parsed.warnings.iter().collect();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].code, WarningCode::Truncated);
    assert_eq!(warnings[0].to_string(), "line 61: truncated row, ignored");
    assert_eq!(info.parsed.broken_rows, 1);
    assert!(info.parsed.caches.iter().all(|c| !c.name.contains('\r')));
}

#[test]
fn slab_6_1_with_statistics() {
    let info = check(
        data!("6.1-slab-statistics-numa.txt"),
        108,
        36,
        10_152,
        [
            ("shmem_inode_cache", 2360),
            ("kernfs_node_cache", 908),
            ("kmalloc-4k", 892),
        ],
    );
    assert_eq!(info.allocator, Allocator::Slab);
    assert!(info.statistics && !info.smp);
    for cache in &info.parsed.caches {
        let statistics = cache.slab_statistics.as_deref().unwrap();
        assert!(statistics.alienoverflow.is_some() && statistics.freemiss.is_some());
    }
}

#[test]
fn slub_7_3() {
    let info = check(
        data!("7.3-cloud.txt"),
        203,
        101,
        23_648,
        [
            ("shmem_inode_cache", 5856),
            ("inode_cache", 3888),
            ("dentry", 2960),
        ],
    );
    assert_eq!(info.allocator, Allocator::Slub);
    assert!(!info.statistics);
}
