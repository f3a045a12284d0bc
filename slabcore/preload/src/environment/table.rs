//! The variables. `SLABCORE_HELP=1` prints this table, docs/PRELOAD.md has it, and a test
//! compares the two.

use super::{Settings, keep, keep_text};
use slabcore::debug::flags::DebugOptions;
use slabcore::heap::sizes::NAMES;
use slabcore::segment::Place;
use slabcore::{Decommit, OnFault, Policy};

/// A variable.
pub(crate) struct Variable {
    pub name: &'static str,
    /// What it may be set to.
    pub values: &'static str,
    /// What applies when it is not set.
    pub default: &'static str,
    /// What it does, in a sentence.
    pub what: &'static str,
    /// An empty value means something.
    pub may_be_empty: bool,
    /// Takes a value over, or says what is wrong with it.
    pub set: fn(&mut Settings, &str) -> Result<(), &'static str>,
}

const fn variable(
    name: &'static str,
    [values, default, what]: [&'static str; 3],
    set: fn(&mut Settings, &str) -> Result<(), &'static str>,
) -> Variable {
    Variable {
        name,
        values,
        default,
        what,
        may_be_empty: false,
        set,
    }
}

/// All variables.
pub(crate) const TABLE: &[Variable] = &[
    variable(
        "SLABCORE_POLICY",
        [
            "classic, cpu-partial, delayed-freeze, sheaves, hybrid",
            "hybrid",
            "The allocator's design.",
        ],
        |it, value| {
            it.engine.policy = Policy::from_name(value).ok_or(
                "is no policy: there are classic, cpu-partial, delayed-freeze, sheaves, hybrid",
            )?;
            Ok(())
        },
    ),
    Variable {
        may_be_empty: true,
        ..variable(
            "SLABCORE_DEBUG",
            [
                "flags[,caches][;...] as in slab_debug, for example FZPU or FZPU,kmalloc-64",
                "none",
                "Debugs all classes of sizes, or those named: F checks consistency, Z has red zones, P poisons, U keeps \
                 who allocated and freed, T traces, A makes allocations fail; set to nothing it means FZPU.",
            ],
            debug,
        )
    },
    variable(
        "SLABCORE_FAIL",
        [
            "a number",
            "0: none",
            "Lets one allocation in so many fail, in classes with the flag A.",
        ],
        |it, value| {
            it.engine.fail_every = number(value)?;
            Ok(())
        },
    ),
    variable(
        "SLABCORE_SAMPLE",
        [
            "a number",
            "0: none",
            "Puts one allocation in so many on a page of its own between inaccessible ones.",
        ],
        |it, value| {
            it.engine.sample_every = number(value)?;
            Ok(())
        },
    ),
    variable(
        "SLABCORE_ON_FAULT",
        [
            "report, abort",
            "report",
            "After a report, takes the object out of use and goes on, or aborts the program.",
        ],
        |it, value| {
            it.engine.on_fault = match value {
                "report" => OnFault::Quarantine,
                "abort" => OnFault::Abort,
                _ => return Err("is neither report nor abort"),
            };
            Ok(())
        },
    ),
    variable(
        "SLABCORE_LOG",
        [
            "an absolute path",
            "standard error",
            "Appends reports to a file, made with mode 0600; a link is not followed.",
        ],
        |it, value| {
            if !value.starts_with('/') {
                return Err("is no absolute path");
            }
            it.log = Some(keep(value).ok_or("is too long")?);
            Ok(())
        },
    ),
    variable(
        "SLABCORE_LIMIT",
        [
            "bytes, or with K, M or G behind",
            "none",
            "Lets allocations fail beyond so many bytes in use.",
        ],
        |it, value| {
            it.engine.limit = bytes(value)?;
            Ok(())
        },
    ),
    variable(
        "SLABCORE_HUGE",
        ["0, 1", "0", "Asks the system for huge pages."],
        |it, value| {
            it.engine.huge_pages = switch(value)?;
            Ok(())
        },
    ),
    variable(
        "SLABCORE_HARDEN",
        [
            "0, 1",
            "0",
            "Stores links of free objects so that damage to them shows.",
        ],
        |it, value| {
            it.engine.harden_freelist = switch(value)?;
            Ok(())
        },
    ),
    variable(
        "SLABCORE_RANDOMISE",
        [
            "0, 1",
            "0",
            "Hands the objects of a new slab out in random order.",
        ],
        |it, value| {
            it.engine.randomise_freelist = switch(value)?;
            Ok(())
        },
    ),
    variable(
        "SLABCORE_DECOMMIT",
        [
            "now, or a number of milliseconds",
            "1000",
            "When memory that has become free is given back.",
        ],
        |it, value| {
            it.engine.decommit = match value {
                "now" => Decommit::Immediate,
                _ => Decommit::AfterMs(value.parse().map_err(|_| "is neither now nor a number")?),
            };
            Ok(())
        },
    ),
    variable(
        "SLABCORE_NODES",
        [
            "1 to 8",
            "1",
            "Simulated NUMA nodes, among which threads are dealt out.",
        ],
        |it, value| {
            it.engine.nodes = match value.parse() {
                Ok(nodes @ 1..=8) => nodes,
                _ => return Err("is no number from 1 to 8"),
            };
            Ok(())
        },
    ),
    variable(
        "SLABCORE_SEGMENT",
        [
            "memfd, off, or file:PATH with a name that begins with slabcore, on tmpfs",
            "memfd",
            "Where slabctl finds the process (docs/SEGMENT.md); a file outlives it, %p is its number.",
        ],
        |it, value| {
            let value = keep_text(value).ok_or("is too long")?;
            it.engine.segment = Place::parse(value).ok_or("is neither memfd, off nor file:PATH")?;
            Ok(())
        },
    ),
    variable(
        "SLABCORE_WATCHER",
        [
            "a process id",
            "0: none",
            "The parent that looks at the process when it ends, as slabctl run does; it is waited for.",
        ],
        |it, value| {
            it.engine.watcher = number(value)?;
            Ok(())
        },
    ),
    variable(
        "SLABCORE_HELP",
        [
            "0, 1",
            "0",
            "Prints this table to standard error when the program starts.",
        ],
        |it, value| {
            it.help = switch(value)?;
            Ok(())
        },
    ),
];

fn debug(it: &mut Settings, value: &str) -> Result<(), &'static str> {
    let options = DebugOptions::parse(value);
    if options.unknown().next().is_some() {
        return Err("has a letter that is no flag: there are F, Z, P, U, T, A, and O and -");
    }
    let named = |name: &&str| options.flags_for(name).is_some();
    if !NAMES.iter().skip(1).any(named) {
        return Err("names no class of sizes: they are kmalloc-8, kmalloc-16 and so on");
    }
    it.engine.debug = Some(keep_text(value).ok_or("is too long")?);
    Ok(())
}

fn number(value: &str) -> Result<u32, &'static str> {
    value.parse().map_err(|_| "is no number")
}

fn switch(value: &str) -> Result<bool, &'static str> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("is neither 0 nor 1"),
    }
}

fn bytes(value: &str) -> Result<u64, &'static str> {
    const WRONG: &str = "is no number of bytes, such as 4096, 64M or 2G";
    let (digits, shift) = match value.as_bytes().last() {
        Some(b'k' | b'K') => (&value[..value.len() - 1], 10),
        Some(b'm' | b'M') => (&value[..value.len() - 1], 20),
        Some(b'g' | b'G') => (&value[..value.len() - 1], 30),
        _ => (value, 0),
    };
    let number: u64 = digits.parse().map_err(|_| WRONG)?;
    number.checked_mul(1 << shift).ok_or(WRONG)
}
