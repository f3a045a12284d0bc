//! /proc/buddyinfo: free blocks of the page allocator by node, zone and order.
//!
//! Source: `frag_show_print` in mm/vmstat.c, Linux 2.6.0 to 7.3: one line a
//! zone, `Node 0, zone   Normal` and a number for each order. Kernels of 2.4
//! have no such file.

use crate::model::{FreeBlocks, NodeId, Warning, WarningCode, Warnings};

/// More orders than any kernel has (`MAX_PAGE_ORDER` is 10 on most, 13 on
/// arm64 with 64 KiB pages, and was configurable before).
const MAX_ORDERS: usize = 64;

/// More zones than any machine has.
const MAX_ZONES: usize = 8192;

/// Reads the zones; a line that is none is named and left out.
pub fn parse(text: &[u8]) -> (Vec<FreeBlocks>, Warnings) {
    let text = String::from_utf8_lossy(text);
    let mut zones = Vec::new();
    let mut warnings = Warnings::default();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        if zones.len() == MAX_ZONES {
            warnings.push(Warning::new(
                WarningCode::LimitReached,
                format!("only the first {MAX_ZONES} zones are kept"),
            ));
            break;
        }
        match zone(line) {
            Some(zone) => zones.push(zone),
            None => warnings.push(
                Warning::new(
                    WarningCode::BrokenRow,
                    "no zone with its free blocks, ignored",
                )
                .at_line(number),
            ),
        }
    }
    (zones, warnings)
}

fn zone(line: &str) -> Option<FreeBlocks> {
    let rest = line.strip_prefix("Node ")?;
    let (node, rest) = rest.split_once(',')?;
    let mut words = rest.split_whitespace();
    if words.next() != Some("zone") {
        return None;
    }
    let zone = words.next()?;
    let mut free = Vec::new();
    for word in words {
        if free.len() == MAX_ORDERS {
            return None;
        }
        free.push(word.parse().ok()?);
    }
    let node = NodeId(node.trim().parse().ok()?);
    let zone = zone.to_owned();
    (!free.is_empty()).then_some(FreeBlocks { node, zone, free })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_zone_has_its_blocks() {
        let (zones, warnings) = parse(
            b"Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n\
              Node 1, zone   Normal   2625   6627  10214   3292   1776   1113    525    181     76     30     61 \n",
        );
        assert!(warnings.is_empty());
        assert_eq!((zones[0].zone.as_str(), zones[0].free[10]), ("DMA", 3));
        assert_eq!((zones[1].node, zones[1].free.len()), (NodeId(1), 11));
        assert_eq!(zones[1].free[0], 2625);
    }

    #[test]
    fn blocks_of_an_order_can_be_split_from_larger_ones() {
        let zone = FreeBlocks {
            node: NodeId(0),
            zone: "Normal".to_owned(),
            free: vec![7, 1, 0, 2],
        };
        assert_eq!(zone.exactly(0), Some(7));
        assert_eq!(zone.at_least(0), Some(7 + 2 + 16));
        assert_eq!(zone.at_least(2), Some(4));
        assert_eq!(zone.at_least(3), Some(2));
        assert_eq!((zone.exactly(4), zone.at_least(4)), (None, None));
    }

    #[test]
    fn a_broken_line_is_named_and_the_rest_is_read() {
        let (zones, warnings) =
            parse(b"Node 0, zone DMA 1 2\nNode 0, zone\nNode x, zone DMA 1\nNode 0, zone A -1\n\nNode 0, zone B 5\n");
        assert_eq!(zones.len(), 2);
        let lines: Vec<_> = warnings.iter().map(|w| w.line).collect();
        assert_eq!(lines, [Some(2), Some(3), Some(4)]);
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..512)) {
            for zone in parse(&text).0 {
                for order in 0..70 {
                    let _ = (zone.exactly(order), zone.at_least(order));
                }
            }
        }

        #[test]
        fn what_the_kernel_prints_is_read(node in 0u32..64, free in proptest::collection::vec(any::<u32>(), 1..14)) {
            let numbers: Vec<String> = free.iter().map(|n| format!("{n:6}")).collect();
            let numbers = numbers.join(" ");
            let line = format!("Node {node}, zone {:>8} {numbers}\n", "Movable");
            let (zones, warnings) = parse(line.as_bytes());
            prop_assert!(warnings.is_empty());
            prop_assert_eq!(zones[0].node, NodeId(node));
            prop_assert_eq!(&zones[0].free, &free.iter().map(|n| u64::from(*n)).collect::<Vec<_>>());
        }
    }
}
