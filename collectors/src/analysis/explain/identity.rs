//! Whether two reports, read from different files, are of one event.
//!
//! Purpose: a sosreport has the same lines in dmesg, in messages and in the
//! journal. What tells two events apart is what the kernel printed: addresses,
//! ages, processes, and its own clock where both files have it; not the line
//! numbers, and not the date that a log daemon put before them.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Finding;
use crate::parse::kernel_log::report::{Body, Report, Track};

/// What one event's report has in every file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Everything but the clock.
    body: u64,
    /// The kernel's clock in microseconds, where the file has it.
    clock: Option<u64>,
    /// Addresses or processes are in it: without them only the clock tells
    /// one event from the next.
    telling: bool,
}

impl Identity {
    /// The identity of a report that was explained as `finding`.
    pub fn of(report: &Report, finding: &Finding) -> Self {
        let mut hash = DefaultHasher::new();
        let slab = finding.slab.as_ref();
        let object = finding.object.as_ref();
        (
            finding.kind,
            finding.class,
            &finding.headline,
            &finding.reason,
        )
            .hash(&mut hash);
        slab.map(|s| (s.pointer, s.objects, s.used, s.free_pointer))
            .hash(&mut hash);
        object
            .map(|o| (o.address, o.offset_in_slab))
            .hash(&mut hash);
        track(finding.allocated.as_ref()).hash(&mut hash);
        track(finding.freed.as_ref()).hash(&mut hash);
        let who = &finding.detected;
        (who.cpu, who.pid, &who.comm).hash(&mut hash);
        let over = match &report.body {
            Body::Slub(found) => found.overwritten.first(),
            _ => None,
        };
        over.map(|o| (o.from, o.to, o.offset)).hash(&mut hash);
        Self {
            body: hash.finish(),
            clock: finding.stamp.as_deref().and_then(clock),
            telling: slab.is_some() || over.is_some() || who.pid.is_some(),
        }
    }

    /// Equal for reports of one event; others may have it too.
    pub const fn key(&self) -> u64 {
        self.body
    }

    /// Whether both are of one event.
    pub fn is(&self, other: &Self) -> bool {
        self.body == other.body
            && match (self.clock, other.clock) {
                (Some(a), Some(b)) => a == b,
                _ => self.telling,
            }
    }
}

type Who<'t> = (&'t str, Option<u64>, Option<u64>, Option<u64>);

fn track(track: Option<&Track>) -> Option<Who<'_>> {
    track.map(|t| (&*t.symbol, t.age, t.cpu, t.pid))
}

/// The kernel's clock, as in `10.043554`; a date is not.
fn clock(stamp: &str) -> Option<u64> {
    let (seconds, micros) = stamp.trim().split_once('.')?;
    let whole = seconds.parse::<u64>().ok()?;
    let part = micros.parse::<u64>().ok().filter(|_| micros.len() == 6)?;
    whole.checked_mul(1_000_000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::explain::explain_report;
    use crate::parse::kernel_log::Scanner;

    fn identity(text: &str) -> Identity {
        let report = Scanner::new(text.as_bytes()).next().unwrap().unwrap();
        Identity::of(&report, &explain_report(&report))
    }

    fn text(prefix: &str, pid: u64) -> String {
        [
            "BUG filp (Not tainted): Poison overwritten",
            "0x00000000fc629507-0x00000000fc629507 @offset=2408. First byte 0x78 instead of 0x6b",
            &format!("Allocated in foo+0x1/0x2 age=7 cpu=1 pid={pid}"),
            "Slab 0x0000000077777777 objects=21 used=20 fp=0x0000000000000000 flags=0x200",
        ]
        .map(|line| format!("{prefix}{line}\n"))
        .concat()
    }

    #[test]
    fn the_prefix_of_a_log_daemon_does_not_make_another_event() {
        let kernel = identity(&text("[   10.043554] ", 9));
        let daemon = identity(&text("Nov 30 20:00:01 host kernel: ", 9));
        let both = identity(&text("Nov 30 20:00:01 host kernel: [   10.043554] ", 9));
        assert!(kernel.is(&daemon) && daemon.is(&kernel) && both.is(&kernel));
        // Another process, and another time.
        assert!(!kernel.is(&identity(&text("[   10.043554] ", 8))));
        assert!(!kernel.is(&identity(&text("[   11.043554] ", 9))));
    }

    #[test]
    fn without_addresses_only_the_clock_tells() {
        let line = "SLUB: filp 7 slabs counted but counter=8\n";
        let (bare, stamped) = (identity(line), identity(&format!("[    7.100000] {line}")));
        assert!(!bare.is(&bare) && !bare.is(&stamped));
        assert!(stamped.is(&stamped));
    }
}
