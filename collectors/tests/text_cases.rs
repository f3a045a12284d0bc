//! Texts as people paste them and as collectors save them: the answers a
//! person would get by careful reading. Sources: public threads and captures.

use collectors::analysis::usage::Usage;
use collectors::model::{
    Approx, Bytes, Cache, CacheId, Flag, Objects, Quantity, SiteKind, Slabs, WarningCode,
};
use collectors::parse::{
    Parsed, alias_listing, crash_kmem, oom_table, sections, slabinfo_tool, slabtop, traces,
};

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("data/text/", $name)).as_slice()
    };
}

fn named<'a>(parsed: &'a Parsed, name: &str) -> &'a Cache {
    let found: Vec<_> = parsed.caches.iter().filter(|c| &*c.name == name).collect();
    assert_eq!(found.len(), 1, "{name}");
    found[0]
}

/// `u64::MAX` when the text did not tell, so that a comparison fails.
fn kib(cache: &Cache) -> u64 {
    cache
        .get(Quantity::ReportedTotal)
        .map_or(u64::MAX, |total| total.value / 1024)
}

fn top(parsed: &Parsed, count: usize) -> Vec<(&str, u64)> {
    let mut list: Vec<_> = parsed.caches.iter().map(|c| (&*c.name, kib(c))).collect();
    list.sort_by_key(|(name, kib)| (std::cmp::Reverse(*kib), *name));
    list.truncate(count);
    list
}

#[test]
fn a_coreos_host_holds_45_gb_of_ebitmap_nodes() {
    let text = data!("slabtop-coreos-ebitmap.txt");
    let parsed = slabtop::parse(text);
    assert!(slabtop::recognise(text));
    assert_eq!((parsed.caches.len(), parsed.broken_rows), (8, 0));
    assert_eq!(top(&parsed, 1), [("ebitmap_node", 45_906_648)]);
    let cache = named(&parsed, "ebitmap_node");
    let usage = Usage::of(cache, 4096);
    assert_eq!(usage.memory, Some(Approx::exact(Bytes(45_906_648 * 1024))));
    assert_eq!(
        usage.object_use,
        Some(Approx::exact(1.0)),
        "live, not fragmented"
    );
    let all = slabtop::totals(text).unwrap().bytes.unwrap().1.value;
    let share = kib(cache) as f64 * 1024.0 / all as f64;
    assert!((share - 0.969).abs() < 0.001, "{share}");
}

#[test]
fn an_ubuntu_slabtop_is_sorted_by_objects_but_led_by_inodes() {
    let text = data!("slabtop-ubuntu-5.4.txt");
    let parsed = slabtop::parse(text);
    assert!(parsed.warnings.is_empty());
    assert_eq!(parsed.caches.len(), 223);
    assert_eq!(&*parsed.caches[0].name, "buffer_head");
    assert_eq!(
        top(&parsed, 3),
        [
            ("ext4_inode_cache", 196_160),
            ("proc_inode_cache", 123_584),
            ("dentry", 104_892)
        ]
    );
    assert_eq!(parsed.caches.iter().map(kib).sum::<u64>(), 1_010_856);
    let totals = slabtop::totals(text).unwrap();
    let header = totals.bytes.unwrap().1;
    assert!(
        header.approx && header.value.abs_diff(1_017_986_355) < 10,
        "{header:?}"
    );
    assert_eq!(totals.caches, Some((124, 223)));
    let empty = parsed
        .caches
        .iter()
        .filter(|c| c.slabs().unwrap().value == Slabs(0));
    assert!(empty.clone().count() > 0);
    assert!(
        empty
            .clone()
            .all(|c| kib(c) == 0 && Usage::of(c, 4096).object_use.is_none())
    );
}

#[test]
fn a_real_slabtop_agrees_with_itself() {
    let text = data!("slabtop-6.18.txt");
    let parsed = slabtop::parse(text);
    let totals = slabtop::totals(text).unwrap();
    assert!(parsed.warnings.is_empty());
    assert_eq!(parsed.caches.len() as u64, totals.caches.unwrap().1);
    let sum = |q| {
        parsed
            .caches
            .iter()
            .map(|c| c.get(q).unwrap().value)
            .sum::<u64>()
    };
    assert_eq!(sum(Quantity::TotalObjects), totals.objects.unwrap().1);
    assert_eq!(sum(Quantity::Objects), totals.objects.unwrap().0);
    assert_eq!(sum(Quantity::Slabs), totals.slabs.unwrap().1);
    for cache in &parsed.caches {
        let slabs = cache.slabs().unwrap().value.get();
        let bytes = cache.get(Quantity::ReportedTotal).unwrap().value;
        if let Some(each) = bytes.checked_div(slabs) {
            assert_eq!(bytes % slabs, 0, "{}", cache.name);
            assert!(each.is_power_of_two() && each >= 4096, "{}", cache.name);
            // Half of the last decimal is what the rounding may add per object.
            let slot = cache.slab_size().unwrap().value.get().saturating_sub(6);
            assert!(slot * cache.objs_per_slab().unwrap().value.get() <= each);
        }
    }
}

#[test]
fn the_table_of_an_arm_nas_acquits_slab() {
    let text = data!("oom-nas-nfsd.txt");
    assert!(oom_table::recognise(text));
    let parsed = oom_table::parse(text);
    assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    assert_eq!(parsed.caches.len(), 49);
    let used: u64 = parsed
        .caches
        .iter()
        .map(|c| c.get(Quantity::ReportedUsed).unwrap().value / 1024)
        .sum();
    assert_eq!(used, 12_779);
    assert_eq!(parsed.caches.iter().map(kib).sum::<u64>(), 13_919);
    assert_eq!(
        top(&parsed, 3),
        [
            ("kernfs_node_cache", 2138),
            ("shmem_inode_cache", 1662),
            ("kmalloc-64", 1288)
        ]
    );
    assert_eq!(kib(named(&parsed, "skbuff_fclone_cache")), 63);
    let memory = oom_table::memory(text).unwrap();
    assert_eq!(memory.slab_unreclaimable, Some(4350));
    assert_eq!(memory.slab_reclaimable, Some(13_680));
    assert_eq!(memory.ram, Some(262_144));
    let share = memory.slab_share().unwrap();
    assert!(
        (0.06..0.08).contains(&share),
        "slab holds 7 % of the memory"
    );
}

#[test]
fn one_mail_with_slabtop_and_oom_table_gives_both() {
    let text = data!("oom-and-slabtop-btrfs.txt");
    assert!(slabtop::recognise(text) && oom_table::recognise(text));
    let top = slabtop::parse(text);
    let cache = named(&top, "btrfs_extent_map");
    assert_eq!(top.caches.len(), 1);
    assert_eq!(
        cache.total_objects(),
        Some(Approx::exact(Objects(25_820_620)))
    );
    assert_eq!(cache.objects(), Some(Approx::exact(Objects(23_138_538))));
    assert_eq!(cache.objs_per_slab(), Some(Approx::exact(Objects(28))));
    assert_eq!(kib(cache), 922_165 * 4, "slabs of one page");
    let oom = oom_table::parse(text);
    let cache = named(&oom, "btrfs_extent_map");
    assert_eq!(
        cache.get(Quantity::ReportedUsed),
        Some(Approx::estimate(3_207_098 * 1024))
    );
    assert_eq!(kib(cache), 3_375_622);
    assert_eq!(cache.flags.get(Flag::ReclaimAccount), Some(false));
}

#[test]
fn three_samples_of_alloc_calls_show_ten_lost_strings() {
    let text = data!("alloc-calls-nfs-readdir.txt");
    assert!(traces::recognise(text));
    let (sites, warnings) = traces::parse(text, SiteKind::Alloc);
    assert!(warnings.is_empty());
    let counts: Vec<_> = sites.iter().map(|s| s.count.get()).collect();
    assert_eq!(counts, [30_564_391, 30_564_511, 30_564_401]);
    assert_eq!(counts[2] - counts[0], 10);
    assert!(
        sites
            .iter()
            .all(|s| s.symbol.as_deref() == Some("nfs_readdir_add_to_array+0x73/0xd0"))
    );
    assert_eq!(sites[2].age, Some((735, 4_793_524, 6_543_176)));
    assert_eq!(sites[0].pids, Some((370, 1_048_386)));
    assert_eq!((sites[0].cpus.len(), sites[0].nodes.len()), (48, 2));
}

#[test]
fn crash_knows_nothing_of_a_damaged_cache() {
    let text = data!("crash-kmem-question-marks.txt");
    assert!(crash_kmem::recognise(text));
    let parsed = crash_kmem::parse(text);
    assert_eq!((parsed.caches.len(), parsed.broken_rows), (13, 0));
    let use_of = |name| {
        let usage = Usage::of(named(&parsed, name), 4096);
        (usage.object_use.unwrap().value * 1000.0).round() / 10.0
    };
    assert!((use_of("nf_conntrack") - 2.4).abs() < 0.01);
    assert!((use_of("nfs_inode_cache") - 1.3).abs() < 0.01);
    assert!((use_of("kmalloc-256") - 9.8).abs() < 0.01);
    assert_eq!(kib(named(&parsed, "nf_conntrack")), 843 * 16);
    assert_eq!(kib(named(&parsed, "kmalloc-256")), 1004 * 16);
    let damaged = Usage::of(named(&parsed, "kmalloc-512"), 4096);
    assert_eq!((damaged.memory, damaged.object_use), (None, None));
    let messages: Vec<_> = parsed.warnings.iter().map(|w| w.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "kmalloc-512: slab: fffff114bf91d800 oo objects: 64 slab objects: 0",
            "kmalloc-512: cannot gather relevant slab data"
        ]
    );
    assert_eq!(parsed.warnings.iter().nth(1).unwrap().line, Some(14));
}

#[test]
fn a_sosreport_listing_gives_the_merge_groups() {
    let text = data!("ls-lt-rhcos-4.18.txt");
    assert!(alias_listing::recognise(text));
    let listing = alias_listing::parse(text);
    assert!(listing.warnings.is_empty());
    assert_eq!((listing.directories.len(), listing.links.len()), (142, 182));
    for (name, id) in [
        ("btree_node", ":0000128"),
        ("Acpi-State", ":0000080"),
        ("Acpi-ParseExt", ":0000080"),
        ("dma-kmalloc-128", ":d-0000128"),
        ("UDPv6", ":A-0001472"),
    ] {
        let link = (name.to_owned(), id.to_owned());
        assert!(listing.links.contains(&link), "{name}");
    }
    // Every link leads to a directory of the same listing.
    assert!(
        listing
            .links
            .iter()
            .all(|(_, id)| listing.directories.contains(id))
    );
}

#[test]
fn listing_lines_in_a_mail_give_the_groups_too() {
    let listing = alias_listing::parse(data!("ls-in-mail.txt"));
    let mut caches = ["Acpi-State", "fib6_nodes", "btree_node"].map(|n| Cache::new(CacheId(0), n));
    alias_listing::apply(&listing, &mut caches);
    let group = |i: usize| (caches[i].sysfs_id.as_deref(), caches[i].aliases.as_deref());
    assert_eq!(
        group(0),
        (Some(":0000080"), Some(&["Acpi-ParseExt".into()][..]))
    );
    assert_eq!(
        group(1),
        (Some(":t-0000128"), Some(&["kmalloc-128".into()][..]))
    );
    assert_eq!(group(2), (Some(":0000128"), Some(&[][..])));
    // The last line ends within the id.
    assert!(listing.warnings.has(WarningCode::Truncated));
}

#[test]
fn the_slabinfo_tool_counts_in_powers_of_ten() {
    let text = data!("slabinfo-tool-android.txt");
    assert!(slabinfo_tool::recognise(text));
    let parsed = slabinfo_tool::parse(text);
    assert_eq!(parsed.caches.len(), 5);
    let dentry = named(&parsed, "dentry");
    assert_eq!(
        Usage::of(dentry, 4096).memory,
        Some(Approx::exact(Bytes(2_600_960)))
    );
    assert_eq!(
        dentry.get(Quantity::ReportedTotal),
        Some(Approx::exact(2_600_960))
    );
    let node = named(&parsed, "kernfs_node_cache");
    assert_eq!(node.flags.get(Flag::ReclaimAccount), Some(false));
    assert!(
        named(&parsed, "biovec-max")
            .flags
            .is_set(Flag::HwcacheAlign)
    );
    assert!(
        parsed
            .caches
            .iter()
            .all(|c| c.partial() == Some(Approx::exact(Slabs(0))))
    );
    let names: Vec<_> = slabinfo_tool::aliases(text)
        .links
        .into_iter()
        .filter(|(_, id)| id == ":0001024")
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names.len(), 7);
    assert_eq!(names[6], "hugo");
    // The list at the end, on its own.
    let at = text
        .windows(12)
        .rposition(|w| w == b"./slabinfo\nN")
        .unwrap();
    let list = slabinfo_tool::parse(&text[at..]);
    let merged = named(&list, ":0001024");
    assert_eq!(merged.slabs(), Some(Approx::exact(Slabs(150))));
    assert_eq!(
        merged.get(Quantity::AliasCount),
        None,
        "the star does not count"
    );
}

#[test]
fn a_real_slabinfo_list_agrees_with_itself() {
    let parsed = slabinfo_tool::parse(data!("slabinfo-tool-list-6.18.txt"));
    assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    assert_eq!(parsed.caches.len(), 121);
    for cache in &parsed.caches {
        let exact = Usage::of(cache, 4096).memory.unwrap().value.get();
        let printed = cache.get(Quantity::ReportedTotal).unwrap();
        let unit = if printed.value >= 1_000_000 {
            100_000
        } else {
            100
        };
        assert!(
            (printed.value..printed.value + unit).contains(&exact),
            "{}: {exact} printed as {}",
            cache.name,
            printed.value
        );
        assert!(printed.approx);
    }
}

#[test]
fn real_aliases_give_real_groups() {
    let text = data!("slabinfo-tool-aliases-6.18.txt");
    assert!(slabinfo_tool::recognise(text));
    let parsed = slabinfo_tool::parse(text);
    let pair = named(&parsed, ":A-0000192");
    assert_eq!(
        pair.aliases.as_deref(),
        Some(&["cred".into(), "pid".into()][..])
    );
    assert_eq!(parsed.caches.len(), 42);
}

#[test]
fn a_copied_tree_in_one_text_is_split_into_its_files() {
    let text = data!("sections-arm-4.1.txt");
    assert!(sections::recognise(text));
    let list = sections::split(text);
    assert_eq!((list[0].path.as_str(), list[0].line), ("/proc/slabinfo", 2));
    assert_eq!(list[0].body.split(|b| *b == b'\n').count(), 2 + 67 + 1);
    let of = |path: &str| {
        let section = list.iter().find(|s| s.path == path).unwrap();
        std::str::from_utf8(section.body).unwrap()
    };
    assert_eq!(of("/sys/kernel/slab/proc_inode_cache/slabs"), "99\n");
    assert_eq!(
        of("/sys/kernel/slab/proc_inode_cache/total_objects"),
        "2277\n"
    );
    assert_eq!(of("/sys/kernel/slab/UDP/alloc_calls"), "");
    assert_eq!(of("/sys/kernel/slab/UDP/ctor"), "");
    let mut caches: Vec<_> = list
        .iter()
        .filter_map(|s| s.path.strip_prefix("/sys/kernel/slab/")?.split('/').next())
        .collect();
    caches.dedup();
    assert_eq!(caches.len(), 13);
}

/// The text as it looks after a mail program, a web page or the kernel log had it.
fn worn(text: &[u8]) -> [Vec<u8>; 4] {
    let text = String::from_utf8_lossy(text);
    let lines = |prefix: &str, end: &str| -> Vec<u8> {
        let end = format!("{end}{prefix}");
        format!("{prefix}{}", text.trim_end().replace('\n', &end)).into_bytes()
    };
    [
        lines("> > ", "\n"),
        lines("", "\r\n"),
        lines("Oct 10 12:00:00 host kernel: [49689.329363] ", "\n"),
        text.replace("  ", "\u{a0} ").into_bytes(),
    ]
}

#[test]
fn a_worn_copy_reads_as_the_original() {
    type Reads = fn(&[u8]) -> Vec<Cache>;
    let tables: [(&[u8], Reads); 6] = [
        (data!("slabtop-6.18.txt"), |t| slabtop::parse(t).caches),
        (data!("slabinfo-tool-list-6.18.txt"), |t| {
            slabinfo_tool::parse(t).caches
        }),
        (data!("slabinfo-tool-report-6.18.txt"), |t| {
            slabinfo_tool::parse(t).caches
        }),
        (data!("slabinfo-tool-aliases-6.18.txt"), |t| {
            slabinfo_tool::parse(t).caches
        }),
        (data!("crash-kmem-question-marks.txt"), |t| {
            crash_kmem::parse(t).caches
        }),
        (data!("oom-nas-nfsd.txt"), |t| oom_table::parse(t).caches),
    ];
    for (i, (text, reads)) in tables.into_iter().enumerate() {
        for (j, worn) in worn(text).iter().enumerate() {
            assert_eq!(reads(worn), reads(text), "text {i}, damage {j}");
        }
    }
    let (listing, sites) = (
        data!("ls-lt-rhcos-4.18.txt"),
        data!("alloc_traces-cred-6.12.txt"),
    );
    for worn in worn(listing) {
        assert_eq!(alias_listing::parse(&worn), alias_listing::parse(listing));
    }
    for worn in worn(sites) {
        let read = |text| traces::parse(text, SiteKind::Alloc);
        assert_eq!(read(&worn), read(sites));
    }
    assert_eq!(
        worn(data!("oom-nas-nfsd.txt")).map(|t| oom_table::memory(&t)),
        [oom_table::memory(data!("oom-nas-nfsd.txt")); 4]
    );
}

#[test]
fn no_text_is_taken_for_another() {
    let texts = [
        data!("slabtop-6.18.txt"),
        data!("slabinfo-tool-list-6.18.txt"),
        data!("crash-kmem-question-marks.txt"),
        data!("oom-nas-nfsd.txt"),
        data!("ls-lt-rhcos-4.18.txt"),
        data!("alloc_traces-cred-6.12.txt"),
        data!("sections-arm-4.1.txt"),
        b"nothing of the kind\n",
    ];
    for (i, text) in texts.iter().enumerate() {
        let found = [
            slabtop::recognise(text),
            slabinfo_tool::recognise(text),
            crash_kmem::recognise(text),
            oom_table::recognise(text),
            alias_listing::recognise(text),
            traces::recognise(text),
            sections::recognise(text),
        ];
        for (j, found) in found.into_iter().enumerate() {
            assert_eq!(found, i == j, "text {i}, parser {j}");
        }
    }
}
