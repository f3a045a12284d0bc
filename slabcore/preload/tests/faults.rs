//! Planted faults with `SLABCORE_DEBUG=FZPU`: each is reported, with the stacks of who did what.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use support::{FULL, POLICIES, program, run};

/// What is planted, what the report says, and the functions that it must name, in this order.
const FAULTS: [(&str, &str, &[&str]); 12] = [
    (
        "overflow",
        "[Right Redzone overwritten]",
        &["Allocated in allocating+", "freeing+"],
    ),
    (
        "underflow",
        "[Left Redzone overwritten]",
        &["Allocated in allocating+", "freeing+"],
    ),
    (
        "overflow-slack",
        "[kmalloc Redzone overwritten]",
        &["Allocated in allocating+", "freeing+"],
    ),
    (
        "overflow-realloc",
        "overwritten]",
        &["Allocated in allocating+", "resizing+"],
    ),
    (
        "after-free",
        "[Poison overwritten]",
        &["Allocated in allocating+", "Freed in freeing+"],
    ),
    (
        "double-free",
        "Object already free",
        &[
            "Allocated in allocating+",
            "Freed in freeing+",
            "Call Trace:",
            "freeing_again+",
        ],
    ),
    (
        "interior",
        "Invalid object pointer 0x",
        &["Call Trace:", "freeing+"],
    ),
    (
        "foreign",
        "No slab cache for object 0x",
        &["Call Trace:", "freeing+"],
    ),
    (
        "large-interior",
        "No slab cache for object 0x",
        &["Call Trace:", "freeing+"],
    ),
    (
        "realloc-interior",
        "Invalid object pointer 0x",
        &["Call Trace:", "resizing+"],
    ),
    (
        "realloc-freed",
        "Object already free",
        &[
            "Allocated in allocating+",
            "Freed in freeing+",
            "Call Trace:",
            "resizing+",
        ],
    ),
    (
        "realloc-foreign",
        "No slab cache for object 0x",
        &["Call Trace:", "resizing+"],
    ),
];

/// Asserts that a text has all words, one behind the other.
fn in_order(text: &str, words: &[&str], about: &str) {
    let mut rest = text;
    for word in words {
        let Some((_, after)) = rest.split_once(word) else {
            panic!("{about}: no {word:?} in\n{rest}\nof\n{text}");
        };
        rest = after;
    }
}

#[test]
fn each_is_reported_and_the_program_goes_on() {
    for (fault, what, functions) in FAULTS {
        let ran = run(Command::new(program("faults")).arg(fault), &[FULL]);
        assert!(ran.status.success(), "{fault}: {ran:?}");
        assert_eq!(ran.out, "still here\n", "{fault}");
        assert!(ran.err.contains(what), "{fault}: {}", ran.err);
        assert_eq!(ran.err.matches("\nBUG ").count(), 1, "{fault}: {}", ran.err);
        in_order(&ran.err, functions, fault);
        // The allocator's own functions are not who did it.
        for name in [" malloc+", " free+", " realloc+", "libslabcore_preload"] {
            assert!(!ran.err.contains(name), "{fault}: {}", ran.err);
        }
    }
}

#[test]
fn each_is_reported_with_every_policy() {
    for policy in POLICIES {
        for fault in ["overflow", "double-free", "after-free"] {
            let (_, what, functions) = FAULTS.into_iter().find(|it| it.0 == fault).unwrap();
            let ran = run(
                Command::new(program("faults")).arg(fault),
                &[FULL, ("SLABCORE_POLICY", policy)],
            );
            assert!(
                ran.status.success() && ran.err.contains(what),
                "{policy} {ran:?}"
            );
            in_order(&ran.err, functions, fault);
        }
    }
}

#[test]
fn without_a_fault_or_without_debugging_nothing_is_said() {
    for (fault, variables) in [("none", &[FULL][..]), ("none", &[]), ("foreign", &[])] {
        let ran = run(Command::new(program("faults")).arg(fault), variables);
        assert_eq!(
            (ran.out.as_str(), ran.err.as_str()),
            ("still here\n", ""),
            "{fault}"
        );
    }
}

#[test]
fn a_program_can_be_ended_by_a_fault() {
    for fault in ["overflow", "double-free", "foreign"] {
        let variables = [FULL, ("SLABCORE_ON_FAULT", "abort")];
        let ran = run(Command::new(program("faults")).arg(fault), &variables);
        assert_eq!(ran.status.signal(), Some(libc::SIGABRT), "{ran:?}");
        assert!(ran.out.is_empty() && ran.err.contains("\nBUG "), "{ran:?}");
    }
}

#[test]
fn sampling_finds_an_overflow_where_it_happens() {
    let variables = [("SLABCORE_SAMPLE", "1")];
    let ran = run(
        Command::new(program("faults")).arg("double-free"),
        &variables,
    );
    assert!(
        ran.err
            .contains("BUG: KFENCE: invalid free in freeing_again+"),
        "{ran:?}"
    );
    let ran = run(
        Command::new(program("faults")).arg("after-free"),
        &variables,
    );
    assert!(!ran.status.success());
    assert!(
        ran.err
            .contains("BUG: KFENCE: use-after-free write in main+"),
        "{ran:?}"
    );
    in_order(
        &ran.err,
        &["allocated by", "allocating+", "freed by", "freeing+"],
        "after-free",
    );
}

/// Only the classes that are named are debugged.
#[test]
fn classes_can_be_chosen() {
    for (flags, reports) in [
        ("FZPU,kmalloc-48", 1),
        ("FZ,kmalloc-4*", 1),
        ("FZPU,kmalloc-64", 0),
        ("-", 0),
        ("", 1),
    ] {
        let ran = run(
            Command::new(program("faults")).arg("overflow"),
            &[("SLABCORE_DEBUG", flags)],
        );
        assert_eq!(
            ran.err.matches("BUG kmalloc-48").count(),
            reports,
            "{flags:?} {}",
            ran.err
        );
    }
}
