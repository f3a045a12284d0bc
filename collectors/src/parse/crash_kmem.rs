//! Output of crash's `kmem -s`, and the cache rows of `kmem -S` and `kmem ADDRESS`.
//!
//! Purpose: rows of caches and the messages of crash about damaged ones. Source
//! of truth: crash 7 and 8 (memory.c) by their public output: the name is the
//! second column up to 7.1 and the last one since. `?` is a figure that crash
//! could not gather. Slabs, objects and free lists of `-S` are passed over.

use std::collections::HashSet;

use super::rows::{self, Suspects};
use super::{Parsed, clean};
use crate::model::{Approx, Cache, Layer, Quantity, Warning, WarningCode};

const LAYER: Layer = Layer::CrashKmem;

/// Where the name stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    NameSecond,
    NameLast,
}

/// Whether the header of crash's table is near the beginning.
pub fn recognise(text: &[u8]) -> bool {
    clean::lines(rows::head(text)).any(|(_, line)| header(rows::bare(&line)).is_some())
}

/// Reads every cache row; of a cache that comes twice the first.
pub fn parse(text: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    let mut suspects = Suspects::default();
    let mut layout = None;
    // Lines of -S look like rows but are not.
    let mut in_table = false;
    let mut seen = HashSet::new();
    let mut told = false;
    for (number, line) in clean::lines(text) {
        let line = rows::bare(&line).trim();
        if line.is_empty() {
            continue;
        }
        suspects.more_text(&mut parsed);
        if let Some(found) = header(line) {
            layout = Some(found);
            in_table = true;
        } else if let Some(message) = line.strip_prefix("kmem: ") {
            parsed.warnings.push(message_warning(message, number));
        } else if let Some(row) = layout.and_then(|l| Row::read(line, l)) {
            if seen.insert(row.address) {
                add(&row, &mut parsed);
            } else if !told {
                told = true;
                rows::note_more_tables(number, &mut parsed);
            }
        } else if in_table && is_address(line) {
            suspects.add(number, &mut parsed);
        } else if line != "..." {
            in_table = false;
        }
    }
    suspects.finish(&mut parsed);
    parsed
}

fn header(line: &str) -> Option<Layout> {
    let mut words = line.split_whitespace();
    if words.next() != Some("CACHE") {
        return None;
    }
    let second = words.next()?;
    let rest: Vec<&str> = words.take(5).collect();
    match (second, rest.as_slice()) {
        ("NAME", ["OBJSIZE", "ALLOCATED", "TOTAL", "SLABS", "SSIZE"]) => Some(Layout::NameSecond),
        ("OBJSIZE", ["ALLOCATED", "TOTAL", "SLABS", "SSIZE", ..]) => Some(Layout::NameLast),
        _ => None,
    }
}

/// `NOTE: kmalloc-512: ...` and `kmalloc-512: cannot gather relevant slab data`.
fn message_warning(message: &str, number: u64) -> Warning {
    let code = if message.contains("cannot gather") {
        WarningCode::Unreadable
    } else {
        WarningCode::Note
    };
    let text = message.strip_prefix("NOTE: ").unwrap_or(message);
    Warning::new(code, text.trim()).at_line(number)
}

fn is_address(line: &str) -> bool {
    line.split_whitespace()
        .next()
        .is_some_and(|word| address(word).is_some())
}

fn address(word: &str) -> Option<u64> {
    (word.len() >= 8).then(|| u64::from_str_radix(word, 16).ok())?
}

/// A row; `None` in a column is the `?` of crash.
struct Row<'a> {
    address: u64,
    name: &'a str,
    object_size: Option<u64>,
    allocated: Option<u64>,
    total: Option<u64>,
    slabs: Option<u64>,
    slab_bytes: Option<u64>,
}

impl<'a> Row<'a> {
    fn read(line: &'a str, layout: Layout) -> Option<Self> {
        let (first, rest) = line.split_once(char::is_whitespace)?;
        let address = address(first)?;
        let (name, words) = match layout {
            Layout::NameSecond => rows::last_words::<5>(rest)?,
            Layout::NameLast => first_words(rest)?,
        };
        let [size, allocated, total, slabs, slab_size] = words;
        (!name.is_empty()).then_some(())?;
        Some(Self {
            address,
            name,
            object_size: count(size)?,
            allocated: count(allocated)?,
            total: count(total)?,
            slabs: count(slabs)?,
            slab_bytes: slab_bytes(slab_size)?,
        })
    }
}

/// The first five words of a line, and what is behind them.
fn first_words(line: &str) -> Option<(&str, [&str; 5])> {
    let mut rest = line.trim_start();
    let mut words = [""; 5];
    for word in &mut words {
        let (first, after) = rest.split_once(char::is_whitespace)?;
        *word = first;
        rest = after.trim_start();
    }
    Some((rest.trim_end(), words))
}

/// Outer `None`: no figure at all. Inner `None`: crash did not know it.
#[expect(clippy::option_option, reason = "broken and unknown are different")]
fn count(word: &str) -> Option<Option<u64>> {
    if word == "?" {
        Some(None)
    } else {
        word.parse().ok().map(Some)
    }
}

#[expect(clippy::option_option, reason = "broken and unknown are different")]
fn slab_bytes(word: &str) -> Option<Option<u64>> {
    if word == "?" {
        return Some(None);
    }
    let kib: u64 = word.strip_suffix('k')?.parse().ok()?;
    kib.checked_mul(1024).map(Some)
}

fn add(row: &Row<'_>, parsed: &mut Parsed) {
    let mut cache = Cache::new(rows::next_id(parsed), row.name);
    cache.layers.insert(LAYER);
    for (quantity, figure) in [
        (Quantity::ObjectSize, row.object_size),
        (Quantity::Objects, row.allocated),
        (Quantity::TotalObjects, row.total),
        (Quantity::Slabs, row.slabs),
    ] {
        if let Some(value) = figure {
            cache.set_exact(quantity, value, LAYER);
        }
    }
    let memory = row.slabs.zip(row.slab_bytes);
    if let Some(bytes) = memory.and_then(|(slabs, each)| slabs.checked_mul(each)) {
        cache.set_exact(Quantity::ReportedTotal, bytes, LAYER);
    }
    // With slabs of a fallback order among them an even division can be chance.
    let per_slab = row
        .total
        .zip(row.slabs)
        .and_then(|(total, slabs)| (total.checked_rem(slabs) == Some(0)).then(|| total / slabs));
    if let Some(per_slab) = per_slab {
        cache.set(
            Quantity::ObjsPerSlab,
            Approx::estimate(per_slab),
            Layer::Derived,
        );
    }
    parsed.caches.push(cache);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Objects, Slabs};
    use proptest::prelude::*;

    const DAMAGED: &str = include_str!("../../tests/data/text/crash-kmem-question-marks.txt");

    /// The old layout, with a detail block, a message inside and a second cache.
    const OLD: &str = "\
crash> kmem -S ffff9f113cf2e100
CACHE            NAME                 OBJSIZE  ALLOCATED     TOTAL  SLABS  SSIZE
kmem: corrupter_slab_cache: slab: ffffe39e41f19240 invalid freepointer: 11ff9f113c6495f8
ffff9f113cf2e100 corrupter_slab_cache     504          6         8      1     4k
CPU 0 KMEM_CACHE_CPU:
  ffffcede7fc01080
CPU 0 SLAB:
  SLAB              MEMORY            NODE  TOTAL  ALLOCATED  FREE
  ffffe39e41f19240  ffff9f113c649000     0      8          6     2
  FREE / [ALLOCATED]
   ffff9f113c649000  (cpu 0 cache)
  [ffff9f113c649200]
KMEM_CACHE_NODE   NODE  SLABS  PARTIAL  PER-CPU
ffff9f113ef8f840     0      1        0        1
CACHE            NAME                 OBJSIZE  ALLOCATED     TOTAL  SLABS  SSIZE
ffff88001f129a00 nf_conntrack_ffffffff81d87840 304    65        65      5     4k
ffff88001f129b00 file lock cache          200          0         0      0     4k
";

    #[test]
    fn a_question_mark_is_unknown_not_zero() {
        let parsed = parse(DAMAGED.as_bytes());
        let damaged = parsed
            .caches
            .iter()
            .find(|c| &*c.name == "kmalloc-512")
            .unwrap();
        assert_eq!(damaged.objects(), None);
        assert_eq!(damaged.slabs(), None);
        assert_eq!(damaged.get(Quantity::ReportedTotal), None);
        assert_eq!(damaged.object_size().unwrap().value.get(), 512);
        assert!(parsed.warnings.has(WarningCode::Unreadable));
        let about = parsed
            .warnings
            .iter()
            .filter(|w| w.message.starts_with("kmalloc-512: "));
        assert_eq!(about.count(), 2);
        assert_eq!(parsed.broken_rows, 0);
    }

    #[test]
    fn the_old_layout_and_its_details_are_told_apart() {
        assert!(recognise(OLD.as_bytes()));
        let parsed = parse(OLD.as_bytes());
        let names: Vec<_> = parsed.caches.iter().map(|c| &*c.name).collect();
        assert_eq!(
            names,
            [
                "corrupter_slab_cache",
                "nf_conntrack_ffffffff81d87840",
                "file lock cache"
            ]
        );
        assert_eq!(parsed.broken_rows, 0, "{:?}", parsed.warnings);
        assert_eq!(
            parsed.caches[1].total_objects(),
            Some(Approx::exact(Objects(65)))
        );
        assert_eq!(
            parsed.caches[1].objs_per_slab(),
            Some(Approx::estimate(Objects(13)))
        );
        assert_eq!(parsed.caches[2].objs_per_slab(), None);
    }

    #[test]
    fn slab_sizes_give_memory_whatever_the_page_size() {
        // 64 KiB pages: 1,608 slabs of one page.
        let text = "CACHE             OBJSIZE  ALLOCATED     TOTAL  SLABS  SSIZE  NAME\n\
                    ffff24a440810800      512     175605    205824   1608    64k  kmalloc-512\n\
                    \u{20}\u{20}SLAB              MEMORY            NODE  TOTAL  ALLOCATED  FREE\n\
                    \u{20}\u{20}fffffff128cad3c0  ffff44a3ab4f0000     2    128        127     1\n";
        let parsed = parse(text.as_bytes());
        assert_eq!(parsed.caches.len(), 1);
        let cache = &parsed.caches[0];
        assert_eq!(cache.slabs(), Some(Approx::exact(Slabs(1608))));
        assert_eq!(
            cache.get(Quantity::ReportedTotal),
            Some(Approx::exact(1608 << 16))
        );
        assert_eq!(cache.pages_per_slab(), None);
        assert!(parsed.warnings.is_empty());
    }

    #[test]
    fn a_repeated_table_and_a_cut_row_are_named() {
        let text = format!(
            "{DAMAGED}{}",
            &DAMAGED[..DAMAGED.find("nfs_read_data").unwrap() - 1]
        );
        let parsed = parse(text.as_bytes());
        assert_eq!(parsed.caches.len(), 13);
        assert!(parsed.warnings.has(WarningCode::Note));
        assert!(parsed.warnings.has(WarningCode::Truncated));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            parse(&bytes);
            recognise(&bytes);
        }

        #[test]
        fn damage_costs_at_most_the_damaged_rows(at in 88usize..1200, byte in any::<u8>()) {
            let mut text = DAMAGED.as_bytes().to_vec();
            text[at] = byte;
            prop_assert!(parse(&text).caches.len() >= 11);
        }
    }
}
