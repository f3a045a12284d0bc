//! Rows of slabinfo 1.0 and 1.1: Linux 2.1 to 2.4.
//!
//! Source of truth: `get_slabinfo` of mm/slab.c in 2.1 and 2.2,
//! `proc_getdata`/`s_show` in 2.4. Groups after a colon are told apart by how
//! many numbers they have: 5 statistics, 2 tunables, 4 hits and misses.

use std::ops::Range;

use super::cursor::{is_blank, number};
use super::row::{Columns, Format, RowError};
use crate::model::{SlabStatistics, SlabTunables};

/// Numbers of the longest row: 6 columns and three groups.
const MOST: usize = 6 + 5 + 2 + 4;

/// The numbers at the end of a line, in groups; the name before them.
struct Words<'a> {
    name: &'a str,
    numbers: [u64; MOST],
    /// Where each group ends in `numbers`.
    ends: [usize; 4],
    groups: usize,
}

impl Words<'_> {
    fn group(&self, i: usize) -> &[u64] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.numbers[start..self.ends[i]]
    }
}

/// Parses a row of version 1.x.
pub(super) fn columns(line: &str, format: Format) -> Result<(Range<usize>, Columns), RowError> {
    let words = split(line)?;
    let start = line.len() - line.trim_start_matches(is_blank).len();
    let name = start..start + words.name.len();
    let columns = match (format, words.group(0)) {
        (Format::V1_0, group) if words.groups == 1 => v1_0(group)?,
        (_, group) => v1_1(group, &words)?,
    };
    Ok((name, columns))
}

fn v1_0(group: &[u64]) -> Result<Columns, RowError> {
    match *group {
        [active_objs, num_objs] => Ok(Columns {
            active_objs,
            num_objs,
            ..Columns::default()
        }),
        [active_objs, num_objs, active_slabs, num_slabs, pages] => Ok(Columns {
            active_objs,
            num_objs,
            active_slabs: Some(active_slabs),
            num_slabs: Some(num_slabs),
            pagesperslab: Some(pages),
            ..Columns::default()
        }),
        [
            active_objs,
            num_objs,
            active_slabs,
            num_slabs,
            pages,
            high,
            allocs,
            grown,
            reaped,
            errors,
        ] => {
            Ok(Columns {
                active_objs,
                num_objs,
                active_slabs: Some(active_slabs),
                num_slabs: Some(num_slabs),
                // This version prints the pages of all slabs together.
                pagesperslab: exact_ratio(pages, num_slabs),
                statistics: Some(statistics([high, allocs, grown, reaped, errors])),
                ..Columns::default()
            })
        }
        [] | [_] => Err(RowError::Cut("num_objs")),
        [_, _, _] => Err(RowError::Cut("num_slabs")),
        [_, _, _, _] => Err(RowError::Cut("pagesperslab")),
        [_, _, _, _, _, _, ..] if group.len() < 10 => Err(RowError::Cut("errors")),
        _ => Err(RowError::Extra),
    }
}

fn v1_1(group: &[u64], words: &Words<'_>) -> Result<Columns, RowError> {
    let [
        active_objs,
        num_objs,
        objsize,
        active_slabs,
        num_slabs,
        pagesperslab,
    ] = *group
    else {
        let missing = [
            "active_objs",
            "num_objs",
            "objsize",
            "active_slabs",
            "num_slabs",
            "pagesperslab",
        ];
        return Err(missing
            .get(group.len())
            .map_or(RowError::Extra, |column| RowError::Cut(column)));
    };
    let mut columns = Columns {
        active_objs,
        num_objs,
        objsize: Some(objsize),
        active_slabs: Some(active_slabs),
        num_slabs: Some(num_slabs),
        pagesperslab: Some(pagesperslab),
        ..Columns::default()
    };
    groups_after(words, &mut columns)?;
    Ok(columns)
}

/// The groups after colons, in the kernel's order, each at most once.
fn groups_after(words: &Words<'_>, columns: &mut Columns) -> Result<(), RowError> {
    let mut last = 0;
    for i in 1..words.groups {
        let group = words.group(i);
        let rank = match *group {
            [high, allocs, grown, reaped, errors] => {
                columns.statistics = Some(statistics([high, allocs, grown, reaped, errors]));
                1
            }
            [limit, batchcount] => {
                columns.tunables = Some(SlabTunables {
                    limit,
                    batchcount,
                    sharedfactor: None,
                });
                2
            }
            [allochit, allocmiss, freehit, freemiss] if last == 2 => {
                let statistics = columns.statistics.get_or_insert_default();
                statistics.allochit = Some(allochit);
                statistics.allocmiss = Some(allocmiss);
                statistics.freehit = Some(freehit);
                statistics.freemiss = Some(freemiss);
                3
            }
            [] | [_] => return Err(RowError::Cut("batchcount")),
            [_, _, _] if last == 2 => return Err(RowError::Cut("freemiss")),
            [_, _, _] | [_, _, _, _] => return Err(RowError::Cut("errors")),
            _ => return Err(RowError::Extra),
        };
        if rank <= last {
            return Err(RowError::Extra);
        }
        last = rank;
    }
    Ok(())
}

fn statistics([high, allocs, grown, reaped, errors]: [u64; 5]) -> SlabStatistics {
    SlabStatistics {
        listallocs: Some(allocs),
        maxobjs: Some(high),
        grown: Some(grown),
        reaped: Some(reaped),
        error: Some(errors),
        ..SlabStatistics::default()
    }
}

/// `whole / part` where it leaves no rest.
pub(super) fn exact_ratio(whole: u64, part: u64) -> Option<u64> {
    (whole.checked_rem(part)? == 0).then(|| whole / part)
}

/// Walks back from the end over numbers and lone colons; the name is the rest.
fn split(line: &str) -> Result<Words<'_>, RowError> {
    let mut rest = line.trim_matches(is_blank);
    let mut reversed = [0; MOST];
    let mut count = 0;
    let mut colons = [0; 3];
    let mut groups = 1;
    loop {
        rest = rest.trim_end_matches(is_blank);
        let start = rest.rfind(is_blank).map_or(0, |at| at + 1);
        let (before, word) = rest.split_at(start);
        if word.is_empty() {
            return Err(RowError::NoName);
        }
        if word == ":" {
            *colons.get_mut(groups - 1).ok_or(RowError::Extra)? = count;
            groups += 1;
        } else {
            match number(word, "a column") {
                Ok(value) => {
                    *reversed.get_mut(count).ok_or(RowError::Extra)? = value;
                    count += 1;
                }
                Err(error @ (RowError::TooLarge(_) | RowError::Negative(_))) => return Err(error),
                Err(_) => break,
            }
        }
        rest = before;
    }
    reversed[..count].reverse();
    let mut ends = [count; 4];
    for (i, after) in colons[..groups - 1].iter().rev().enumerate() {
        ends[i] = count - after;
    }
    Ok(Words {
        name: rest,
        numbers: reversed,
        ends,
        groups,
    })
}
