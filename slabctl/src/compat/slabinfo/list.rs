//! One line for each cache: sizes, or activity with -D.
//!
//! Titles and widths are those of tools/mm/slabinfo.c (Linux 6.12).

use std::io::{self, Write};

use collectors::model::CounterId;

use super::row::{Row, cell, scaled_cell};

/// Which columns a list has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    /// Columns of activity.
    pub(crate) activity: bool,
    /// The loss in the place of the memory held.
    pub(crate) loss: bool,
    /// Numbers in full.
    pub(crate) exact: bool,
}

/// Prints the rows under a title; nothing at all without rows.
pub(crate) fn print<'a>(
    rows: impl IntoIterator<Item = &'a Row<'a>>,
    columns: Columns,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut titled = false;
    for row in rows {
        if !titled {
            writeln!(out, "{}", title(columns))?;
            titled = true;
        }
        let line = if columns.activity {
            activity_line(row)
        } else {
            size_line(row, columns)
        };
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn title(columns: Columns) -> String {
    if columns.activity {
        // One title stands over two columns: %Fast of allocations and of frees.
        return "Name                   Objects      Alloc       Free   %Fast Fallb O CmpX   UL"
            .to_owned();
    }
    let space = if columns.loss { " Loss" } else { "Space" };
    format!(
        "Name                   Objects Objsize           {space} Slabs/Part/Cpu  O/S O %Fr %Ef Flg"
    )
}

fn size_line(row: &Row<'_>, columns: Columns) -> String {
    let space = if columns.loss { row.loss } else { row.memory };
    let slabs = format!(
        "{}/{}/{}",
        cell(row.node_slabs()),
        cell(row.partial),
        cell(row.cpu_slabs)
    );
    format!(
        "{:<21} {:>8} {:>7} {:>15} {slabs:>14} {:>4} {} {:>3} {:>3} {}",
        row.name,
        cell(row.objects),
        cell(row.object_size),
        scaled_cell(space, columns.exact),
        cell(row.objs_per_slab),
        cell(row.order),
        cell(row.percent_partial()),
        cell(row.percent_used()),
        row.flags(),
    )
}

fn activity_line(row: &Row<'_>) -> String {
    let total = |path: Option<(u64, u64)>| cell(path.map(|p| p.0));
    let fast = |path: Option<(u64, u64)>| {
        // Nothing done yet is 0 percent, as the tool has it.
        cell(path.map(|(all, fast)| super::row::percent(fast, all).unwrap_or(0)))
    };
    let counter = |id| cell(row.counter(id));
    format!(
        "{:<21} {:>8} {:>10} {:>10} {:>3} {:>3} {:>5} {} {:>4} {:>4}",
        row.name,
        cell(row.objects),
        total(row.allocations()),
        total(row.frees()),
        fast(row.allocations()),
        fast(row.frees()),
        counter(CounterId::OrderFallback),
        cell(row.order),
        counter(CounterId::CmpxchgDoubleFail),
        counter(CounterId::CmpxchgDoubleCpuFail),
    )
}
