//! Output of the kernel's own `slabinfo` tool: lists, totals, aliases, reports.
//!
//! Purpose: rows of `slabinfo` with any sort, `-X` and `-D`, blocks of `-r`,
//! and the groups of `-a`. Source of truth: tools/mm/slabinfo.c of Linux 6.12,
//! unchanged in format since 2011. `K`, `M`, `G` are powers of 1000 there, cut
//! to one decimal. The column "Slabs" is `slabs - cpu_slabs`. Call sites, NUMA
//! lines, performance counters and the averages of `-T` are not read.

use std::collections::HashSet;

use super::alias_listing::Listing;
use super::rows::{self, Suspects};
use super::slabinfo_report::Block;
use super::{Parsed, clean};
use crate::model::{Approx, Cache, CacheId, Flag, Layer, Quantity, Warning, WarningCode};

const LAYER: Layer = Layer::SlabinfoTool;

/// Whether a header, a report or an alias line of the tool is near the beginning.
pub fn recognise(text: &[u8]) -> bool {
    clean::lines(rows::head(text)).any(|(_, line)| {
        let line = rows::bare(&line);
        Header::read(line).is_some()
            || Row::read(line).is_some()
            || Block::starts(line).is_some()
            || alias_group(line).is_some_and(|(id, _)| id.starts_with(':'))
    })
}

/// Reads the first table, or the group of tables that `-X` prints, or every report.
///
/// A text with nothing but alias lines gives the merged caches without figures.
pub fn parse(text: &[u8]) -> Parsed {
    let mut reader = Reader::default();
    for (number, line) in clean::lines(text) {
        reader.line(number, rows::bare(&line));
    }
    reader.finish(&aliases(text))
}

/// The merge groups of the alias lines anywhere in the text, in both directions.
pub fn aliases(text: &[u8]) -> Listing {
    let mut listing = Listing::default();
    for (_, line) in clean::lines(text) {
        let line = rows::bare(&line);
        if let Some((id, names)) = alias_group(line) {
            for name in names.split_whitespace() {
                listing.links.push((name.to_owned(), id.to_owned()));
            }
        } else if let Some((name, id)) = inverted_alias(line) {
            listing.links.push((name.to_owned(), id.to_owned()));
        }
    }
    listing
}

/// `:0001024     <- UNIX sgpool-32`.
fn alias_group(line: &str) -> Option<(&str, &str)> {
    let (id, names) = line.split_once(" <- ")?;
    let id = id.trim();
    let known = !id.is_empty() && !id.contains(char::is_whitespace);
    (known && !names.trim().is_empty()).then_some((id, names))
}

/// `cred            -> :A-0000192`, and nothing else on the line.
fn inverted_alias(line: &str) -> Option<(&str, &str)> {
    let (name, id) = line.split_once(" -> ")?;
    let (name, id) = (name.trim(), id.trim());
    let single = |s: &str| !s.is_empty() && !s.contains(char::is_whitespace);
    (single(name) && single(id) && id.starts_with(':')).then_some((name, id))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Header {
    /// The usual columns, with the memory held.
    Space,
    /// The usual columns, with the loss in the place of the memory.
    Loss,
    /// The columns of `-D`.
    Activity,
}

impl Header {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        if words.next() != Some("Name") || words.next() != Some("Objects") {
            return None;
        }
        match (words.next(), words.next()) {
            (Some("Objsize"), Some("Space")) => Some(Self::Space),
            (Some("Objsize"), Some("Loss")) => Some(Self::Loss),
            (Some("Alloc"), Some("Free")) => Some(Self::Activity),
            _ => None,
        }
    }
}

/// Which tables are being read.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Tables {
    /// One table, or rows before any header.
    #[default]
    One,
    /// Those of `-X`, which prints one cache in several.
    Extended,
    /// None any more: another command's table began.
    Done,
}

/// Where in the text the reader is.
#[derive(Default)]
struct Reader {
    parsed: Parsed,
    suspects: Suspects,
    header: Option<Header>,
    tables: Tables,
    in_table: bool,
    /// The next header belongs to a table of `-X`.
    sorted_by: bool,
    names: HashSet<Box<str>>,
    block: Option<Block>,
}

impl Reader {
    fn line(&mut self, number: u64, line: &str) {
        if line.trim().is_empty() {
            self.in_table = false;
            return;
        }
        self.suspects.more_text(&mut self.parsed);
        if line.trim_start().starts_with("Slabs sorted by ") {
            self.sorted_by = true;
        } else if let Some(header) = Header::read(line) {
            self.header(number, header);
        } else if let Some(block) = Block::starts(line) {
            self.close_block();
            self.in_table = false;
            self.block = Some(block);
        } else if let Some(block) = &mut self.block {
            block.line(line);
        } else if self.tables != Tables::Done {
            self.row(number, line);
        }
    }

    fn header(&mut self, number: u64, header: Header) {
        self.close_block();
        let sorted_by = std::mem::take(&mut self.sorted_by);
        let goes_on = self.tables == Tables::Extended && sorted_by;
        if self.parsed.caches.is_empty() {
            if sorted_by {
                self.tables = Tables::Extended;
            }
        } else if !goes_on {
            if self.tables != Tables::Done {
                rows::note_more_tables(number, &mut self.parsed);
            }
            self.tables = Tables::Done;
            self.in_table = false;
            return;
        }
        self.header = Some(header);
        self.in_table = true;
    }

    fn row(&mut self, number: u64, line: &str) {
        let header = self.header.unwrap_or(Header::Space);
        let row = match header {
            Header::Activity if self.in_table => activity(line),
            Header::Activity => None,
            _ => Row::read(line).map(|row| row.cache(header, number, &mut self.parsed)),
        };
        match row {
            Some(cache) => self.add(cache),
            None if self.in_table && looks_like_row(line) => {
                self.suspects.add(number, &mut self.parsed);
            }
            None => {}
        }
    }

    fn add(&mut self, mut cache: Cache) {
        // Only -X repeats a cache on purpose; elsewhere two rows are two caches.
        if self.tables == Tables::Extended && !self.names.insert(cache.name.clone()) {
            return;
        }
        cache.id = rows::next_id(&self.parsed);
        if cache.name.starts_with(':') {
            cache.sysfs_id = Some(cache.name.clone());
        }
        cache.layers.insert(LAYER);
        self.parsed.caches.push(cache);
    }

    fn close_block(&mut self) {
        if let Some(block) = self.block.take() {
            self.add(block.cache());
        }
    }

    fn finish(mut self, aliases: &Listing) -> Parsed {
        self.close_block();
        let mut parsed = self.parsed;
        self.suspects.finish(&mut parsed);
        if parsed.caches.is_empty() {
            let mut seen = HashSet::new();
            for (_, id) in &aliases.links {
                if seen.insert(id.as_str()) {
                    let mut cache = Cache::new(rows::next_id(&parsed), id.as_str());
                    cache.layers.insert(LAYER);
                    parsed.caches.push(cache);
                }
            }
        }
        if !aliases.links.is_empty() {
            super::alias_listing::apply_as(aliases, &mut parsed.caches, LAYER);
        }
        parsed
    }
}

fn looks_like_row(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words
        .next()
        .is_some_and(|w| w != "..." && !w.starts_with('-'))
        && words
            .next()
            .is_none_or(|w| w.bytes().all(|b| b.is_ascii_digit()))
}

/// A row of `-D`: only the objects and the order are figures of the model.
fn activity(line: &str) -> Option<Cache> {
    let (name, words) = rows::last_words::<9>(line)?;
    if name.is_empty() || !words.iter().all(|w| is_number(w)) {
        return None;
    }
    let mut cache = Cache::new(CacheId(0), name);
    for (quantity, word) in [(Quantity::Objects, words[0]), (Quantity::Order, words[6])] {
        if let Ok(value) = word.parse() {
            cache.set_exact(quantity, value, LAYER);
        }
    }
    Some(cache)
}

/// A row of a list: the words around the one with two slashes.
struct Row<'a> {
    name: &'a str,
    objects: &'a str,
    object_size: &'a str,
    space: Approx<u64>,
    slabs: [&'a str; 3],
    per_slab: &'a str,
    order: &'a str,
    flags: &'a str,
}

impl<'a> Row<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (before, dist, after) = around_slabs(line)?;
        let (name, [objects, object_size, space]) = rows::last_words::<3>(before)?;
        let mut words = after.split_whitespace();
        let per_slab = words.next()?;
        let order = words.next()?;
        let (full, used) = (words.next()?, words.next()?);
        let numbers = [objects, object_size, per_slab, order, full, used];
        if name.is_empty() || !numbers.iter().all(|n| is_number(n)) {
            return None;
        }
        Some(Self {
            name,
            objects,
            object_size,
            space: bytes(space)?,
            slabs: dist,
            per_slab,
            order,
            flags: words.next().unwrap_or_default(),
        })
    }

    fn cache(&self, header: Header, line: u64, parsed: &mut Parsed) -> Cache {
        let mut cache = Cache::new(CacheId(0), self.name);
        let [free, partial, cpu] = self.slabs.map(sane);
        let slabs = free.and_then(|f| f.checked_add(cpu?));
        let figures = [
            (Quantity::Objects, sane(self.objects)),
            (Quantity::ObjectSize, sane(self.object_size)),
            (Quantity::Slabs, slabs),
            (Quantity::Partial, partial),
            (Quantity::CpuSlabs, cpu),
            (Quantity::ObjsPerSlab, sane(self.per_slab)),
            (Quantity::Order, sane(self.order)),
        ];
        for (quantity, figure) in figures {
            match figure {
                Some(value) => cache.set_exact(quantity, value, LAYER),
                None => parsed.warnings.push(wrapped(self.name, quantity, line)),
            }
        }
        if let Some(total) = self.total(header) {
            cache.set(Quantity::ReportedTotal, total, LAYER);
        }
        self.put_flags(&mut cache);
        cache
    }

    fn total(&self, header: Header) -> Option<Approx<u64>> {
        if header == Header::Space {
            return Some(self.space);
        }
        // The loss is the memory less the payload.
        let payload = sane(self.objects)?.checked_mul(sane(self.object_size)?)?;
        let value = self.space.value.checked_add(payload)?;
        Some(self.space.map(|_| value))
    }

    fn put_flags(&self, cache: &mut Cache) {
        for flag in Flag::ALL {
            if let Some(letter) = flag.letter() {
                cache.flags.put(*flag, self.flags.contains(letter));
            }
        }
        // A lone name of a merge id is not an alias, so a ":" row tells nothing.
        if !self.flags.contains('*') && !self.name.starts_with(':') {
            cache.set_exact(Quantity::AliasCount, 0, LAYER);
        }
    }
}

/// Splits a row at its `slabs/partial/cpu` word.
fn around_slabs(line: &str) -> Option<(&str, [&str; 3], &str)> {
    let mut at = 0;
    for word in line.split_inclusive(char::is_whitespace) {
        let end = at + word.len();
        let mut parts = word.trim_end().split('/');
        if let (Some(a), Some(b), Some(c), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
            && [a, b, c].iter().all(|n| is_number(n))
        {
            return Some((&line[..at], [a, b, c], &line[end..]));
        }
        at = end;
    }
    None
}

/// A whole number of any size, with or without a sign.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn wrapped(name: &str, quantity: Quantity, line: u64) -> Warning {
    let message = format!(
        "{name}: {} is below 0 or wrapped around: the tool read its parts at different moments",
        quantity.name()
    );
    Warning::new(WarningCode::Race, message).at_line(line)
}

/// A count; `None` when it went below 0, with or without a sign.
pub(super) fn sane(text: &str) -> Option<u64> {
    text.parse().ok().filter(|v| i64::try_from(*v).is_ok())
}

/// A size in the tool's decimal units: scaled ones are cut, so an estimate.
fn bytes(text: &str) -> Option<Approx<u64>> {
    let factor = match text.as_bytes().last()? {
        b'K' => 1_000,
        b'M' => 1_000_000,
        b'G' => 1_000_000_000,
        _ => return text.parse().ok().map(Approx::exact),
    };
    let value = u128::from(rows::hundredths(&text[..text.len() - 1])?) * factor / 100;
    u64::try_from(value).ok().map(Approx::estimate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Bytes, Objects, Slabs};
    use proptest::prelude::*;

    const ANDROID: &str = include_str!("../../tests/data/text/slabinfo-tool-android.txt");
    const LIST: &str = include_str!("../../tests/data/text/slabinfo-tool-list-6.18.txt");
    const TOTALS: &str = include_str!("../../tests/data/text/slabinfo-tool-totals-6.18.txt");

    #[test]
    fn units_are_decimal_and_cut() {
        let text = &ANDROID[ANDROID.find("slabinfo -P").unwrap()..];
        let parsed = parse(text.as_bytes());
        assert_eq!(parsed.caches.len(), 3);
        let total = |i: usize| parsed.caches[i].get(Quantity::ReportedTotal);
        assert_eq!(total(0), Some(Approx::estimate(32_700)));
        assert_eq!(total(2), Some(Approx::estimate(2_600_000)));
        assert_eq!(bytes("4096"), Some(Approx::exact(4096)));
        assert_eq!(bytes("K"), None);
    }

    #[test]
    fn slabs_of_cpus_are_added_back() {
        let parsed = parse(ANDROID.as_bytes());
        let dentry = parsed.caches.iter().find(|c| &*c.name == "dentry").unwrap();
        assert_eq!(dentry.slabs(), Some(Approx::exact(Slabs(635))));
        assert_eq!(
            dentry.get(Quantity::ReportedTotal),
            Some(Approx::exact(635 * 4096))
        );
        assert!(dentry.flags.is_set(Flag::ReclaimAccount));
        assert_eq!(dentry.flags.get(Flag::Poison), Some(false));
        assert!(
            parsed.warnings.has(WarningCode::Note),
            "two more tables follow"
        );
    }

    #[test]
    fn a_wrapped_count_is_unknown_and_named() {
        let header = ANDROID.lines().find(|l| l.starts_with("Name")).unwrap();
        let text = format!(
            "{header}\nbusy                     64      64            4.0K 18446744073709551615/0/2   64 0   0 100 *A\n\
             big                      64      64            4.0K 5/0/-1294967296   64 0   0 100 *A\n"
        );
        let parsed = parse(text.as_bytes());
        assert_eq!(parsed.caches[0].slabs(), None);
        assert_eq!(parsed.caches[0].cpu_slabs(), Some(Approx::exact(Slabs(2))));
        assert_eq!(parsed.caches[1].cpu_slabs(), None);
        assert_eq!(parsed.caches[1].objects(), Some(Approx::exact(Objects(64))));
        let lines: Vec<_> = parsed.warnings.iter().map(|w| (w.code, w.line)).collect();
        assert_eq!(lines[0], (WarningCode::Race, Some(2)));
        assert_eq!(lines[1], (WarningCode::Race, Some(3)));
    }

    #[test]
    fn one_cache_in_three_sorted_tables_is_one_cache() {
        let parsed = parse(TOTALS.as_bytes());
        assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
        let names: Vec<_> = parsed.caches.iter().map(|c| &*c.name).collect();
        assert_eq!(names, ["ext4_inode_cache", ":a-0000104"]);
        // From the table of losses: the loss and the payload make the memory.
        let total = parsed.caches[1].get(Quantity::ReportedTotal);
        assert_eq!(total, Some(Approx::exact(813 * 4096)));
    }

    #[test]
    fn aliases_in_both_directions_name_the_group() {
        let one = aliases(b":0000040     <- mm_slot ext4_system_zone\n");
        let other = aliases(b"mm_slot -> :0000040\next4_system_zone -> :0000040\n");
        assert_eq!(one, other);
        let parsed = parse(b":0000040     <- mm_slot ext4_system_zone\n");
        let names = parsed.caches[0].aliases.as_ref().unwrap();
        assert_eq!(names.len(), 2);
        assert_eq!(parsed.caches[0].sysfs_id.as_deref(), Some(":0000040"));
    }

    #[test]
    fn the_activity_table_gives_objects() {
        let text = "Name                   Objects      Alloc       Free   %Fast Fallb O CmpX   UL\n\
                    :0000032                 55912          7          6  90  80     0 1    0    0\n";
        let parsed = parse(text.as_bytes());
        assert!(recognise(text.as_bytes()));
        assert_eq!(parsed.caches[0].objects().unwrap().value, Objects(55_912));
        assert_eq!(parsed.caches[0].pages_per_slab(), Some(2));
        assert_eq!(parsed.caches[0].object_size(), None);
    }

    #[test]
    fn a_cut_list_keeps_what_is_whole() {
        let cut = &LIST[..LIST.len() - 30];
        let (whole, parsed) = (parse(LIST.as_bytes()), parse(cut.as_bytes()));
        assert_eq!(parsed.caches.len() + 1, whole.caches.len());
        assert!(parsed.warnings.has(WarningCode::Truncated));
        assert_eq!(whole.caches[0].object_size().unwrap().value, Bytes(24));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            parse(&bytes);
            recognise(&bytes);
        }

        #[test]
        fn damage_costs_at_most_the_damaged_rows(at in 90usize..10_000, byte in any::<u8>()) {
            let mut text = LIST.as_bytes().to_vec();
            text[at] = byte;
            prop_assert!(parse(&text).caches.len() >= 119);
        }

        #[test]
        fn half_a_report_is_survived(at in 0usize..1800) {
            let text = include_bytes!("../../tests/data/text/slabinfo-tool-report-6.18.txt");
            let parsed = parse(&text[..at]);
            prop_assert!(parsed.caches.len() <= 2);
        }
    }
}
