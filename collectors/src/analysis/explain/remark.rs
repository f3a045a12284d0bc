//! Lines that tell of no damage, explained.
//!
//! Source of truth: trace() and parse_slub_debug_flags() of mm/slub.c,
//! kmem_cache_sanity_check() of mm/slab_common.c. None of them accuses.

use super::finding::{Class, Finding, Kind};
use super::words::cache_name;
use crate::parse::kernel_log::report::{Remark, Report};

/// Explains such a line.
pub(super) fn explain(report: &Report, found: &Remark) -> Finding {
    let mut finding = Finding::new(Kind::Remark, Class::Remark);
    finding.detected = report.detected.clone();
    match found {
        Remark::Traced { cache, alloc } => {
            finding.cache = Some(cache_name(cache));
            let what = if *alloc { "allocation" } else { "free" };
            finding.reason = Some(format!("TRACE {what}"));
            finding.headline =
                format!("{cache}: an {what} was logged").replace("an free", "a free");
            finding.certain(format!(
                "Every allocation and free of {cache} is written into the log (debug option T): that is no fault. It fills the log, and pushes other reports out of it."
            ));
        }
        Remark::UnknownOption { word, option } => {
            finding.reason = Some(format!("{word} option '{option}' unknown"));
            finding.headline = format!(
                "the boot option {word} has a letter that this kernel does not know: {option}"
            );
            finding.certain("The kernel passed over it; the other letters count.");
            finding.do_next(format!(
                "Write {word}=LETTERS,CACHE with the letters F, Z, P, U, T, A, O or -; names come after a comma."
            ));
        }
        Remark::NotShown { cache } => {
            finding.cache = Some(cache_name(cache));
            finding.reason = Some("not added to sysfs".to_owned());
            finding.headline = format!("{cache}: the cache has no directory in /sys/kernel/slab");
            finding.certain("The cache works; its figures are only in /proc/slabinfo.");
            finding.likely("Another cache has its name: two directories cannot have one.");
        }
        Remark::SameName { cache } => {
            finding.cache = Some(cache_name(cache));
            finding.reason = Some("the name exists already".to_owned());
            finding.headline = format!("{cache}: a second cache was made with this name");
            finding
                .certain("Both work; reports and figures of the two cannot be told apart by name.");
            finding.likely("Its maker forgot to destroy the first one, or makes one for each device under one name.");
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use crate::analysis::explain::{Explanation, explain};
    use crate::parse::kernel_log::Scanner;

    fn explained(text: &str) -> Explanation {
        let reports: Vec<_> = Scanner::new(text.as_bytes()).map(Result::unwrap).collect();
        explain(&reports)
    }

    #[test]
    fn traces_are_told_by_cache_and_kind_and_accuse_nobody() {
        let text = "\
[    1.000001] TRACE kmalloc-64 alloc 0x00000000d4b7b1a5 inuse=5 fp=0x00000000e1d4a5a5
[    1.000002] CPU: 0 PID: 1 Comm: swapper Not tainted 6.12.0 #1
[    1.000003] Call Trace:
[    1.000004]  dump_stack_lvl+0x1/0x2
[    1.000005] TRACE kmalloc-64 free 0x00000000d4b7b1a5 inuse=5 fp=0x00000000e1d4a5a5
[    1.000006] Object   00000000d4b7b1a5: 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b  kkkkkkkkkkkkkkkk
[    1.000007] TRACE kmalloc-64 alloc 0x00000000d4b7b1a6 inuse=6 fp=0x00000000e1d4a5a5
";
        let seen = explained(text);
        let list: Vec<_> = seen
            .findings
            .iter()
            .map(|f| (&*f.headline, f.repeats))
            .collect();
        let expected = [
            ("kmalloc-64: an allocation was logged", 2),
            ("kmalloc-64: a free was logged", 1),
        ];
        assert_eq!(list, expected);
        assert!(!seen.accuses());
    }

    #[test]
    fn lines_of_boot_and_of_names_are_known() {
        for (line, part) in [
            ("slab_debug option 'Q' unknown. skipped", "does not know: Q"),
            (
                "slub_debug option 'x' unknown. skipped",
                "slub_debug has a letter",
            ),
            (
                "SLUB: Unable to add boot slab kmalloc-8 to sysfs",
                "kmalloc-8: the cache has no directory",
            ),
            (
                "SLUB: Unable to add cache foo bar to sysfs",
                "foo bar: the cache has no directory",
            ),
            (
                "kmem_cache of name 'bio-256' already exists",
                "bio-256: a second cache",
            ),
        ] {
            let seen = explained(&format!("[    0.100000] {line}\n"));
            assert_eq!(seen.findings.len(), 1, "{line}");
            assert!(
                seen.findings[0].headline.contains(part),
                "{}",
                seen.findings[0].headline
            );
            assert!(!seen.accuses());
        }
        for line in [
            "SLUB: HWalign=64, Order=0-3, MinObjects=0, CPUs=4, Nodes=2",
            "TRACE is a word",
            "debug option 'Q' unknown. skipped",
            "a file of that name already exists",
        ] {
            assert_eq!(explained(&format!("{line}\n")).findings.len(), 0, "{line}");
        }
    }
}
