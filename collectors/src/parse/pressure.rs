//! /proc/pressure/memory: how long tasks stood still for want of memory.
//!
//! Source: `psi_show` in kernel/sched/psi.c, Linux 4.20 to 7.3, with
//! CONFIG_PSI and without `psi=0`. Read here and not by the procfs crate,
//! which panics on a line of four letters.

use crate::model::{Pressure, Stall};

/// Reads both lines; `None` when either is not there or is not understood.
pub fn parse(text: &[u8]) -> Option<Pressure> {
    let text = String::from_utf8_lossy(text);
    let line = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| stall(line.strip_prefix(name)?.strip_prefix(' ')?))
    };
    Some(Pressure {
        some: line("some")?,
        full: line("full")?,
    })
}

fn stall(line: &str) -> Option<Stall> {
    let field = |name: &str| {
        let mut words = line.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    Some(Stall {
        avg10: hundredths(field("avg10")?)?,
        avg60: hundredths(field("avg60")?)?,
        avg300: hundredths(field("avg300")?)?,
        total_us: field("total")?.parse().ok()?,
    })
}

/// `1.07` as 107: the kernel prints two digits (`LOAD_FRAC`).
fn hundredths(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.')?;
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if part.len() != 2 || !digits(part) || !digits(whole) {
        return None;
    }
    let whole: u32 = whole.parse().ok()?;
    whole.checked_mul(100)?.checked_add(part.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_lines_are_read() {
        let pressure = parse(
            b"some avg10=0.00 avg60=1.07 avg300=99.90 total=13675858\nfull avg10=12.34 avg60=0.00 avg300=0.00 total=7582354\n",
        )
        .unwrap();
        assert_eq!((pressure.some.avg60, pressure.some.avg300), (107, 9990));
        assert_eq!(pressure.some.total_us, 13_675_858);
        assert_eq!(pressure.full.avg10, 1234);
    }

    #[test]
    fn half_a_file_is_unknown() {
        for text in [
            "",
            "some",
            "full",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.0\n",
            "some avg10=NaN avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = parse(&text);
        }

        #[test]
        fn near_misses_are_never_fatal(text in "(some|full|s)[ =.0-9a-z\n]{0,80}") {
            let _ = parse(text.as_bytes());
        }
    }
}
