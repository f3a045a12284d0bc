//! Reads the figures that should be of one moment, as nearly as can be.
//!
//! /proc/slabinfo and sysfs cannot be read at once, and reading them allocates
//! slab objects itself. So the counts of all caches are read in one go between
//! two readings of /proc/slabinfo, up to three times, and the reading with the
//! fewest differences is kept. The files of the slab counts were open before
//! (the tree keeps them), and the memory for the text is there already. The
//! counts of one cache stand next to each other, so that they fit together.

use std::collections::BTreeMap;
use std::io;

use super::{Absent, Changes};
use crate::model::Quantity;
use crate::parse::{slabinfo, sysfs};
use crate::source::tree::{Keep, Tree};

pub(super) const SLABINFO: &str = "proc/slabinfo";

/// Read between the two readings, for one cache after the other. `partial` is
/// first: it tells whether `objects` and `objects_partial` may be walked.
pub(super) const COUNTS: [&str; 7] = [
    "partial",
    "slabs",
    "total_objects",
    "objects",
    "objects_partial",
    "cpu_slabs",
    "slabs_cpu_partial",
];

/// The counts that are compared, and `partial`: their files are kept open.
pub(super) const KEPT: [&str; 3] = ["partial", "slabs", "total_objects"];

const WALKS: [&str; 2] = ["objects", "objects_partial"];

const ATTEMPTS: u32 = 3;

/// The text of these files is a number or two for each node.
const TEXT_SIZE: usize = 160;

/// A cache's directory.
#[derive(Debug, Default)]
pub(super) struct CacheDir {
    /// Its path below the root.
    pub(super) path: String,
    /// Its own name and the links to it.
    pub(super) names: Vec<String>,
    /// The files in it.
    pub(super) files: Vec<String>,
}

impl CacheDir {
    fn has(&self, file: &str) -> bool {
        self.files.iter().any(|f| f == file)
    }
}

/// Length of a partial list.
#[derive(Debug, Clone, Copy)]
enum Length {
    Known(u64),
    Unknown,
}

/// One file of a cache.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) dir: usize,
    pub(super) name: &'static str,
    pub(super) path: String,
    pub(super) text: Vec<u8>,
    pub(super) error: Option<io::Error>,
    /// Not read, since it would walk a list of this length.
    not_walked: Option<Length>,
}

impl Reading {
    fn new(dirs: &[CacheDir], dir: usize, name: &'static str) -> Self {
        Self {
            dir,
            name,
            path: format!("{}/{name}", dirs[dir].path),
            text: Vec::with_capacity(TEXT_SIZE),
            error: None,
            not_walked: None,
        }
    }

    fn read(&mut self, tree: &dyn Tree, buf: &mut Vec<u8>) {
        let keep = if KEPT.contains(&self.name) {
            Keep::ForTheNextSample
        } else {
            Keep::No
        };
        match tree.read_attribute(&self.path, keep, buf) {
            Ok(()) => self.text.extend_from_slice(buf),
            Err(error) => self.error = Some(error),
        }
    }
}

/// The files of one moment.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) slabinfo: io::Result<Vec<u8>>,
    pub(super) readings: Vec<Reading>,
    pub(super) left_out: Vec<Absent>,
    pub(super) changes: Option<Changes>,
}

/// Reads the moment, again while caches change under it.
pub(super) fn read(tree: &dyn Tree, dirs: &[CacheDir], walk_limit: u64) -> Moment {
    let mut best: Option<Moment> = None;
    let mut attempts = 0;
    while attempts < ATTEMPTS {
        attempts += 1;
        let moment = attempt(tree, dirs, walk_limit);
        let score = |m: &Moment| m.changes.as_ref().map_or(0, Changes::count);
        let now = score(&moment);
        if best.as_ref().is_none_or(|best| now < score(best)) {
            best = Some(moment);
        }
        if now == 0 {
            break;
        }
    }
    let mut best = best.unwrap_or_else(|| attempt(tree, dirs, walk_limit));
    if let Some(changes) = &mut best.changes {
        changes.attempts = attempts;
    }
    best
}

fn attempt(tree: &dyn Tree, dirs: &[CacheDir], walk_limit: u64) -> Moment {
    let mut readings: Vec<Reading> = (0..dirs.len())
        .flat_map(|dir| COUNTS.into_iter().map(move |name| (dir, name)))
        .filter(|(dir, name)| dirs[*dir].has(name))
        .map(|(dir, name)| Reading::new(dirs, dir, name))
        .collect();
    let mut buf = Vec::new();
    let mut partial = (usize::MAX, Length::Unknown);
    let before = tree.read(SLABINFO);
    for reading in &mut readings {
        if partial.0 != reading.dir {
            partial = (reading.dir, Length::Unknown);
        }
        let walk = WALKS.contains(&reading.name);
        if walk && !matches!(partial.1, Length::Known(n) if n <= walk_limit) {
            reading.not_walked = Some(partial.1);
            continue;
        }
        reading.read(tree, &mut buf);
        if reading.name == "partial" {
            partial.1 = total(&reading.text).map_or(Length::Unknown, Length::Known);
        }
    }
    let after = tree.read(SLABINFO);
    let left_out = take_left_out(&mut readings, walk_limit);
    let (slabinfo, changes) = match (before, after) {
        (Ok(before), Ok(after)) if !dirs.is_empty() => {
            let (changes, later) = compare(&before, &after, dirs, &readings);
            (Ok(if later { after } else { before }), Some(changes))
        }
        (before, _) => (before, None),
    };
    Moment {
        slabinfo,
        readings,
        left_out,
        changes,
    }
}

/// Slabs and the objects they have room for.
type Counts = (Option<u64>, Option<u64>);

/// What changed between the two texts, and whether the later one is nearer to
/// what sysfs said in between.
fn compare(
    before: &[u8],
    after: &[u8],
    dirs: &[CacheDir],
    readings: &[Reading],
) -> (Changes, bool) {
    let (before, after) = (rows(before), rows(after));
    let sysfs = sysfs_counts(dirs, readings);
    let mut changes = Changes::default();
    let (mut unlike_before, mut unlike_after) = (0usize, 0usize);
    for (name, earlier) in &before {
        let Some(middle) = sysfs.get(name.as_str()) else {
            continue;
        };
        changes.compared += 1;
        let later = after.get(name);
        unlike_before += usize::from(earlier != middle);
        unlike_after += usize::from(later != Some(middle));
        if later != Some(earlier) {
            changes.changed.push(name.clone());
        } else if earlier != middle {
            changes.unlike.push(name.clone());
        }
    }
    (changes, unlike_after < unlike_before)
}

/// The rows whose name is theirs alone: two of one name cannot be told apart.
fn rows(text: &[u8]) -> BTreeMap<String, Counts> {
    let mut seen: BTreeMap<String, Option<Counts>> = BTreeMap::new();
    for cache in slabinfo::parse(text).parsed.caches {
        let value = |q| cache.get(q).map(|f| f.value);
        let counts = (value(Quantity::Slabs), value(Quantity::TotalObjects));
        seen.entry(cache.name.to_string())
            .and_modify(|other| *other = None)
            .or_insert(Some(counts));
    }
    seen.into_iter()
        .filter_map(|(name, counts)| Some((name, counts?)))
        .collect()
}

fn sysfs_counts<'a>(dirs: &'a [CacheDir], readings: &[Reading]) -> BTreeMap<&'a str, Counts> {
    let mut counts: Vec<Counts> = vec![(None, None); dirs.len()];
    for reading in readings {
        let total = total(&reading.text);
        match reading.name {
            "slabs" => counts[reading.dir].0 = total,
            "total_objects" => counts[reading.dir].1 = total,
            _ => {}
        }
    }
    dirs.iter()
        .zip(counts)
        .filter(|(_, (slabs, objects))| slabs.is_some() && objects.is_some())
        .flat_map(|(dir, counts)| dir.names.iter().map(move |name| (name.as_str(), counts)))
        .collect()
}

fn total(text: &[u8]) -> Option<u64> {
    Some(sysfs::node_list(std::str::from_utf8(text).ok()?)?.total)
}

/// Takes out the files that were not read, with the reason.
fn take_left_out(readings: &mut Vec<Reading>, walk_limit: u64) -> Vec<Absent> {
    let mut left_out = Vec::new();
    readings.retain_mut(|reading| {
        let Some(length) = reading.not_walked else {
            return true;
        };
        let why = match length {
            Length::Known(n) => format!("{n} partial slabs are over the limit of {walk_limit}"),
            Length::Unknown => "the length of the partial list is not known".to_owned(),
        };
        let path = std::mem::take(&mut reading.path);
        left_out.push(Absent { path, why });
        false
    });
    left_out
}
