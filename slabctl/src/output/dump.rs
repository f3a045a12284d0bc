//! A look into caches as text for people: maps of slabs, lists, one object's bytes.
//!
//! Source of truth: `collectors::model::Dump`, whatever source it came from.

use std::fmt::Write as _;
use std::io::{self, Write};

use collectors::model::{Dump, DumpCache, DumpObject, DumpSlab, DumpTrack, Holder, Place};

use super::table::{Cell, Head, Table};
use super::text;

/// Objects of a list that are written out.
const CHAIN: usize = 16;
/// Characters of a map in one line.
const MAP: usize = 64;
const ROW: usize = 16;

/// All caches: a line each, then their slabs.
pub(crate) fn write(dump: &Dump, out: &mut impl Write) -> io::Result<()> {
    let kinds = Place::KINDS.iter();
    let legend: Vec<_> = kinds
        .map(|k| format!("{} {}", k.letter(), k.doc()))
        .collect();
    let (first, second) = legend.split_at(5);
    writeln!(out, "{}", first.join("   "))?;
    writeln!(out, "{}", second.join("   "))?;
    for cache in &dump.caches {
        writeln!(out)?;
        write_cache(cache, out)?;
    }
    Ok(())
}

fn write_cache(cache: &DumpCache, out: &mut impl Write) -> io::Result<()> {
    let kind = match cache.policy {
        Some(policy) => policy.to_owned(),
        None => format!("debug {}", cache.debug),
    };
    writeln!(
        out,
        "{}: {kind}, object {}, slot {}, {} in a slab",
        text::safe(&cache.name),
        cache.object_size,
        cache.slab_size,
        cache.objs_per_slab,
    )?;
    writeln!(out, "  {}", sums(cache))?;
    let counted = cache.counted.map(|n| n.to_string());
    let counted = counted.as_deref().unwrap_or("?");
    if cache.limited {
        let says = "there is more of it than one look takes: the rest is not known";
        writeln!(out, "  {says}; {counted} objects in use by the counters")?;
    } else if !cache.exact {
        let says = "it changed meanwhile";
        writeln!(out, "  {says}: {counted} objects in use by the counters")?;
    }
    for (number, slab) in cache.slabs.iter().enumerate() {
        write_slab(number, slab, out)?;
    }
    let cut = cache.slabs_total.saturating_sub(cache.slabs.len() as u64);
    if cut > 0 {
        writeln!(out, "  {cut} more slabs (--slabs N shows more)")?;
    }
    Ok(())
}

/// `58 slabs: 954 allocated, 438 free`.
fn sums(cache: &DumpCache) -> String {
    let some = Place::KINDS
        .iter()
        .zip(cache.places)
        .filter(|(_, n)| *n > 0);
    let parts: Vec<_> = some.map(|(k, n)| format!("{n} {}", k.name())).collect();
    let slabs = count(cache.slabs_total, "slab");
    if parts.is_empty() {
        return slabs;
    }
    format!("{slabs}: {}", parts.join(", "))
}

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn write_slab(number: usize, slab: &DumpSlab, out: &mut impl Write) -> io::Result<()> {
    let mut line = format!(
        "  slab {number} {:#x} node {} order {}, {} of {} taken",
        slab.address,
        slab.node,
        slab.order,
        slab.inuse,
        slab.objects.len()
    );
    if slab.holder != Holder::Nobody {
        let _ = write!(line, ", {}", holder(slab.holder));
    }
    if let Some(at) = slab.listed {
        let _ = write!(line, ", {at} on the partial list");
    }
    if slab.queued {
        line.push_str(", queued for its slot");
    }
    if !slab.settled {
        line.push_str(", it changed meanwhile");
    }
    writeln!(out, "{line}")?;
    let map = slab.map();
    for (row, at) in (0..map.len()).step_by(MAP).enumerate() {
        // One byte a character.
        let part = map.get(at..(at + MAP).min(map.len())).unwrap_or("");
        writeln!(out, "  {:>5} {part}", row * MAP)?;
    }
    for (name, list) in [("free", &slab.chain), ("own list", &slab.own)] {
        if !list.is_empty() {
            writeln!(out, "        {name}: {}", chain(list, CHAIN))?;
        }
    }
    Ok(())
}

/// Who has a slab, in words.
pub(crate) fn holder(of: Holder) -> String {
    match of {
        Holder::Nobody => "nobody".to_owned(),
        Holder::InHand(slot) => format!("in hand of slot {slot}"),
        Holder::Partial(slot) => format!("on the list of slot {slot}"),
        Holder::Full(slot) => format!("full, of slot {slot}"),
    }
}

fn chain(list: &[u16], most: usize) -> String {
    let mut parts: Vec<_> = list.iter().take(most).map(u16::to_string).collect();
    if list.len() > most {
        parts.push(format!("({} more)", list.len() - most));
    }
    parts.join(" > ")
}

/// Where an object is, in words.
fn place(of: Place) -> String {
    match of {
        Place::Barn(node) => format!("barn of node {node}"),
        place => match place.slot() {
            Some(slot) => format!("{} of slot {slot}", place.name()),
            None => place.name().to_owned(),
        },
    }
}

/// A row a slab.
pub(crate) fn slabs(dump: &Dump) -> Table {
    let mut table = Table::new(vec![
        Head::left("Cache"),
        Head::left("Slab"),
        Head::right("Node"),
        Head::right("Order"),
        Head::right("Objects"),
        Head::right("Taken"),
        Head::left("Holder"),
        Head::right("Partial"),
        Head::left("Map"),
        Head::left("Free"),
    ]);
    for cache in &dump.caches {
        for slab in &cache.slabs {
            let listed = slab.listed.map(|at| Cell::text(at.to_string()));
            table.row(vec![
                Cell::text(&*cache.name),
                Cell::text(format!("{:#x}", slab.address)),
                Cell::text(slab.node.to_string()),
                Cell::text(slab.order.to_string()),
                Cell::text(slab.objects.len().to_string()),
                Cell::text(slab.inuse.to_string()),
                Cell::text(holder(slab.holder)),
                listed.unwrap_or_else(Cell::missing),
                Cell::text(slab.map()),
                Cell::text(chain(&slab.chain, usize::MAX)),
            ]);
        }
    }
    table
}

/// A row an object.
pub(crate) fn objects(dump: &Dump) -> Table {
    let mut table = Table::new(vec![
        Head::left("Cache"),
        Head::left("Slab"),
        Head::right("Object"),
        Head::left("Address"),
        Head::left("State"),
        Head::right("Number"),
        Head::right("Requested"),
        Head::left("Allocated"),
        Head::left("Freed"),
    ]);
    for cache in &dump.caches {
        for slab in &cache.slabs {
            for (index, object) in slab.objects.iter().enumerate() {
                table.row(row(cache, slab, index, object));
            }
        }
    }
    table
}

fn row(cache: &DumpCache, slab: &DumpSlab, index: usize, object: &DumpObject) -> Vec<Cell> {
    let number = match object.place {
        Place::Barn(node) => Some(node),
        place => place.slot(),
    };
    let text = |value: Option<String>| value.map_or_else(Cell::missing, Cell::text);
    vec![
        Cell::text(&*cache.name),
        Cell::text(format!("{:#x}", slab.address)),
        Cell::text(index.to_string()),
        Cell::text(format!("{:#x}", address(cache, slab, index))),
        Cell::text(object.place.name()),
        text(number.map(|n| n.to_string())),
        text(object.requested.map(|n| n.to_string())),
        text(object.allocated.as_ref().map(by)),
        text(object.freed.as_ref().map(by)),
    ]
}

/// Address of an object.
pub(crate) fn address(cache: &DumpCache, slab: &DumpSlab, index: usize) -> u64 {
    let slot = index as u64 * u64::from(cache.slab_size);
    slab.address + slot + u64::from(cache.object_offset)
}

/// `thread 7 in slabctl+0x1234`.
fn by(track: &DumpTrack) -> String {
    let caller = track.stack.first().map_or_else(String::new, frame);
    format!("thread {} in {caller}", track.thread)
}

fn frame(of: &collectors::model::Frame) -> String {
    of.symbol
        .clone()
        .unwrap_or_else(|| format!("{:#x}", of.address))
}

/// One object: where it is, who had it, and its slot's bytes by part.
pub(crate) fn write_object(
    cache: &DumpCache,
    slab: &DumpSlab,
    index: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let Some(object) = slab.objects.get(index) else {
        return Ok(());
    };
    let at = address(cache, slab, index);
    writeln!(
        out,
        "{}: object {index} of slab {:#x}, at {at:#x}: {}",
        text::safe(&cache.name),
        slab.address,
        place(object.place)
    )?;
    if let Some(requested) = object.requested {
        writeln!(out, "requested {requested} of {} bytes", cache.object_size)?;
    }
    for (word, track) in [("allocated", &object.allocated), ("freed", &object.freed)] {
        let Some(track) = track else { continue };
        let (thread, cpu, age) = (track.thread, track.cpu, track.age_ms);
        writeln!(out, "{word} {age} ms ago by thread {thread} on CPU {cpu}")?;
        for of in &track.stack {
            writeln!(out, "  {}", text::safe(&frame(of)))?;
        }
    }
    let start = index * cache.slab_size as usize;
    let bytes = slab.bytes.as_deref().and_then(|bytes| bytes.get(start..));
    for part in &cache.parts {
        let of = bytes.and_then(|bytes| bytes.get(part.range.clone()));
        let at = slab.address + (start + part.range.start) as u64;
        hexdump(part.name, at, of.unwrap_or(&[]), out)?;
    }
    Ok(())
}

/// Rows of 16 bytes, with the name of their part.
fn hexdump(name: &str, address: u64, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    for (row, chunk) in bytes.chunks(ROW).enumerate() {
        let hex: Vec<_> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        let readable = |byte: &u8| *byte == b' ' || byte.is_ascii_graphic();
        let shown = chunk.iter().map(|byte| {
            if readable(byte) {
                char::from(*byte)
            } else {
                '.'
            }
        });
        writeln!(
            out,
            "{:<15} {:#x}  {:<47}  {}",
            if row == 0 { name } else { "" },
            address + (row * ROW) as u64,
            hex.join(" "),
            shown.collect::<String>().trim_end(),
        )?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "dump_tests.rs"]
pub(crate) mod tests;
