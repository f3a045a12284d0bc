//! `slabctl dump`: looks into caches of a kernel, a saved one, the built-in engine, or a process.

mod engine;
pub(crate) mod kernel;

use super::{Context, shrink};
use crate::cli;
use crate::fail::Status;
use crate::open;

/// Which object is to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// The one that an address is in.
    Address(u64),
    /// By the numbers of its slab and of itself.
    Number(usize, usize),
}

/// `0x7f00`, `7` or `2:7`.
pub(crate) fn which(text: &str) -> Result<Which, String> {
    let hint = "an address in hexadecimal with 0x, an object's number, or SLAB:OBJECT";
    let wrong = |_| hint.to_owned();
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16)
            .map(Which::Address)
            .map_err(wrong);
    }
    let (slab, object) = text.split_once(':').unwrap_or(("0", text));
    let slab = slab.parse().map_err(wrong)?;
    Ok(Which::Number(slab, object.parse().map_err(wrong)?))
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &cli::Dump) -> anyhow::Result<Status> {
    shrink::no_lines(context, "dump")?;
    if open::has_engine(&context.global) {
        engine::run(context, args)
    } else {
        kernel::run(context, args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_named_by_address_or_number() {
        assert_eq!(which("0x7f00"), Ok(Which::Address(0x7f00)));
        assert_eq!(which("12"), Ok(Which::Number(0, 12)));
        assert_eq!(which("2:7"), Ok(Which::Number(2, 7)));
        for text in ["", "x", "0x", "1:", "-1", "7f00f"] {
            assert!(which(text).unwrap_err().contains("SLAB:OBJECT"), "{text}");
        }
    }
}
