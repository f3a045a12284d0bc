//! `slabctl validate`: has the kernel check caches, or checks an engine: the built-in one, or
//! that of a process.
//!
//! What both have in common: a finding as a line, as a row, as JSON.

pub(crate) mod engine;
pub(crate) mod kernel;
mod page;
pub(crate) mod plan;

use collectors::analysis::validate::Fault;
use collectors::source::Fault as EngineFault;

use super::{Context, shrink};
use crate::cli::Validate as Args;
use crate::fail::{Failure, Status};
use crate::open;
use crate::output::table::{Cell, Head, Table};

/// A finding of either source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) cache: &'a str,
    pub(crate) node: Option<u32>,
    pub(crate) slab: Option<u64>,
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
    /// What only the kernel's have.
    pub(crate) fault: Option<&'a Fault>,
}

impl<'a> Row<'a> {
    pub(crate) fn of_engine(fault: &'a EngineFault) -> Self {
        Self {
            cache: &fault.cache,
            node: Some(fault.node),
            slab: fault.slab,
            code: &fault.code,
            message: &fault.message,
            fault: None,
        }
    }

    pub(crate) fn of_kernel(fault: &'a Fault) -> Self {
        Self {
            cache: &fault.cache,
            node: fault.node,
            slab: fault.slab,
            code: fault.code,
            message: &fault.message,
            fault: Some(fault),
        }
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &Args) -> anyhow::Result<Status> {
    shrink::no_lines(context, "validate")?;
    if open::has_engine(&context.global) {
        if !args.caches.is_empty() {
            let error = "validate --demo and --pid check all caches: name none";
            return Err(Failure::usage(error).into());
        }
        return engine::run(context, args.ask);
    }
    if args.ask {
        return Err(Failure::usage("--ask goes with --pid").into());
    }
    if context.global.from.is_some() {
        let error = "validate: a saved file cannot be checked, only a running kernel";
        return Err(Failure::new(Status::Unavailable, error)
            .hint("slabctl explain FILE tells what the kernel's log in it says")
            .hint("slabctl validate --demo checks the built-in engine")
            .into());
    }
    kernel::run(context, args)
}

/// One line a finding, for machines.
fn table<'a>(rows: impl Iterator<Item = Row<'a>>) -> Table {
    let mut table = Table::new(vec![
        Head::left("Cache"),
        Head::right("Node"),
        Head::left("Slab"),
        Head::left("Code"),
        Head::left("Finding"),
        Head::right("Offset"),
        Head::right("Pass"),
        Head::left("False positive").key("false_positive"),
    ]);
    for row in rows {
        let number = |n: Option<u64>| n.map_or_else(Cell::missing, |n| Cell::text(n.to_string()));
        let slab = row.slab.map(|at| Cell::text(format!("{at:#x}")));
        let why = row.fault.and_then(|f| f.false_positive.as_deref());
        table.row(vec![
            Cell::text(row.cache),
            number(row.node.map(u64::from)),
            slab.unwrap_or_else(Cell::missing),
            Cell::text(row.code),
            Cell::text(row.message),
            number(row.fault.and_then(|f| f.offset)),
            number(row.fault.map(|f| u64::from(f.pass))),
            why.map_or_else(Cell::missing, Cell::text),
        ]);
    }
    table
}
