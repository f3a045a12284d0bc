//! Lines instead of a screen, for screen readers, braille lines, serial
//! consoles and pipes: only what changed, one line a cache, never an escape.
//!
//! ```text
//! 10:32:07 slab 862M, 235 caches
//! 10:32:07 ext4_inode_cache holds 203M, 175966 objects
//! 10:32:08 dentry +38.0K to 89.4M, +212 objects
//! ```

use std::fmt::Write as _;

use collectors::columns::{self, Row, show};
use collectors::model::{Approx, Bytes, Objects, Unit};

use crate::model::{Key, Model, Moment, shown};
use crate::text;

/// Most caches that are told of after one sample.
const MOST: usize = 20;

/// The lines about the sample that a model shows: at first the largest caches,
/// later those that changed.
pub fn lines(model: &Model) -> String {
    let Some(now) = &model.time.shown else {
        return String::new();
    };
    let mut out = String::new();
    let clock = clock(model, now);
    match &model.time.before {
        None => first(model, now, &clock, &mut out),
        Some(before) => changes(model, now, before, &clock, &mut out),
    }
    out
}

/// The time of the sample, where the source tells it.
fn clock(model: &Model, now: &Moment) -> String {
    let taken = now.snapshot.origin.taken_at;
    taken.map_or_else(String::new, |at| {
        let local = at.to_zoned_datetime(model.settings.zone.clone());
        format!("{} ", local.strftime("%H:%M:%S"))
    })
}

fn size(model: &Model, bytes: Approx<u64>) -> String {
    show::number(bytes, Unit::Bytes, model.settings.scale)
}

fn first(model: &Model, now: &Moment, clock: &str, out: &mut String) {
    let count = now.snapshot.caches.len();
    let slab = now.snapshot.system.meminfo.slab;
    let slab = slab.map_or_else(String::new, |b| {
        format!("slab {}, ", size(model, Approx::exact(b.get())))
    });
    let _ = writeln!(
        out,
        "{clock}{}: {slab}{count} caches",
        text::clean(&model.source)
    );
    for line in model.list.lines.iter().take(MOST) {
        let Some(cache) = now.snapshot.caches.get(line.place) else {
            continue;
        };
        let row = Row::new(cache, now.page_size());
        let memory = row.usage.memory.map(|m| m.map(Bytes::get));
        let memory = memory.map_or_else(|| show::UNKNOWN.to_owned(), |m| size(model, m));
        let objects = cache.objects().map(|o| o.map(Objects::get));
        let objects = objects.map_or_else(
            || show::UNKNOWN.to_owned(),
            |o| show::number(o, Unit::Objects, model.settings.scale),
        );
        let name = text::clean(&cache.name);
        let _ = writeln!(out, "{clock}{name} holds {memory}, {objects} objects");
    }
    let more = model.list.lines.len().saturating_sub(MOST);
    if more > 0 {
        let _ = writeln!(out, "{clock}and {more} more");
    }
}

/// A cache that changed, with by how many bytes and objects.
struct Changed {
    key: Key,
    memory: Option<Approx<i128>>,
    objects: Option<Approx<i128>>,
}

fn changes(model: &Model, now: &Moment, before: &Moment, clock: &str, out: &mut String) {
    let mut list: Vec<Changed> = model
        .list
        .lines
        .iter()
        .filter(|line| line.alias.is_none())
        .filter_map(|line| changed(now, before, line.key))
        .collect();
    list.sort_by_key(|c| std::cmp::Reverse(c.memory.map_or(0, |m| m.value.unsigned_abs())));
    let more = list.len().saturating_sub(MOST);
    for change in list.iter().take(MOST) {
        let Some(cache) = now.cache(change.key) else {
            continue;
        };
        let scale = model.settings.scale;
        let row = Row::new(cache, now.page_size());
        let holds = row.usage.memory.map(|m| m.map(Bytes::get));
        let holds = holds.map_or_else(|| show::UNKNOWN.to_owned(), |m| size(model, m));
        let memory = shown::text(change.memory, Unit::Bytes, scale);
        let objects = shown::text(change.objects, Unit::Objects, scale);
        let name = text::clean(&cache.name);
        let _ = writeln!(out, "{clock}{name} {memory} to {holds}, {objects} objects");
    }
    if more > 0 {
        let _ = writeln!(out, "{clock}and {more} more changed");
    }
    for (key, cache) in before.keys.iter().zip(&before.snapshot.caches) {
        if now.place(*key).is_none() {
            let _ = writeln!(out, "{clock}{} went away", text::clean(&cache.name));
        }
    }
}

/// `None`: its slabs are as many as before.
fn changed(now: &Moment, before: &Moment, key: Key) -> Option<Changed> {
    let page_size = now.page_size();
    let row = Row::new(now.cache(key)?, page_size);
    let old = before.cache(key);
    let change = |name| shown::change(columns::find(name)?, old, &row, page_size);
    let (memory, objects) = (change("memory"), change("objects"));
    let new = old.is_none();
    let moved = memory.is_some_and(|m| m.value != 0);
    (new || moved).then_some(Changed {
        key,
        memory,
        objects,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::model::Settings;
    use crate::msg::Msg;
    use crate::testing::{cache, sample};
    use crate::update::update;

    fn told(samples: &[Vec<(&str, u64)>]) -> Vec<String> {
        let mut model = Model::new(Settings::default(), "a test", true);
        let mut out = Vec::new();
        for (second, caches) in (0..).zip(samples) {
            let caches = caches.iter().map(|(n, s)| cache(n, *s)).collect();
            let sample = sample(caches, second);
            update(
                &mut model,
                Duration::from_secs(second),
                Msg::Sample(Box::new(sample)),
            );
            out.push(lines(&model));
        }
        out
    }

    #[test]
    fn the_first_lines_tell_what_is_held_and_the_next_what_changed() {
        let out = told(&[
            vec![("a", 10), ("b", 20)],
            vec![("a", 10), ("b", 20)],
            vec![("b", 25), ("c", 1)],
        ]);
        assert_eq!(
            out[0],
            "00:00:00 a test: slab 12.0M, 2 caches\n\
             00:00:00 b holds 80.0K, 640 objects\n\
             00:00:00 a holds 40.0K, 320 objects\n"
        );
        assert_eq!(out[1], "");
        assert_eq!(
            out[2],
            "00:00:02 b +20.0K to 100K, +160 objects\n\
             00:00:02 c - to 4096, - objects\n\
             00:00:02 a went away\n"
        );
    }

    #[test]
    fn a_name_cannot_command_the_terminal_and_a_flood_is_cut() {
        let names: Vec<String> = (0..50).map(|n| format!("c{n}\x1b[2J")).collect();
        let all = |slabs| {
            names
                .iter()
                .map(|n| (n.as_str(), slabs))
                .collect::<Vec<_>>()
        };
        let out = told(&[all(1), all(2)]);
        assert!(out.iter().all(|text| !text.contains('\x1b')));
        assert_eq!(out[0].lines().last(), Some("00:00:00 and 30 more"));
        assert_eq!(out[1].lines().last(), Some("00:00:01 and 30 more changed"));
    }
}
