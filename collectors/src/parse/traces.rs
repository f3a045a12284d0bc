//! Call sites: debugfs `alloc_traces` and `free_traces`, older `alloc_calls`
//! and `free_calls`, and their lines in mails.
//!
//! Purpose: who allocated or freed the objects of a cache that records it
//! (slab_debug=U). Source of truth: mm/slub.c, the debugfs form of Linux 5.14
//! (stacks from 5.19, waste from 6.1) and the sysfs form before it, which ends
//! at one page. Several samples in one text are all read; it does not subtract.

use super::{clean, rows};
use crate::model::{
    AgeUnit, CallSite, CpuId, NodeId, Objects, SiteKind, Warning, WarningCode, Warnings,
};

/// Processor and node numbers kept in all: lists such as `0-8191` are short to
/// write and long to hold.
const MAX_IDS: usize = 4 << 20;

/// Frames kept for one site; the kernel prints 16.
const MAX_FRAMES: usize = 64;

/// What the old files leave free at the end of their page, rounded up.
const PAGE_SLACK: usize = 400;

/// Whether a record is near the beginning.
pub fn recognise(text: &[u8]) -> bool {
    clean::lines(rows::head(text))
        .any(|(_, line)| Record::read(rows::bare(&line)).is_some_and(|r| r.age.is_some()))
}

/// Reads every record. `No data` is an empty list.
pub fn parse(text: &[u8], kind: SiteKind) -> (Vec<CallSite>, Warnings) {
    let mut reader = Reader {
        kind,
        sites: Vec::new(),
        warnings: Warnings::default(),
        ids_left: MAX_IDS,
        open: false,
        suspect: None,
        modern: false,
    };
    for (number, line) in clean::lines(text) {
        reader.line(number, rows::bare(&line));
    }
    reader.finish(text.len())
}

struct Reader {
    kind: SiteKind,
    sites: Vec<CallSite>,
    warnings: Warnings,
    ids_left: usize,
    /// Frames that follow belong to the last site.
    open: bool,
    suspect: Option<u64>,
    /// Stacks or waste were seen: not the old form, which ends at one page.
    modern: bool,
}

impl Reader {
    fn line(&mut self, number: u64, line: &str) {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            self.open = false;
            return;
        }
        self.settle(WarningCode::BrokenRow);
        if let Some(record) = Record::read(trimmed) {
            self.record(&record, number);
        } else if trimmed.eq_ignore_ascii_case("no data") {
            self.open = false;
        } else if trimmed == "Out of memory" {
            let message = "the kernel had no memory for the list of call sites";
            let warning = Warning::new(WarningCode::Unreadable, message);
            self.warnings.push(warning.at_line(number));
        } else if looks_like_record(trimmed) {
            self.open = false;
            self.suspect = Some(number);
        } else if self.open && is_frame(trimmed) {
            self.modern = true;
            if let Some(site) = self.sites.last_mut()
                && site.stack.len() < MAX_FRAMES
            {
                site.stack.push(trimmed.to_owned());
            }
        } else {
            self.open = false;
        }
    }

    fn record(&mut self, record: &Record<'_>, number: u64) {
        self.modern |= record.waste.is_some();
        self.open = true;
        // An object that never had this done to it: its record is all zeros, of
        // which the kernel makes an age since boot, process 0 and CPU 0.
        let known = record.symbol != "<not-available>";
        let cpus = self.list(record.cpus.filter(|_| known), number);
        let nodes = self.list(record.nodes, number);
        self.sites.push(CallSite {
            age_unit: AgeUnit::Jiffies,
            pinned: None,
            kind: self.kind,
            count: Objects(record.count),
            symbol: known.then(|| record.symbol.to_owned()),
            waste: record.waste,
            age: record.age.filter(|_| known),
            pids: record.pids.filter(|_| known),
            cpus: cpus.into_iter().map(CpuId).collect(),
            nodes: nodes.into_iter().map(NodeId).collect(),
            stack: Vec::new(),
        });
    }

    /// The numbers of `0-3,7`; empty when broken or when there were too many.
    fn list(&mut self, text: Option<&str>, number: u64) -> Vec<u32> {
        let Some(text) = text else {
            return Vec::new();
        };
        let mut ids = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
                let message = format!("list of numbers not understood: {}", shortened(text));
                let warning = Warning::new(WarningCode::BrokenValue, message);
                self.warnings.push(warning.at_line(number));
                return Vec::new();
            };
            let len = last.saturating_sub(first) as usize + 1;
            if len > self.ids_left {
                let message = "too many processors or nodes, list left out";
                let warning = Warning::new(WarningCode::LimitReached, message);
                self.warnings.push(warning.at_line(number));
                return Vec::new();
            }
            self.ids_left -= len;
            ids.extend(first..=last);
        }
        ids
    }

    fn settle(&mut self, code: WarningCode) {
        if let Some(line) = self.suspect.take() {
            let message = if code == WarningCode::Truncated {
                "the last record is cut off, left out"
            } else {
                "record not understood, left out"
            };
            self.warnings
                .push(Warning::new(code, message).at_line(line));
        }
    }

    fn finish(mut self, len: usize) -> (Vec<CallSite>, Warnings) {
        self.settle(WarningCode::Truncated);
        let full_page = [4096, 16_384, 65_536]
            .iter()
            .any(|page| (page - PAGE_SLACK..=*page).contains(&len));
        if full_page && !self.modern && !self.sites.is_empty() {
            let message = "the list fills one page, where the kernel stops: more sites are likely";
            self.warnings
                .push(Warning::new(WarningCode::Truncated, message));
        }
        (self.sites, self.warnings)
    }
}

/// One line with a count.
struct Record<'a> {
    count: u64,
    symbol: &'a str,
    waste: Option<(u64, u64)>,
    age: Option<(u64, u64, u64)>,
    pids: Option<(i64, i64)>,
    cpus: Option<&'a str>,
    nodes: Option<&'a str>,
}

impl<'a> Record<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (count, rest) = line.trim().split_once(char::is_whitespace)?;
        let count = count.parse().ok()?;
        // The module's name is part of the symbol: `ext4_x+0x1/0x2 [ext4]`.
        let keys = [" waste=", " age=", " pid="];
        let end = keys.iter().filter_map(|k| rest.find(k)).min()?;
        let symbol = rest[..end].trim();
        if symbol.is_empty() {
            return None;
        }
        let mut record = Self {
            count,
            symbol,
            waste: None,
            age: None,
            pids: None,
            cpus: None,
            nodes: None,
        };
        for word in rest[end..].split_whitespace() {
            let (key, value) = word.split_once('=')?;
            match key {
                "waste" => record.waste = waste(value),
                "age" => record.age = age(value),
                "pid" => record.pids = pids(value),
                "cpus" => record.cpus = Some(value),
                "nodes" => record.nodes = Some(value),
                _ => {}
            }
        }
        (record.age.is_some() || record.pids.is_some()).then_some(record)
    }
}

fn waste(text: &str) -> Option<(u64, u64)> {
    let (all, each) = text.split_once('/')?;
    Some((all.parse().ok()?, each.parse().ok()?))
}

/// `min` or `min/mean/max`.
fn age(text: &str) -> Option<(u64, u64, u64)> {
    let mut parts = text.split('/').map(|p| p.parse().ok());
    let min = parts.next()??;
    match (parts.next(), parts.next(), parts.next()) {
        (None, _, _) => Some((min, min, min)),
        (Some(mean), Some(max), None) => Some((min, mean?, max?)),
        _ => None,
    }
}

/// `first` or `first-last`; a first one below 0 has a sign of its own.
fn pids(text: &str) -> Option<(i64, i64)> {
    if let Ok(pid) = text.parse() {
        return Some((pid, pid));
    }
    let dash = text.get(1..)?.find('-')? + 1;
    Some((text[..dash].parse().ok()?, text[dash + 1..].parse().ok()?))
}

/// A count and a symbol, but not the rest.
fn looks_like_record(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let count = words.next().unwrap_or_default();
    let is_count = !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit());
    is_count
        && words
            .next()
            .is_none_or(|w| w.contains("+0x") || w.starts_with('<'))
}

/// `symbol+0x1/0x2`, or a bare address where symbols are not built in.
fn is_frame(line: &str) -> bool {
    line.contains("+0x") || line.starts_with("0x")
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KMALLOC: &str = include_str!("../../tests/data/text/alloc_traces-kmalloc-64-6.12.txt");
    const FREED: &str = include_str!("../../tests/data/text/free_traces-cred-6.12.txt");

    #[test]
    fn records_keep_waste_lists_and_stacks() {
        let (sites, warnings) = parse(KMALLOC.as_bytes(), SiteKind::Alloc);
        assert!(warnings.is_empty(), "{warnings:?}");
        let first = &sites[0];
        assert_eq!(first.count, Objects(400));
        assert_eq!(
            first.symbol.as_deref(),
            Some("kprobe_add_ksym_blacklist+0x6e/0xf0")
        );
        assert_eq!(first.waste, Some((6400, 16)));
        assert_eq!(first.age, Some((3901, 3901, 3901)));
        assert_eq!(first.pids, Some((1, 1)));
        assert_eq!(
            (&first.cpus[..], &first.nodes[..]),
            (&[CpuId(0)][..], &[NodeId(0)][..])
        );
        assert_eq!(first.stack.len(), 7);
        assert_eq!(first.stack[6], "ret_from_fork_asm+0x1a/0x30");
        assert_eq!(sites[1].nodes, [NodeId(0), NodeId(1)]);
        assert!(sites.iter().all(|s| !s.stack.is_empty()));
    }

    #[test]
    fn a_site_that_is_not_there_has_no_age_process_or_processor() {
        let (sites, warnings) = parse(FREED.as_bytes(), SiteKind::Free);
        assert!(warnings.is_empty());
        let unknown = sites.iter().find(|s| s.symbol.is_none()).unwrap();
        assert_eq!(unknown.kind, SiteKind::Free);
        assert_eq!(unknown.count, Objects(76));
        assert_eq!((unknown.age, unknown.pids), (None, None));
        assert!(unknown.cpus.is_empty() && unknown.stack.is_empty());
        assert_eq!(
            unknown.nodes,
            [NodeId(0), NodeId(1)],
            "where the objects are"
        );
    }

    #[test]
    fn single_values_ranges_and_modules_are_read() {
        let text = b"      3 ext4_alloc+0x1/0x2 [ext4] age=735 pid=-1-12 cpus=0-2,7 nodes=1\n";
        let (sites, warnings) = parse(text, SiteKind::Alloc);
        assert!(warnings.is_empty());
        assert_eq!(
            sites[0].symbol.as_deref(),
            Some("ext4_alloc+0x1/0x2 [ext4]")
        );
        assert_eq!(sites[0].age, Some((735, 735, 735)));
        assert_eq!(sites[0].pids, Some((-1, 12)));
        assert_eq!(sites[0].cpus.len(), 4);
    }

    #[test]
    fn nothing_recorded_is_empty_without_a_warning() {
        let (sites, warnings) = parse(b"No data\n", SiteKind::Alloc);
        assert!(sites.is_empty() && warnings.is_empty());
        let (_, warnings) = parse(b"Out of memory\n", SiteKind::Alloc);
        assert!(warnings.has(WarningCode::Unreadable));
    }

    #[test]
    fn a_full_page_of_the_old_form_is_called_cut() {
        let line = "     12 sysfs_new_dirent+0x2c/0x110 age=735/793524/793600 pid=1-12 cpus=0-1\n";
        let page = line.repeat(3900 / line.len() + 1);
        let (sites, warnings) = parse(page.as_bytes(), SiteKind::Alloc);
        assert!(sites.len() > 50 && warnings.has(WarningCode::Truncated));
        let (_, warnings) = parse(line.repeat(3).as_bytes(), SiteKind::Alloc);
        assert!(warnings.is_empty());
        // slabinfo -t cuts in the middle of a line.
        let (sites, warnings) = parse(&line.repeat(2).as_bytes()[..120], SiteKind::Alloc);
        assert_eq!(sites.len(), 1);
        assert!(warnings.has(WarningCode::Truncated));
    }

    #[test]
    fn long_lists_cannot_fill_the_memory() {
        let text = "1 f+0x1/0x2 age=1 pid=1 cpus=0-4294967295\n\
                    1 f+0x1/0x2 age=1 pid=1 cpus=0-1048575\n"
            .repeat(9);
        let (sites, warnings) = parse(text.as_bytes(), SiteKind::Alloc);
        assert_eq!(sites.len(), 18);
        assert!(sites.iter().map(|s| s.cpus.len()).sum::<usize>() <= MAX_IDS);
        assert!(warnings.has(WarningCode::LimitReached));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            parse(&bytes, SiteKind::Alloc);
            recognise(&bytes);
        }

        #[test]
        fn damage_costs_at_most_one_record(at in 0usize..5000, byte in any::<u8>()) {
            let whole = parse(KMALLOC.as_bytes(), SiteKind::Alloc).0.len();
            let mut text = KMALLOC.as_bytes().to_vec();
            text[at] = byte;
            prop_assert!(parse(&text, SiteKind::Alloc).0.len() + 1 >= whole);
        }
    }
}
