//! The slab-related lines of /proc/meminfo.
//!
//! Saved files are often cut to a few lines and may hold anything. The procfs
//! crate wants every line and multiplies unchecked, so that a huge figure would
//! wrap; the few lines that are needed are read here.

use crate::model::{Bytes, MemInfo};

/// Reads the lines that concern slabs; a line that is not there stays `None`.
pub fn parse(text: &[u8]) -> MemInfo {
    let text = String::from_utf8_lossy(text);
    let mut info = MemInfo::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let slot = match key.trim() {
            "MemTotal" => &mut info.mem_total,
            "MemFree" => &mut info.mem_free,
            "MemAvailable" => &mut info.mem_available,
            "Slab" => &mut info.slab,
            "SReclaimable" => &mut info.s_reclaimable,
            "SUnreclaim" => &mut info.s_unreclaim,
            "KReclaimable" => &mut info.k_reclaimable,
            "PageTables" => &mut info.page_tables,
            "KernelStack" => &mut info.kernel_stack,
            "Percpu" => &mut info.percpu,
            _ => continue,
        };
        let mut words = value.split_whitespace();
        if let (Some(Ok(kib)), Some("kB"), None) = (
            words.next().map(str::parse::<u64>),
            words.next(),
            words.next(),
        ) {
            *slot = kib.checked_mul(1024).map(Bytes);
        }
    }
    info
}

/// True when the text has at least one line of /proc/meminfo we know.
pub fn recognise(text: &[u8]) -> bool {
    let head = String::from_utf8_lossy(text.get(..4096).unwrap_or(text));
    head.lines()
        .any(|l| l.starts_with("MemTotal:") || l.starts_with("Slab:"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn four_lines_are_enough() {
        let info = parse(
            b"MemTotal: 131831052 kB\nSlab:            1452008 kB\nSReclaimable:    1242872 kB\nSUnreclaim:       209136 kB\n",
        );
        assert_eq!(info.slab, Some(Bytes(1_452_008 * 1024)));
        assert_eq!(info.s_unreclaim, Some(Bytes(209_136 * 1024)));
        assert_eq!(info.percpu, None);
    }

    #[test]
    fn an_odd_line_does_not_lose_the_rest() {
        let info = parse(b"MemTotal: 1 kB\nWeird: 5 pages\nSlab: nonsense kB\n");
        assert_eq!(info.mem_total, Some(Bytes(1024)));
        assert_eq!(info.slab, None);
    }

    #[test]
    fn a_figure_that_does_not_fit_is_not_wrapped() {
        // 2^61 kB, in a text that has every line that kernels always print.
        let text = b"MemTotal: 2305843009213693952 kB\nMemFree: 1 kB\nBuffers: 0 kB\n\
            Cached: 0 kB\nSwapCached: 0 kB\nActive: 0 kB\nInactive: 0 kB\nSwapTotal: 0 kB\n\
            SwapFree: 0 kB\nDirty: 0 kB\nWriteback: 0 kB\nSlab: 2 kB\nVmallocTotal: 0 kB\n\
            VmallocUsed: 0 kB\n";
        let info = parse(text);
        assert_eq!(info.mem_total, None);
        assert_eq!(info.slab, Some(Bytes(2048)));
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..512)) {
            let _ = parse(&text);
        }
    }
}
