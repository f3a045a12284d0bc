//! The targets, by name.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;
use std::sync::OnceLock;

use collectors::analysis::explain;
use collectors::analysis::order::{self, OrderParams, OrderRule};
use collectors::columns::Row;
use collectors::filter::Filter;
use collectors::model::{Cache, CacheId, SiteKind, Snapshot, WarningCode};
use collectors::parse::{
    alias_listing, buddyinfo, clean, crash_kmem, kernel_log, meminfo, oom_table, pressure,
    sections, slabinfo, slabinfo_tool, slabtop, sysfs, traces,
};
use collectors::source::{Demand, capture};

use crate::check;

/// Name and body of every target.
pub const ALL: &[(&str, fn(&[u8]))] = &[
    ("slabinfo", slabinfo_text),
    ("slabtop", slabtop_text),
    ("slabinfo_tool", slabinfo_tool_text),
    ("crash_kmem", crash_kmem_text),
    ("oom_table", oom_table_text),
    ("alias_listing", alias_listing_text),
    ("traces", traces_text),
    ("sections", sections_text),
    ("sysfs", sysfs_values),
    ("meminfo", meminfo_text),
    ("filter", filter_expression),
    ("archive", archive),
    ("text", text),
    ("scaled", scaled),
    ("diff", diff),
    ("order", order_params),
    ("kernel_log", kernel_log_text),
    ("segment", crate::process::segment),
    ("process", crate::process::process),
    ("image", crate::process::image),
    ("segment_seed", crate::process::seed),
];

fn path() -> &'static Path {
    Path::new("input")
}

fn slabinfo_text(input: &[u8]) {
    let whole = slabinfo::parse(input);
    check::parser(input, |text| slabinfo::parse(text).parsed);
    // In pieces of any size, as from a pipe.
    for size in [1, 7, 64, 4096] {
        let reader = BufReader::with_capacity(size, input);
        let Ok(streamed) = slabinfo::parse_from(reader, usize::MAX) else {
            panic!("reading from memory failed");
        };
        check::same(&whole.parsed, &streamed.parsed);
        assert_eq!(whole.version, streamed.version);
        assert_eq!(whole.allocator, streamed.allocator);
    }
    let few = slabinfo::parse_from(input, 2);
    assert!(few.is_ok_and(|few| few.parsed.caches.len() <= 2));
    let memcg = slabinfo::parse_memcg(input, "/a");
    assert_eq!(memcg.parsed.caches.len(), whole.parsed.caches.len());
    slabinfo::recognise(input);
    for (_, line) in clean::lines(input).take(32) {
        for format in [
            slabinfo::Format::V1_0,
            slabinfo::Format::V1_1,
            slabinfo::Format::V2,
        ] {
            if let Ok(row) = slabinfo::parse_row(&line, format) {
                assert!(!row.name.is_empty() && line.contains(row.name));
            }
        }
    }
}

fn slabtop_text(input: &[u8]) {
    check::parser(input, slabtop::parse);
    assert_eq!(slabtop::totals(input), slabtop::totals(input));
    slabtop::recognise(input);
}

fn slabinfo_tool_text(input: &[u8]) {
    check::parser(input, slabinfo_tool::parse);
    let listing = slabinfo_tool::aliases(input);
    check::warnings(&listing.warnings, Some(check::lines(input)));
    slabinfo_tool::recognise(input);
}

fn crash_kmem_text(input: &[u8]) {
    check::parser(input, crash_kmem::parse);
    crash_kmem::recognise(input);
}

fn oom_table_text(input: &[u8]) {
    check::parser(input, oom_table::parse);
    oom_table::recognise(input);
    let share = oom_table::memory(input).and_then(|memory| memory.slab_share());
    assert!(share.is_none_or(|share| share >= 0.0 && share.is_finite()));
}

/// The listing, and what it does to caches of the names in it.
fn alias_listing_text(input: &[u8]) {
    alias_listing::recognise(input);
    let listing = check::bounded(input.len(), || alias_listing::parse(input));
    check::warnings(&listing.warnings, Some(check::lines(input)));
    let lines = clean::lines(input).count();
    assert!(listing.links.len() + listing.directories.len() <= lines);
    let names = listing.links.iter().map(|(name, _)| name);
    let mut caches: Vec<Cache> = names
        .chain(&listing.directories)
        .map(|name| Cache::new(CacheId(0), name.as_str()))
        .collect();
    check::bounded(input.len(), || alias_listing::apply(&listing, &mut caches));
    for cache in &caches {
        let aliases = cache.aliases.iter().flatten();
        assert!(aliases.clone().is_sorted());
        assert!(aliases.clone().all(|alias| *alias != cache.name));
    }
    // Unless the first time came to the limit.
    let named = |c: &Cache| c.sysfs_id.is_none() || c.aliases.is_some();
    if caches.iter().all(named) {
        let once = caches.clone();
        alias_listing::apply(&listing, &mut caches);
        assert!(once == caches, "a second time changes something");
    }
}

fn traces_text(input: &[u8]) {
    traces::recognise(input);
    let lines = check::lines(input);
    for kind in [SiteKind::Alloc, SiteKind::Free] {
        // Lists of numbers are short to write: they have a limit of their own.
        let (sites, warnings) =
            check::bounded(input.len() + (1 << 20), || traces::parse(input, kind));
        assert!(sites.len() as u64 <= lines);
        check::warnings(&warnings, Some(lines));
        let again = traces::parse(input, kind);
        assert!((sites, warnings) == again, "a second reading differs");
    }
}

/// Sections are parts of the text, in order, without overlap.
fn sections_text(input: &[u8]) {
    sections::recognise(input);
    let lines = check::lines(input);
    let found = check::bounded(input.len(), || sections::split(input));
    let mut at = input.as_ptr() as usize;
    for section in &found {
        assert!(!section.path.is_empty());
        assert!((1..=lines + 1).contains(&section.line));
        if section.body.is_empty() {
            continue;
        }
        let start = section.body.as_ptr() as usize;
        assert!(start >= at, "sections overlap");
        at = start + section.body.len();
    }
    assert!(at <= input.as_ptr() as usize + input.len());
    let _ = capture::from_text(input, path());
}

/// One attribute; what was understood can be written and read again.
fn sysfs_values(input: &[u8]) {
    let text = &String::from_utf8_lossy(input);
    let number = sysfs::number(text);
    assert!(number.is_none_or(|n| sysfs::number(&n.to_string()) == Some(n)));
    sysfs::flag(text);
    sysfs::id_list_len(text);
    if let Some(list) = sysfs::node_list(text) {
        let nodes = list.nodes.iter().map(|(n, v)| format!(" N{}={v}", n.0));
        let again = sysfs::node_list(&format!("{}{}\n", list.total, nodes.collect::<String>()));
        assert_eq!(
            again.map(|l| (l.total, l.nodes)),
            Some((list.total, list.nodes))
        );
    }
    if let Some(list) = sysfs::stat(text) {
        let cpus = list.cpus.iter().map(|(c, v)| format!(" C{}={v}", c.0));
        let again = sysfs::stat(&format!("{}{}\n", list.total, cpus.collect::<String>()));
        assert_eq!(
            again.map(|l| (l.total, l.cpus)),
            Some((list.total, list.cpus))
        );
    }
    if let Some(list) = sysfs::cpu_partial(text) {
        let cpus = list
            .cpus
            .iter()
            .map(|(c, o, s)| format!(" C{}={o}({s})", c.0));
        let line = format!(
            "{}({}){}\n",
            list.objects,
            list.slabs,
            cpus.collect::<String>()
        );
        let again = sysfs::cpu_partial(&line);
        assert_eq!(again.map(|l| l.cpus), Some(list.cpus));
    }
    tree_of_values(text);
}

/// The same bytes as every attribute of one cache, through the whole reader.
fn tree_of_values(value: &str) {
    use collectors::source::tree::MemTree;
    const NAMES: &[&str] = &[
        "align",
        "objs_per_slab",
        "object_size",
        "order",
        "slab_size",
        "cpu_slabs",
        "partial",
        "objects",
        "objects_partial",
        "total_objects",
        "slabs",
        "aliases",
        "ctor",
        "min_partial",
        "cpu_partial",
        "slabs_cpu_partial",
        "alloc_fastpath",
        "alloc_slab",
        "free_slowpath",
        "poison",
        "red_zone",
        "reclaim_account",
        "sanity_checks",
        "usersize",
        "remote_node_defrag_ratio",
        "sheaf_capacity",
    ];
    let mut tree = MemTree::new("input");
    for name in NAMES {
        let file = format!("sys/kernel/slab/x/{name}");
        tree.insert_file(&file, value.as_bytes().to_vec());
    }
    tree.insert_file("sys/kernel/slab/y/slab_size", b"64\n".to_vec());
    tree.insert_file("sys/devices/system/cpu/online", value.as_bytes().to_vec());
    tree.insert_file("proc/vmstat", value.as_bytes().to_vec());
    if let Ok(snapshot) = capture::from_tree(Box::new(tree), path(), Default::default()) {
        check::snapshot(&snapshot);
    }
}

fn meminfo_text(input: &[u8]) {
    meminfo::recognise(input);
    let info = check::bounded(input.len(), || meminfo::parse(input));
    assert_eq!(info, meminfo::parse(input));
    let (zones, warnings) = check::bounded(input.len(), || buddyinfo::parse(input));
    let lines = input.split(|b| *b == b'\n').count();
    assert!(zones.len() + warnings.iter().count() <= lines);
    for zone in &zones {
        assert!(zone.at_least(0) >= zone.exactly(0));
    }
    assert_eq!(pressure::parse(input), pressure::parse(input));
}

/// Caches to try filters on.
fn some_caches() -> &'static [Cache] {
    static CACHES: OnceLock<Vec<Cache>> = OnceLock::new();
    CACHES.get_or_init(|| {
        let text = include_bytes!("../../collectors/tests/data/slabinfo/three-rows.txt");
        slabinfo::parse(text).parsed.caches
    })
}

fn filter_expression(input: &[u8]) {
    let text = &String::from_utf8_lossy(input);
    // A regular expression may take its own, limited, memory.
    let filter = check::bounded(input.len() + (1 << 20), || Filter::parse(text));
    let filter = match filter {
        Ok(filter) => filter,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let mut demand = Demand::names();
    filter.ask(&mut demand);
    let _ = filter.columns();
    for cache in some_caches() {
        let row = Row::new(cache, 4096);
        let accepted = filter.accepts(&row);
        assert_eq!(accepted, filter.accepts(&row));
        assert!(accepted || !filter.is_all());
        filter.accepts_name(&cache.name);
        let _ = filter.through_alias(cache);
    }
    let _ = Filter::patterns(&[text]);
}

fn stream(input: &[u8]) -> Option<Snapshot> {
    capture::from_stream(input, path()).ok()
}

/// Packed or not, an archive or a text: whatever a user may name.
fn archive(input: &[u8]) {
    let first = stream(input);
    if let Some(snapshot) = &first {
        check::snapshot(snapshot);
    }
    let slow = BufReader::with_capacity(3, input);
    let slow = capture::from_stream(slow, path()).ok();
    // How much a decoder gives before it fails depends on how it is fed; then
    // both results say that they are not whole.
    let cut = |s: &Option<Snapshot>| {
        s.as_ref()
            .is_none_or(|s| s.warnings.has(WarningCode::Truncated))
    };
    if !(cut(&first) && cut(&slow)) {
        assert!(first == slow, "reading in small pieces differs");
    }
}

fn text(input: &[u8]) {
    let first = check::bounded(4 * input.len(), || capture::from_text(input, path()).ok());
    if let Some(snapshot) = &first {
        check::snapshot(snapshot);
    }
    let again = capture::from_text(input, path()).ok();
    assert!(first == again, "a second reading differs");
}

/// A small text, repeated up to a megabyte with `#` counting up: what is more
/// than linear in the input runs into the time limit or holds too much.
fn scaled(input: &[u8]) {
    if input.is_empty() || input.len() > 4096 {
        return;
    }
    // Every file of a tree is a cache with some fifty files to look for.
    let size = if sections::recognise(input) {
        1 << 16
    } else {
        1 << 20
    };
    let mut big = Vec::with_capacity(size + (64 << 10));
    for n in 0..=size {
        for byte in input {
            match byte {
                b'#' => big.extend_from_slice(n.to_string().as_bytes()),
                byte => big.push(*byte),
            }
        }
        if big.len() > size {
            break;
        }
    }
    let snapshot = check::bounded(4 * big.len(), || capture::from_text(&big, path()).ok());
    if let Some(snapshot) = &snapshot {
        check::snapshot(snapshot);
    }
    if alias_listing::recognise(&big) {
        alias_listing_text(&big);
    }
    if traces::recognise(&big) {
        traces_text(&big);
    }
}

/// Two texts with a line of `=====` between them, or the halves of one.
fn diff(input: &[u8]) {
    const RULE: &[u8] = b"\n=====\n";
    let at = input.windows(RULE.len()).position(|w| w == RULE);
    let (a, b) = input.split_at(at.unwrap_or(input.len() / 2));
    let b = b.strip_prefix(RULE).unwrap_or(b);
    let read = |text| capture::from_text(text, path()).ok();
    if let (Some(a), Some(b)) = (read(a), read(b)) {
        check::difference(&a, &b);
    }
}

fn order_params(input: &[u8]) {
    let mut words = BTreeMap::new();
    for (at, word) in input.chunks(8).take(8).enumerate() {
        let mut bytes = [0; 8];
        bytes[..word.len()].copy_from_slice(word);
        words.insert(at, u64::from_le_bytes(bytes));
    }
    let word = |at| words.get(&at).copied().unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "any number will do")]
    let half = |at| word(at) as u32;
    // Half of the inputs with a real page size, else nearly all are refused.
    let page_size = match word(5) {
        n if n % 2 == 0 => 4096,
        n => n,
    };
    for rule in [OrderRule::MoreWaste, OrderRule::FewerObjects] {
        let mut params = OrderParams::new(word(0), half(1), page_size).with_rule(rule);
        check_order(&params);
        params.min_objects = Some(half(2));
        params.min_order = half(3);
        params.max_order = half(4);
        check_order(&params);
    }
    let text = String::from_utf8_lossy(input);
    let _ = order::rule_of_release(&text);
    order::explaining_cpus(&[(word(0), half(1))], page_size, OrderRule::MoreWaste);
}

fn check_order(params: &OrderParams) {
    if let Some(choice) = order::calculate_order(params) {
        let slab = params.page_size << choice.order;
        assert!(choice.objs_per_slab >= 1);
        let used = choice.objs_per_slab * params.slab_size;
        assert_eq!(used + choice.waste_bytes, slab);
        assert!(choice.fallback_order <= choice.order);
        assert!(choice.fallback_objs_per_slab <= choice.objs_per_slab);
    }
}

/// Reports of a log: the same however the text is cut, inside the log, bounded,
/// and each explained.
fn kernel_log_text(input: &[u8]) {
    struct Pieces<'a>(&'a [u8], usize);
    impl std::io::Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let len = into.len().min(self.1);
            self.0.read(&mut into[..len])
        }
    }
    let lines = check::lines(input);
    // A block, and reports in progress, are held whatever the input.
    let reports = check::bounded((1 << 16) + 4 * input.len(), || kernel_log::parse(input));
    for size in [1, 13, 4096] {
        let slow: Vec<_> = kernel_log::Scanner::new(Pieces(input, size))
            .filter_map(Result::ok)
            .collect();
        assert!(slow == reports, "reading in small pieces differs");
    }
    for report in &reports {
        let (first, last) = report.lines;
        assert!(
            1 <= first && first <= last && last <= lines + 1,
            "{first}-{last} of {lines}"
        );
    }
    let found = explain::explain(&reports);
    let told: u64 = found.findings.iter().map(|f| f.repeats).sum();
    assert_eq!(told + found.more, reports.len() as u64);
    for (at, finding) in found.findings.iter().enumerate() {
        assert!(!finding.headline.is_empty());
        assert!(finding.consequence_of.is_none_or(|root| root < at));
        assert!(finding.lines.0 <= finding.lines.1 && finding.lines.1 <= lines + 1);
        if let Some(damage) = finding.damage() {
            assert!(damage.found.len() <= 64);
        }
    }
}
