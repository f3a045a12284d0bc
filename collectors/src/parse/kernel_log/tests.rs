//! How reports are put together. Answers on real logs: `tests/explain_cases.rs`.

use std::fmt::Write as _;

use super::report::{Body, Frame, Shape, Slub};
use super::*;

const REPORT: &str = "\
=============================================================================
BUG kmalloc-16 (Not tainted): Right Redzone overwritten
-----------------------------------------------------------------------------

0xffff888004fd59a8-0xffff888004fd59a9 @offset=2472. First byte 0x12 instead of 0xcc
Allocated in foo_open+0x33/0x40 [foo] age=1 cpu=0 pid=880
 __kmalloc+0x33/0x40
 foo_open+0x33/0x40 [foo]
Slab 0xffffea000013f540 objects=25 used=11 fp=0xffff888004fd53c8 flags=0x200(slab|node=0|zone=0)
Object 0xffff888004fd5998 @offset=2456 fp=0xffff888004fd53c8

Redzone  ffff888004fd5990: cc cc cc cc cc cc cc cc                          ........
Object   ffff888004fd5998: 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b 6b a5  kkkkkkkkkkkkkkk.
Redzone  ffff888004fd59a8: 12 34 cc cc cc cc cc cc                          .4......
CPU: 2 PID: 41 Comm: a b Tainted: G    B              6.6.0-rc1 #1
Call Trace:
 <TASK>
 dump_stack_lvl+0x44/0x5c
 ? kfree+0x1/0x2
 foo_close+0x73/0xac [foo]
 </TASK>
FIX kmalloc-16: Restoring Right Redzone 0xffff888004fd59a8-0xffff888004fd59a9=0xcc
";

fn slub(report: &Report) -> &Slub {
    match &report.body {
        Body::Slub(slub) => slub,
        other => panic!("{other:?}"),
    }
}

fn assert_whole(report: &Report) {
    let slub = slub(report);
    assert_eq!(slub.cache.as_deref(), Some("kmalloc-16"));
    assert_eq!(slub.reason.as_deref(), Some("Right Redzone overwritten"));
    assert_eq!(slub.overwritten[0].offset, Some(2472));
    let allocated = slub.allocated.as_ref().unwrap();
    assert_eq!(allocated.symbol, "foo_open+0x33/0x40 [foo]");
    assert_eq!(
        (allocated.pid, allocated.stack.frames.len()),
        (Some(880), 2)
    );
    assert_eq!(slub.slab.as_ref().unwrap().used, Some(11));
    assert_eq!(slub.object.as_ref().unwrap().offset, Some(2456));
    assert_eq!(slub.rows.len(), 3);
    assert_eq!(
        slub.rows[2].bytes(),
        [0x12, 0x34, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc]
    );
    assert_eq!(slub.fixes.len(), 1);
    let found = &report.detected;
    assert_eq!((found.cpu, found.pid), (Some(2), Some(41)));
    assert_eq!(found.comm.as_deref(), Some("a b"));
    assert_eq!(found.kernel.as_deref(), Some("6.6.0-rc1"));
    let functions: Vec<_> = found.stack.frames.iter().map(Frame::function).collect();
    assert_eq!(functions, ["dump_stack_lvl", "kfree", "foo_close"]);
    assert!(found.stack.frames[1].guess);
}

#[test]
fn all_of_a_report_is_read() {
    let reports = parse(REPORT.as_bytes());
    assert_eq!(reports.len(), 1);
    assert_whole(&reports[0]);
    assert_eq!(reports[0].lines, (2, 22));
    assert_eq!(slub(&reports[0]).shape(), Shape::Plain);
}

#[test]
fn two_processors_that_print_at_once_are_told_apart() {
    let other = REPORT.replace("kmalloc-16", "dentry");
    let mut text = String::new();
    for (ours, theirs) in REPORT.lines().zip(other.lines()) {
        writeln!(text, "[    1.000000][  T41] {ours}").unwrap();
        writeln!(text, "[    1.000000][   C0] {theirs}").unwrap();
    }
    let reports = parse(text.as_bytes());
    assert_eq!(reports.len(), 2);
    assert_whole(&reports[0]);
    assert_eq!(slub(&reports[1]).cache.as_deref(), Some("dentry"));
    assert_eq!(slub(&reports[1]).rows.len(), 3);
    assert_eq!(reports[1].caller.as_deref(), Some("C0"));
}

#[test]
fn other_messages_between_the_lines_are_passed_over() {
    let mut text = String::new();
    for (number, line) in REPORT.lines().enumerate() {
        writeln!(text, "{line}\nusb 1-1: new device {number}").unwrap();
    }
    assert_whole(&parse(text.as_bytes())[0]);
}

#[test]
fn a_report_without_its_head_is_still_one() {
    let from = REPORT.find("Slab 0x").unwrap();
    let reports = parse(&REPORT.as_bytes()[from..]);
    assert_eq!(reports.len(), 1);
    let slub = slub(&reports[0]);
    assert_eq!((slub.reason.as_deref(), slub.rows.len()), (None, 3));
    assert_eq!(
        slub.cache.as_deref(),
        Some("kmalloc-16"),
        "the repair names it"
    );
}

/// Since 6.15 the damaged part comes before the banner, and further parts of
/// one object come after the report without a banner.
#[test]
fn parts_in_brackets_go_to_the_report_before_or_after() {
    let part = |what: &str| {
        format!("[{what} overwritten] 0x10-0x17 @offset=8. First byte 0xbb instead of 0xcc\n")
    };
    let body = REPORT.replace("Right Redzone overwritten", "Object corrupt");
    let (head, rest) = body.split_once("0xffff888004fd59a8-").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    let report = format!("{}{head}{rest}", part("Left Redzone"));
    let text = format!(
        "{report}{}FIX kmalloc-16: Restoring x\n{report}",
        part("Right Redzone")
    );
    let reports = parse(text.as_bytes());
    assert_eq!(reports.len(), 2);
    let parts = |r: &Report| -> Vec<String> {
        slub(r)
            .overwritten
            .iter()
            .filter_map(|o| o.what.clone())
            .collect()
    };
    assert_eq!(parts(&reports[0]), ["Left Redzone", "Right Redzone"]);
    assert_eq!(parts(&reports[1]), ["Left Redzone"]);
    assert_eq!(slub(&reports[1]).shape(), Shape::Bracket);
    assert!(
        reports[0].lines.1 < reports[1].lines.0,
        "{:?}",
        reports[1].lines
    );
}

#[test]
fn wrapped_lines_are_one_line() {
    for width in [40, 60, 72, 80] {
        let mut text = String::new();
        for line in REPORT.lines() {
            let mut column = 0;
            for word in line.split_inclusive(' ') {
                if column + word.trim_end().len() > width && column > 0 {
                    text.truncate(text.trim_end_matches(' ').len());
                    text.push('\n');
                    column = 0;
                }
                text += word;
                column += word.len();
            }
            text.push('\n');
        }
        let reports = parse(text.as_bytes());
        assert_eq!(reports.len(), 1, "{width}");
        assert_whole(&reports[0]);
    }
}

/// The end of a block may fall anywhere.
#[test]
fn blocks_of_any_size_give_the_same() {
    struct Slow<'a>(&'a [u8], usize);
    impl std::io::Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let len = into.len().min(self.1);
            self.0.read(&mut into[..len])
        }
    }
    let noise = "[    0.000000] some other line of a log\n".repeat(400);
    let text = format!("{noise}{REPORT}{noise}{REPORT}");
    let whole = parse(text.as_bytes());
    assert_eq!(whole.len(), 2);
    assert_eq!(whole[1].lines.0, 400 + 22 + 400 + 2);
    for size in [1, 7, 100, 5000] {
        let slow: Vec<_> = Scanner::new(Slow(text.as_bytes(), size))
            .map(Result::unwrap)
            .collect();
        assert!(slow == whole, "{size}");
    }
    let mut scanner = Scanner::new(text.as_bytes());
    assert_eq!(scanner.by_ref().count(), 2);
    assert_eq!(scanner.lines(), 400 + 22 + 400 + 22);
}

#[test]
fn a_line_without_end_is_cut_and_costs_nothing() {
    let long = "BUG x".repeat(1 << 20);
    let text = format!("{long}\n{REPORT}{long}");
    let reports = parse(text.as_bytes());
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].lines.0, 3);
}

#[test]
fn what_only_looks_like_a_report_is_none() {
    for text in [
        "BUG: unable to handle page fault for address: 0000000000000010",
        "BUG: soft lockup - CPU#3 stuck for 22s!",
        "BUG foo: this is a comment",
        "FIX me: later",
        "SLUB: HWalign=64, Order=0-3, MinObjects=0, CPUs=4, Nodes=2",
        "SLUB allocator is in use",
        "kmem_cache_destroy was called",
        "kmem_cache_free(x) is a function",
        "usercopy: Kernel memory exposure attempt detected from vmalloc (offset 1, size 2)!",
        "usercopy: kernel memory overwrite attempt detected to ffff8801 (<process stack>) (128 bytes)",
        "the slab info: none",
        "Slab:             511700 kB",
    ] {
        assert_eq!(parse(text.as_bytes()), [], "{text}");
    }
}

/// Other warnings and oopses follow a report; they are not its stack, and do
/// not keep it from ending.
#[test]
fn later_traces_are_not_the_reports() {
    let other =
        "CPU: 7 PID: 99 Comm: other Not tainted 6.6.0 #1\nCall Trace:\n other_one+0x1/0x2\n";
    let text = format!("{REPORT}{}", other.repeat(300));
    let reports = parse(text.as_bytes());
    assert_eq!(reports.len(), 1);
    assert_whole(&reports[0]);
    assert_eq!(reports[0].lines, (2, 22));
}
