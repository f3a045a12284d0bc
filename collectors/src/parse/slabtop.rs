//! Output of `slabtop -o`, whole or pasted.
//!
//! Purpose: rows of caches and the summary above them. Source of truth:
//! procps-ng 3.3 and 4.0 (src/slabtop.c). Columns are blank-separated and
//! overflow their width; `K` is 1024 everywhere, OBJ SIZE is rounded to
//! two decimals, CACHE SIZE is exact (`slabs * pages * page size`).
//! It does not read the screens of an interactive session.

use super::rows::{self, Suspects};
use super::{Parsed, clean};
use crate::model::{Approx, Cache, Layer, Quantity, Warning, WarningCode};

/// The summary lines above the table. `None`: the line was not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Objects in use and objects in all.
    pub objects: Option<(u64, u64)>,
    /// Slabs with objects in use and slabs in all; equal under SLUB.
    pub slabs: Option<(u64, u64)>,
    /// Caches with objects and caches in all.
    pub caches: Option<(u64, u64)>,
    /// Bytes in use and bytes in all, from objects times slot size: less than
    /// the sum of CACHE SIZE, since the tails of slabs are not in it.
    pub bytes: Option<(Approx<u64>, Approx<u64>)>,
    /// Bytes of the smallest, mean and largest slot.
    pub slot: Option<(Approx<u64>, Approx<u64>, Approx<u64>)>,
}

/// Whether the text has a header or a row of slabtop near its beginning.
pub fn recognise(text: &[u8]) -> bool {
    clean::lines(rows::head(text)).any(|(_, line)| {
        let line = rows::bare(&line);
        is_header(line) || Row::read(line).is_some()
    })
}

/// Reads the first table of the text.
pub fn parse(text: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    let mut suspects = Suspects::default();
    let mut in_table = false;
    for (number, line) in clean::lines(text) {
        let line = rows::bare(&line);
        if line.trim().is_empty() {
            in_table = false;
            continue;
        }
        suspects.more_text(&mut parsed);
        if is_header(line) || summary(line).is_some() {
            if !parsed.caches.is_empty() {
                rows::note_more_tables(number, &mut parsed);
                break;
            }
            in_table |= is_header(line);
        } else if let Some(row) = Row::read(line) {
            in_table = true;
            add(&row, number, &mut parsed);
        } else if in_table && looks_like_row(line) {
            suspects.add(number, &mut parsed);
        }
    }
    suspects.finish(&mut parsed);
    parsed
}

/// Reads the summary above the first table; `None` when there is none.
pub fn totals(text: &[u8]) -> Option<Totals> {
    let mut totals = Totals::default();
    for (_, line) in clean::lines(text) {
        let line = rows::bare(&line);
        if is_header(line) || Row::read(line).is_some() {
            break;
        }
        if let Some((what, values)) = summary(line) {
            fill(&mut totals, what, values);
        }
    }
    (totals != Totals::default()).then_some(totals)
}

fn is_header(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("OBJS") && words.next() == Some("ACTIVE") && line.contains("OBJ/SLAB")
}

/// The name and the values of ` Active / Total Slabs (% used)  : 1 / 2 (50%)`.
fn summary(line: &str) -> Option<(&str, &str)> {
    let (label, values) = line.split_once(':')?;
    let label = label.trim();
    if label == "Minimum / Average / Maximum Object" {
        return Some(("Slot", values));
    }
    let what = label.strip_prefix("Active / Total ")?;
    Some((what.split_whitespace().next()?, values))
}

fn fill(totals: &mut Totals, what: &str, values: &str) {
    let values = values.split('(').next().unwrap_or_default();
    let mut parts = values.split('/').map(str::trim);
    let first = parts.next().unwrap_or_default();
    let second = parts.next().unwrap_or_default();
    let counts = || Some((first.parse().ok()?, second.parse().ok()?));
    match what {
        "Objects" => totals.objects = counts(),
        "Slabs" => totals.slabs = counts(),
        "Caches" => totals.caches = counts(),
        "Size" => totals.bytes = size(first).zip(size(second)),
        "Slot" => {
            let third = parts.next().and_then(size);
            totals.slot = (|| Some((size(first)?, size(second)?, third?)))();
        }
        _ => {}
    }
}

fn size(text: &str) -> Option<Approx<u64>> {
    let kib = rows::hundredths(text.strip_suffix('K')?)?;
    rows::kib_bytes(kib).map(Approx::estimate)
}

/// Whether a line that is no row was meant as one.
fn looks_like_row(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words
        .next()
        .is_some_and(|w| w.starts_with(|c: char| c.is_ascii_digit()))
        && words
            .next()
            .is_none_or(|w| w.starts_with(|c: char| c.is_ascii_digit()))
}

/// One row; a count that does not fit is `None`.
struct Row<'a> {
    total: Option<u64>,
    active: Option<u64>,
    slot: Option<u64>,
    slabs: Option<u64>,
    per_slab: Option<u64>,
    kib: Option<u64>,
    name: &'a str,
}

impl<'a> Row<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut scan = Scan(line);
        let total = scan.number("")?;
        let active = scan.number("")?;
        scan.number("%")?;
        let slot = scan.number("K")?;
        let slabs = scan.number("")?;
        let per_slab = scan.number("")?;
        let kib = scan.number("K")?;
        let name = scan.0.trim();
        (!name.is_empty()).then(|| Self {
            total: total.parse().ok(),
            active: active.parse().ok(),
            slot: rows::hundredths(slot).and_then(rows::kib_bytes),
            slabs: slabs.parse().ok(),
            per_slab: per_slab.parse().ok(),
            kib: kib.parse().ok(),
            name,
        })
    }
}

struct Scan<'a>(&'a str);

impl<'a> Scan<'a> {
    /// The next number, which ends in `unit` or, without one, at a blank.
    /// Old versions print counts above 2^31 with a minus sign.
    fn number(&mut self, unit: &str) -> Option<&'a str> {
        let rest = self.0.trim_start();
        let end = rest
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '-')))
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        if number.is_empty() {
            return None;
        }
        self.0 = match after.strip_prefix(unit) {
            Some(after) if !unit.is_empty() || after.starts_with(char::is_whitespace) => after,
            _ => return None,
        };
        Some(number)
    }
}

fn add(row: &Row<'_>, number: u64, parsed: &mut Parsed) {
    let mut cache = Cache::new(rows::next_id(parsed), row.name);
    cache.layers.insert(Layer::Slabtop);
    let figures = [
        (Quantity::TotalObjects, row.total.map(Approx::exact)),
        (Quantity::Objects, row.active.map(Approx::exact)),
        (Quantity::SlabSize, row.slot.map(Approx::estimate)),
        (Quantity::Slabs, row.slabs.map(Approx::exact)),
        (Quantity::ObjsPerSlab, row.per_slab.map(Approx::exact)),
        (
            Quantity::ReportedTotal,
            row.kib.and_then(|k| k.checked_mul(1024)).map(Approx::exact),
        ),
    ];
    for (quantity, figure) in figures {
        match figure {
            Some(figure) => cache.set(quantity, figure, Layer::Slabtop),
            None => parsed.warnings.push(
                Warning::new(
                    WarningCode::BrokenValue,
                    format!("{}: {} not understood", row.name, quantity.name()),
                )
                .at_line(number),
            ),
        }
    }
    parsed.caches.push(cache);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Bytes, Objects, Slabs};
    use proptest::prelude::*;

    const COREOS: &str = include_str!("../../tests/data/text/slabtop-coreos-ebitmap.txt");

    #[test]
    fn columns_may_overflow_their_width() {
        let parsed = parse(COREOS.as_bytes());
        assert!(parsed.warnings.is_empty());
        let first = &parsed.caches[0];
        assert_eq!(&*first.name, "ebitmap_node");
        assert_eq!(first.objects(), Some(Approx::exact(Objects(734_506_368))));
        assert_eq!(first.slabs(), Some(Approx::exact(Slabs(11_476_662))));
        assert_eq!(first.slab_size(), Some(Approx::estimate(Bytes(61))));
        assert_eq!(
            first.get(Quantity::ReportedTotal),
            Some(Approx::exact(45_906_648 * 1024))
        );
    }

    #[test]
    fn a_german_locale_and_a_touching_column_are_read() {
        let text = "  100     50  50%0,19K      5       21        20K dentry\n";
        let parsed = parse(text.as_bytes());
        assert_eq!(parsed.caches[0].slab_size().unwrap().value, Bytes(195));
    }

    #[test]
    fn a_negative_count_is_unknown() {
        let text = "-5 -5 100% 0.06K 11476662 64 45906648K my old cache\n";
        let parsed = parse(text.as_bytes());
        assert_eq!(&*parsed.caches[0].name, "my old cache");
        assert_eq!(parsed.caches[0].objects(), None);
        assert!(parsed.warnings.has(WarningCode::BrokenValue));
    }

    #[test]
    fn the_second_table_and_the_cut_row_are_named() {
        let twice = format!("{COREOS}{COREOS}");
        let parsed = parse(twice.as_bytes());
        assert_eq!(parsed.caches.len(), 8);
        assert!(parsed.warnings.has(WarningCode::Note));
        let cut = &COREOS[..COREOS.rfind("filp").unwrap()];
        let parsed = parse(cut.as_bytes());
        assert_eq!(parsed.caches.len(), 7);
        let warning = parsed.warnings.iter().next().unwrap();
        assert_eq!(
            (warning.code, warning.line),
            (WarningCode::Truncated, Some(16))
        );
    }

    #[test]
    fn a_broken_row_in_the_middle_is_not_called_cut() {
        let text = COREOS.replace("  84%    0.19K   9125", "  84%   ");
        let parsed = parse(text.as_bytes());
        assert_eq!((parsed.caches.len(), parsed.broken_rows), (7, 1));
        assert!(parsed.warnings.has(WarningCode::BrokenRow));
    }

    #[test]
    fn quoting_and_line_ends_do_not_matter() {
        let quoted = format!("> > {}", COREOS.trim_end().replace('\n', "\r\n> > "));
        assert!(recognise(quoted.as_bytes()));
        let strip = |p: Parsed| p.caches;
        assert_eq!(
            strip(parse(quoted.as_bytes())),
            strip(parse(COREOS.as_bytes()))
        );
        let nbsp = COREOS.replace("  ", " \u{a0}");
        assert_eq!(parse(nbsp.as_bytes()).caches.len(), 8);
        assert_eq!(totals(quoted.as_bytes()), totals(COREOS.as_bytes()));
    }

    #[test]
    fn the_summary_is_kept_for_comparison() {
        let totals = totals(COREOS.as_bytes()).unwrap();
        assert_eq!(totals.objects, Some((739_390_584, 740_008_326)));
        assert_eq!(totals.caches, Some((105, 129)));
        let (_, total) = totals.bytes.unwrap();
        assert_eq!(total, Approx::estimate(48_513_619_896));
        assert_eq!(totals.slot.unwrap().2.value, 8192);
        assert_eq!(super::totals(b"nothing"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            parse(&bytes);
            totals(&bytes);
            recognise(&bytes);
        }

        #[test]
        fn damage_costs_at_most_the_damaged_rows(at in 600usize..1000, byte in any::<u8>()) {
            let mut text = COREOS.as_bytes().to_vec();
            text[at] = byte;
            let parsed = parse(&text);
            prop_assert!(parsed.caches.len() >= 6, "{}", parsed.caches.len());
        }
    }
}
