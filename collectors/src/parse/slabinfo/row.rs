//! One row of slabinfo, borrowed from its line, and what can be wrong with it.
//!
//! Source of truth: the printf formats of mm/slab.c (2.5.7x to 6.7), mm/slub.c
//! and mm/slab_common.c (to 7.3) for version 2.x; [`super::legacy`] has 1.x.
//! Nothing here allocates or joins lines.

use std::fmt;
use std::ops::Range;

use super::cursor::{Cursor, is_blank, number};
use super::legacy;
use crate::model::{SlabStatistics, SlabTunables};

/// The layouts of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Version 1.0 (2.1 and 2.2): 2, 5 or 10 numbers, without an object size.
    V1_0,
    /// Version 1.1 (2.4): 6 numbers, then groups after colons.
    V1_1,
    /// Version 2.0 and 2.1 (2.5.7x to now): 5 numbers, then named groups.
    V2,
}

/// The two columns that a kernel which is not Linux prints after `slabdata`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolColumns {
    /// `num_pool`.
    pub num_pool: u64,
    /// `reclaimable`.
    pub reclaimable: u64,
}

/// The numbers of a row under the kernel's own names; `None` where the version has no such column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Columns {
    /// Objects in use.
    pub active_objs: u64,
    /// Objects the slabs have room for.
    pub num_objs: u64,
    /// Bytes of a slot, debug metadata included.
    pub objsize: Option<u64>,
    /// Objects in a slab.
    pub objperslab: Option<u64>,
    /// Pages in a slab.
    pub pagesperslab: Option<u64>,
    /// `tunables`; `limit batchcount` in version 1.1.
    pub tunables: Option<SlabTunables>,
    /// Slabs with an object in use; equal to `num_slabs` under SLUB.
    pub active_slabs: Option<u64>,
    /// Slabs.
    pub num_slabs: Option<u64>,
    /// Free objects in the shared array.
    pub sharedavail: Option<u64>,
    /// `globalstat` and `cpustat`, or the statistics of version 1.x.
    pub statistics: Option<SlabStatistics>,
    /// Last column of `globalstat` in version 2.0.
    pub freelimit: Option<u64>,
    /// Set for a row that is not from Linux.
    pub pool: Option<PoolColumns>,
}

/// A row: the name exactly as printed, and its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    /// The name. It may have blanks, colons, slashes and brackets.
    pub name: &'a str,
    /// The numbers.
    pub columns: Columns,
}

/// Why a line is not a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowError {
    /// It has no name before its numbers.
    NoName,
    /// It ends before a column.
    Cut(&'static str),
    /// A column is not a number.
    NotANumber(&'static str),
    /// A column is negative.
    Negative(&'static str),
    /// A column does not fit into 64 bits.
    TooLarge(&'static str),
    /// It has more numbers than there are columns.
    Extra,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => f.write_str("it has no name"),
            Self::Cut(column) => write!(f, "it ends before {column}"),
            Self::NotANumber(column) => write!(f, "{column} is not a number"),
            Self::Negative(column) => write!(f, "{column} is negative"),
            Self::TooLarge(column) => write!(f, "{column} does not fit into 64 bits"),
            Self::Extra => f.write_str("it has more numbers than columns"),
        }
    }
}

impl std::error::Error for RowError {}

/// Parses one cleaned line as a row of `format`.
pub fn parse_row(line: &str, format: Format) -> Result<Row<'_>, RowError> {
    let (name, columns) = parse_columns(line, format)?;
    let name = line.get(name).ok_or(RowError::NoName)?;
    Ok(Row { name, columns })
}

/// As [`parse_row`], with the name as a range of the line.
pub(super) fn parse_columns(
    line: &str,
    format: Format,
) -> Result<(Range<usize>, Columns), RowError> {
    match format {
        Format::V2 => v2(line),
        Format::V1_0 | Format::V1_1 => legacy::columns(line, format),
    }
}

const HEAD: [&str; 5] = [
    "active_objs",
    "num_objs",
    "objsize",
    "objperslab",
    "pagesperslab",
];
const TUNABLES: [&str; 3] = ["limit", "batchcount", "sharedfactor"];
const SLABDATA: [&str; 3] = ["active_slabs", "num_slabs", "sharedavail"];
const GLOBALSTAT: [&str; 7] = [
    "listallocs",
    "maxobjs",
    "grown",
    "reaped",
    "error",
    "maxfreeable",
    "nodeallocs",
];
const CPUSTAT: [&str; 4] = ["allochit", "allocmiss", "freehit", "freemiss"];

fn v2(line: &str) -> Result<(Range<usize>, Columns), RowError> {
    let mut cursor = Cursor::new(line);
    let (name, head) = match simple_head(&mut cursor) {
        Ok(found) => found,
        Err(error) => {
            // The name has blanks, or the row is broken.
            let mark = tunables_mark(line).ok_or(error)?;
            cursor.go_to(mark);
            split_head(line, mark)?
        }
    };
    let [active_objs, num_objs, objsize, objperslab, pagesperslab] = head;
    cursor.expect("tunables")?;
    let [limit, batchcount, sharedfactor] = cursor.numbers(&TUNABLES)?;
    cursor.expect("slabdata")?;
    let [active_slabs, num_slabs, third] = cursor.numbers(&SLABDATA)?;
    let mut columns = Columns {
        active_objs,
        num_objs,
        objsize: Some(objsize),
        objperslab: Some(objperslab),
        pagesperslab: Some(pagesperslab),
        tunables: Some(SlabTunables {
            limit,
            batchcount,
            sharedfactor: Some(sharedfactor),
        }),
        active_slabs: Some(active_slabs),
        num_slabs: Some(num_slabs),
        sharedavail: Some(third),
        ..Columns::default()
    };
    tail(&mut cursor, &mut columns)?;
    Ok((name, columns))
}

/// What may follow `slabdata`: two more columns elsewhere, statistics, or
/// words somebody wrote beside the row, which are passed over.
fn tail(cursor: &mut Cursor<'_>, columns: &mut Columns) -> Result<(), RowError> {
    if cursor.at_end() {
        return Ok(());
    }
    if cursor.at_number() {
        let [sharedavail, reclaimable] = cursor
            .numbers(&["sharedavail", "reclaimable"])
            .map_err(|_| RowError::Extra)?;
        columns.pool = Some(PoolColumns {
            num_pool: columns.sharedavail.unwrap_or_default(),
            reclaimable,
        });
        columns.sharedavail = Some(sharedavail);
        if cursor.at_number() {
            return Err(RowError::Extra);
        }
    }
    while cursor.colon() {
        match cursor.word() {
            "globalstat" => globalstat(cursor, columns)?,
            "cpustat" => cpustat(cursor, columns)?,
            part if cursor.at_end() && "globalstat".starts_with(part) => {
                return Err(RowError::Cut("globalstat"));
            }
            part if cursor.at_end() && "cpustat".starts_with(part) => {
                return Err(RowError::Cut("cpustat"));
            }
            _ => break,
        }
        if cursor.at_number() {
            return Err(RowError::Extra);
        }
    }
    Ok(())
}

/// 7 columns end with `freelimit` (2.0), 9 with `alienoverflow` (2.6.18 on).
/// With 8 the last two had two meanings over time, so they stay unknown.
fn globalstat(cursor: &mut Cursor<'_>, columns: &mut Columns) -> Result<(), RowError> {
    let [
        listallocs,
        maxobjs,
        grown,
        reaped,
        error,
        maxfreeable,
        seventh,
    ] = cursor.numbers(&GLOBALSTAT)?;
    let statistics = columns.statistics.get_or_insert_default();
    statistics.listallocs = Some(listallocs);
    statistics.maxobjs = Some(maxobjs);
    statistics.grown = Some(grown);
    statistics.reaped = Some(reaped);
    statistics.error = Some(error);
    statistics.maxfreeable = Some(maxfreeable);
    if !cursor.at_number() {
        columns.freelimit = Some(seventh);
        return Ok(());
    }
    let eighth = cursor.number("remotefrees")?;
    if cursor.at_number() {
        statistics.nodeallocs = Some(seventh);
        statistics.remotefrees = Some(eighth);
        statistics.alienoverflow = Some(cursor.number("alienoverflow")?);
    }
    Ok(())
}

/// 2.5.7x printed one group per processor, each with the processor's number first.
fn cpustat(cursor: &mut Cursor<'_>, columns: &mut Columns) -> Result<(), RowError> {
    let mut four = cursor.numbers(&CPUSTAT)?;
    if cursor.at_number() {
        let last = cursor.number("freemiss")?;
        four = [four[1], four[2], four[3], last];
    }
    let statistics = columns.statistics.get_or_insert_default();
    let add = |sum: &mut Option<u64>, n: u64| *sum = Some(sum.unwrap_or(0).saturating_add(n));
    add(&mut statistics.allochit, four[0]);
    add(&mut statistics.allocmiss, four[1]);
    add(&mut statistics.freehit, four[2]);
    add(&mut statistics.freemiss, four[3]);
    Ok(())
}

/// The usual row: a name without blanks, five numbers, a colon.
fn simple_head(cursor: &mut Cursor<'_>) -> Result<(Range<usize>, [u64; 5]), RowError> {
    cursor.blanks();
    let start = cursor.at();
    if cursor.word().is_empty() {
        return Err(RowError::NoName);
    }
    let name = start..cursor.at();
    let head = cursor.numbers(&HEAD)?;
    let back = cursor.at();
    cursor.expect("tunables")?;
    cursor.go_to(back);
    Ok((name, head))
}

/// Where the `:` of the last ` : tunables` is.
fn tunables_mark(line: &str) -> Option<usize> {
    line.rmatch_indices("tunables").find_map(|(at, _)| {
        let before = line.get(..at)?.trim_end_matches(is_blank);
        let colon = before.strip_suffix(':')?;
        colon.ends_with(is_blank).then_some(colon.len())
    })
}

/// The last five words before the mark are numbers, the rest is the name.
fn split_head(line: &str, mark: usize) -> Result<(Range<usize>, [u64; 5]), RowError> {
    let mut rest = line.get(..mark).unwrap_or_default();
    let mut head = [0; 5];
    for (value, column) in head.iter_mut().zip(HEAD).rev() {
        rest = rest.trim_end_matches(is_blank);
        let start = rest.rfind(is_blank).map_or(0, |at| at + 1);
        let (before, word) = rest.split_at(start);
        if word.is_empty() {
            return Err(RowError::Cut(column));
        }
        *value = number(word, column)?;
        rest = before;
    }
    let name = rest.trim_matches(is_blank);
    if name.is_empty() {
        return Err(RowError::NoName);
    }
    let start = rest.len() - rest.trim_start_matches(is_blank).len();
    Ok((start..start + name.len(), head))
}
