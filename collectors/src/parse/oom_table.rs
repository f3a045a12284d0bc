//! The kernel log's table of unreclaimable slabs after an OOM kill.
//!
//! Purpose: `Name Used Total` rows and the memory figures of the same report,
//! which can acquit slab. Source of truth: mm/slab_common.c
//! (dump_unreclaimable_slab, Linux 4.15 and later) and mm/show_mem.c. Sizes
//! are objects times slot size, cut to whole KiB; tails of slabs are not in
//! them. It does not read the lists of tasks or zones.

use super::rows::{self, Suspects};
use super::{Parsed, clean};
use crate::model::{Approx, Cache, Flag, Layer, Quantity, Warning, WarningCode};

const LAYER: Layer = Layer::OomTable;
const TITLE: &str = "Unreclaimable slab info:";
const REFUSED: &str = "excessive unreclaimable slab but cannot dump stats";

/// What an OOM report says about memory as a whole, in pages. `None`: not printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OomMemory {
    /// Pages of reclaimable slab.
    pub slab_reclaimable: Option<u64>,
    /// Pages of unreclaimable slab, with large kmallocs.
    pub slab_unreclaimable: Option<u64>,
    /// Pages of memory in the machine.
    pub ram: Option<u64>,
    /// Pages of it that the kernel keeps for itself.
    pub reserved: Option<u64>,
}

impl OomMemory {
    /// All slab as a part of the memory, 0 to 1; `None` when a figure is missing.
    ///
    /// A small part acquits slab: the leak is elsewhere.
    pub fn slab_share(&self) -> Option<f64> {
        let slab = self
            .slab_reclaimable?
            .checked_add(self.slab_unreclaimable?)?;
        let ram = self.ram.filter(|pages| *pages > 0)?;
        Some(slab as f64 / ram as f64)
    }
}

/// Whether the log has the table, its header, or the note that it is missing.
pub fn recognise(text: &[u8]) -> bool {
    clean::lines(rows::head(text))
        .any(|(_, line)| is_title(rows::bare(&line)) || line.contains(REFUSED))
}

/// Reads the first table of the log; rows without any header are read too.
pub fn parse(text: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    let mut suspects = Suspects::default();
    let headless = !clean::lines(text).any(|(_, line)| is_title(rows::bare(&line)));
    let mut in_table = headless;
    for (number, line) in clean::lines(text) {
        let line = rows::bare(&line).trim();
        if line.is_empty() {
            continue;
        }
        suspects.more_text(&mut parsed);
        if line.contains(REFUSED) {
            parsed.warnings.push(refused(number));
        } else if is_title(line) {
            if !parsed.caches.is_empty() {
                rows::note_more_tables(number, &mut parsed);
                break;
            }
            in_table = true;
        } else if in_table && let Some((name, used, total)) = row(line) {
            add(name, used, total, &mut parsed);
        } else if in_table && !headless && looks_like_row(line) {
            suspects.add(number, &mut parsed);
        } else if in_table && !headless && ends_table(line) {
            in_table = false;
        }
    }
    suspects.finish(&mut parsed);
    parsed
}

/// Reads the memory figures of the report that the first table belongs to; of
/// the last report when no table follows any.
pub fn memory(text: &[u8]) -> Option<OomMemory> {
    let mut memory = OomMemory::default();
    for (_, line) in clean::lines(text) {
        let line = rows::bare(&line).trim();
        if line.starts_with(TITLE) {
            break;
        } else if line.starts_with("Mem-Info:") {
            memory = OomMemory::default();
        }
        for word in line.split_whitespace() {
            // Per-node lines have the same words in kB.
            if let Some((key, Ok(pages))) = word.split_once(':').map(|(k, v)| (k, v.parse())) {
                match key {
                    "slab_reclaimable" => memory.slab_reclaimable = Some(pages),
                    "slab_unreclaimable" => memory.slab_unreclaimable = Some(pages),
                    _ => {}
                }
            }
        }
        memory.ram = line
            .strip_suffix(" pages RAM")
            .and_then(number)
            .or(memory.ram);
        memory.reserved = line
            .strip_suffix(" pages reserved")
            .and_then(number)
            .or(memory.reserved);
    }
    (memory != OomMemory::default()).then_some(memory)
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn is_title(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(TITLE) || line.split_whitespace().eq(["Name", "Used", "Total"])
}

/// Lines that follow the table in a report, or begin the next one.
fn ends_table(line: &str) -> bool {
    [
        "Tasks state",
        "[ pid",
        "Out of memory",
        "oom-kill:",
        "Mem-Info",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

/// Name and sizes in KiB; only the sizes may touch each other.
fn row(line: &str) -> Option<(&str, u64, u64)> {
    let (rest, total) = last_size(line)?;
    let (name, used) = last_size(rest)?;
    let apart = name.ends_with(char::is_whitespace);
    let name = name.trim();
    (apart && !name.is_empty()).then_some((name, used, total))
}

fn last_size(line: &str) -> Option<(&str, u64)> {
    let rest = line.trim_end().strip_suffix("KB")?;
    let digits = rest.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (rest, size) = rest.split_at(rest.len() - digits);
    Some((rest, size.parse().ok()?))
}

fn looks_like_row(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let second = words.nth(1);
    second.is_some_and(|w| {
        let digits = w.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && "KB".starts_with(&w[digits..])
    }) && words.count() <= 1
}

fn refused(line: u64) -> Warning {
    Warning::new(
        WarningCode::Incomplete,
        "the kernel found much unreclaimable slab but could not list the caches",
    )
    .at_line(line)
}

fn add(name: &str, used: u64, total: u64, parsed: &mut Parsed) {
    let mut cache = Cache::new(rows::next_id(parsed), name);
    cache.layers.insert(LAYER);
    for (quantity, kib) in [
        (Quantity::ReportedUsed, used),
        (Quantity::ReportedTotal, total),
    ] {
        if let Some(bytes) = kib.checked_mul(1024) {
            cache.set(quantity, Approx::estimate(bytes), LAYER);
        }
    }
    // The kernel lists no others here.
    cache.flags.put(Flag::ReclaimAccount, false);
    parsed.caches.push(cache);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAS: &str = include_str!("../../tests/data/text/oom-nas-nfsd.txt");

    #[test]
    fn the_table_and_the_memory_come_from_one_report() {
        // An earlier report without a table must not lend its figures.
        let text = format!("Mem-Info:\n slab_reclaimable:1 slab_unreclaimable:2\n{NAS}");
        let memory = memory(text.as_bytes()).unwrap();
        assert_eq!(memory.slab_unreclaimable, Some(4350));
        assert_eq!(memory.reserved, Some(9147));
        assert!(memory.slab_share().unwrap() < 0.07);
        assert_eq!(super::memory(b"hello"), None);
    }

    #[test]
    fn words_in_kilobytes_are_not_pages() {
        let text = b"Mem-Info:\nNode 0 slab_reclaimable:54720kB slab_unreclaimable:17400kB\n";
        assert_eq!(memory(text), None);
    }

    #[test]
    fn sizes_may_touch_and_lines_may_have_any_prefix() {
        let text = "Aug  6 09:37:21 host kernel: Unreclaimable slab info:\n\
                    Aug  6 09:37:21 host kernel: Name                      Used          Total\t\r\n\
                    Aug  6 09:37:21 host kernel: my cache  12345678901KB12345678902KB\r\n\
                    Aug  6 09:37:21 host kernel: usb 1-1: new device\n\
                    > [  4.8] kmalloc-2048           59164KB      59164KB\n\
                    Tasks state (memory values in pages):\n\
                    [ 1.0] x 1KB 2KB\n";
        let parsed = parse(text.as_bytes());
        let names: Vec<_> = parsed.caches.iter().map(|c| &*c.name).collect();
        assert_eq!(names, ["my cache", "kmalloc-2048"]);
        let total = parsed.caches[0].get(Quantity::ReportedTotal);
        assert_eq!(total, Some(Approx::estimate(12_345_678_902 * 1024)));
        assert!(parsed.warnings.is_empty());
        assert_eq!(
            parsed.caches[0].flags.get(Flag::ReclaimAccount),
            Some(false)
        );
    }

    #[test]
    fn rows_from_grep_need_no_header() {
        let parsed = parse(b"[    4.857565] kmalloc-2048           59164KB      59164KB\n");
        assert_eq!(parsed.caches.len(), 1);
    }

    #[test]
    fn a_refusal_a_cut_row_and_a_second_table_are_named() {
        let text = format!("[1.0] {REFUSED}\n");
        assert!(recognise(text.as_bytes()));
        assert!(parse(text.as_bytes()).warnings.has(WarningCode::Incomplete));
        let cut = &NAS[..NAS.rfind("16KB").unwrap()];
        let parsed = parse(cut.trim_end().as_bytes());
        assert_eq!(parsed.caches.len(), 48);
        let parsed = parse(format!("{NAS}[1.0] kmem   1").as_bytes());
        assert!(parsed.warnings.has(WarningCode::Truncated));
        let parsed = parse(format!("{NAS}{NAS}").as_bytes());
        assert_eq!(parsed.caches.len(), 49);
        assert!(parsed.warnings.has(WarningCode::Note));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            parse(&bytes);
            memory(&bytes);
            recognise(&bytes);
        }

        #[test]
        fn damage_costs_at_most_the_damaged_rows(at in 3200usize..5800, byte in any::<u8>()) {
            let mut text = NAS.as_bytes().to_vec();
            text[at] = byte;
            prop_assert!(parse(&text).caches.len() >= 47);
        }
    }
}
