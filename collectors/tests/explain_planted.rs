//! Logs of real kernels in which each fault was planted once, and of kernels
//! without a fault; and the reports of this project's own engine.

#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

use std::io::Read as _;

use collectors::analysis::explain::finding::{Operation, Part};
use collectors::analysis::explain::{Class, Explanation, Finding, explain};
use collectors::parse::kernel_log;
use collectors::source::packing;

macro_rules! log {
    ($name:literal) => {
        unpacked(include_bytes!(concat!("data/log/", $name, ".txt.xz")))
    };
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    packing::unpack(packed)
        .unwrap()
        .read_to_end(&mut text)
        .unwrap();
    text
}

fn read(text: &[u8]) -> Explanation {
    explain(&kernel_log::parse(text))
}

/// The first finding of a cache: the fault that was planted in it.
fn fault<'a>(found: &'a Explanation, cache: &str) -> &'a Finding {
    let of = |f: &&Finding| f.cache.as_ref().is_some_and(|c| c.name == cache);
    found.findings.iter().find(of).unwrap()
}

const CLASSES: &[(&str, Class)] = &[
    ("sb-overflow", Class::Overflow),
    ("sb-underflow", Class::Underflow),
    ("sb-uaf-first", Class::UseAfterFree),
    ("sb-uaf-mid", Class::UseAfterFree),
    ("sb-freeptr", Class::Freelist),
    ("sb-overflowx", Class::Overflow),
    ("sb-underflowx", Class::Underflow),
    ("sb-double-free", Class::DoubleFree),
    ("sb-bad-free", Class::InvalidFree),
    ("sb-leak", Class::Leak),
];

/// What was planted is what is found, whatever the version.
fn check_planted(text: &[u8]) -> Explanation {
    let found = read(text);
    for (cache, class) in CLASSES {
        assert_eq!(fault(&found, cache).class, *class, "{cache}");
    }
    for (cache, part, offset, bytes, expected) in [
        (
            "sb-overflow",
            Part::RightRedzone,
            64,
            &[0x12, 0x34][..],
            0xcc,
        ),
        ("sb-overflowx", Part::RightRedzone, 64, &[0x12, 0x34], 0xcc),
        ("sb-underflow", Part::LeftRedzone, -1, &[0x56], 0xcc),
        ("sb-underflowx", Part::LeftRedzone, -1, &[0x56], 0xcc),
        ("sb-uaf-first", Part::Poison, 0, &[0x78], 0x6b),
        ("sb-uaf-mid", Part::Poison, 37, &[0x9a], 0x6b),
    ] {
        let finding = fault(&found, cache);
        assert_eq!(finding.object.as_ref().unwrap().size, Some(64), "{cache}");
        let damage = finding.damage().unwrap();
        assert_eq!(damage.part, part, "{cache}");
        assert_eq!(damage.offset_in_object, Some(offset), "{cache}");
        assert_eq!(damage.len, Some(bytes.len() as u64), "{cache}");
        assert_eq!(
            (&*damage.found, damage.expected),
            (bytes, Some(expected)),
            "{cache}"
        );
    }
    let first = found.findings.iter().filter(|f| f.consequence_of.is_none());
    let damaged = first.filter(|f| f.class != Class::Leak && f.class != Class::WrongCache);
    assert_eq!(
        damaged.count(),
        CLASSES.len() - 1,
        "each fault once, and nothing else"
    );
    found
}

#[test]
fn each_planted_fault_is_recovered_on_every_kernel() {
    for text in [
        log!("planted-6.1"),
        log!("planted-6.12"),
        log!("planted-7.3"),
        log!("planted-6.12-plain-addresses"),
    ] {
        let found = check_planted(&text);
        let wrong = fault(&found, "sb-wrong-cache");
        assert_eq!(wrong.class, Class::WrongCache);
        assert!(wrong.headline.contains("kmalloc-64"), "{}", wrong.headline);
        let double = fault(&found, "sb-double-free");
        assert!(
            double.headline.contains("both times by slabbug_free_one"),
            "{}",
            double.headline
        );
        assert_eq!(
            fault(&found, "sb-overflow").operation,
            Some(Operation::Validate)
        );
        assert_eq!(
            fault(&found, "sb-overflowx").operation,
            Some(Operation::Free)
        );
        let leak = fault(&found, "sb-leak");
        assert!(
            leak.left[0]
                .symbol
                .as_ref()
                .unwrap()
                .starts_with("slabbug_alloc_one")
        );
        assert!(
            found.notes.is_empty(),
            "the first report comes before any damage"
        );
    }
}

#[test]
fn a_console_that_passes_over_stacks_tells_the_same() {
    check_planted(&log!("planted-6.1-console"));
}

/// What the kernel says after a repair follows from the first fault.
#[test]
fn what_follows_is_told_from_what_came_first() {
    for text in [log!("planted-6.1"), log!("planted-7.3")] {
        let found = read(&text);
        let at = |cache: &str| {
            let of = |f: &Finding| f.cache.as_ref().is_some_and(|c| c.name == cache);
            found.findings.iter().position(of).unwrap()
        };
        for cache in ["sb-freeptr", "sb-overflowx", "sb-underflowx"] {
            let root = at(cache);
            let rest = found.findings[root + 1..].iter();
            let of_cache: Vec<_> = rest
                .filter(|f| f.cache == found.findings[root].cache)
                .collect();
            assert!(of_cache.len() >= 2, "{cache}");
            assert!(
                of_cache.iter().all(|f| f.consequence_of == Some(root)),
                "{cache}"
            );
        }
        // Its object was repaired and not lost: that it was left is the module's own doing.
        let left = found.findings.iter().filter(|f| f.class == Class::Leak);
        let own = left.filter(|f| f.consequence_of.is_none()).count();
        assert_eq!(own, 3, "sb-leak, sb-overflow, sb-underflow");
    }
}

#[test]
fn plain_addresses_are_shown_and_hashed_ones_are_not() {
    let address = |text: &[u8]| {
        fault(&read(text), "sb-overflow")
            .object
            .as_ref()
            .unwrap()
            .address
    };
    assert_eq!(
        address(&log!("planted-6.12-plain-addresses")),
        Some(0xffff_8880_04fd_5968)
    );
    assert_eq!(address(&log!("planted-7.3")), None);
}

/// Findings of a cache in a log that has the same fault of three kernels.
fn of_three<'a>(found: &'a Explanation, cache: &str) -> Vec<&'a Finding> {
    let of = |f: &&Finding| f.cache.as_ref().is_some_and(|c| c.name == cache);
    let list: Vec<_> = found.findings.iter().filter(of).collect();
    assert_eq!(list.iter().map(|f| f.repeats).sum::<u64>(), 3, "{cache}");
    list
}

#[test]
fn one_bit_is_told_from_other_writes_on_every_kernel() {
    for finding in of_three(&read(&log!("planted-later")), "v-bit-flip") {
        assert_eq!(finding.class, Class::BitFlip);
        let damage = finding.damage().unwrap();
        assert_eq!(
            (damage.part, damage.offset_in_object),
            (Part::Poison, Some(37))
        );
        assert_eq!((damage.len, &*damage.found), (Some(1), &[0x7b][..]));
        assert_eq!(finding.operation, Some(Operation::Validate));
        assert!(finding.freed.is_some());
    }
}

/// Alone in its slab, an object that is freed twice is not called free by the
/// kernel: the slab has less in use than is to be freed.
#[test]
fn a_slab_with_less_in_use_than_is_freed_tells_a_double_free() {
    let text = String::from_utf8(log!("planted-later")).unwrap();
    for (used, freed, class) in [
        (0, 1, Class::DoubleFree),
        (0, 2, Class::Freelist),
        (3, 8, Class::Freelist),
    ] {
        let reason = format!("Slab has {used} allocated objects but {freed} are to be freed");
        let other = text.replace(
            "Slab has 0 allocated objects but 1 are to be freed",
            &reason,
        );
        assert!(other.contains(&reason));
        for finding in of_three(&read(other.as_bytes()), "f-double-alone") {
            assert_eq!(finding.class, class, "{reason}");
            assert_eq!(finding.operation, Some(Operation::Free));
            assert_eq!(class == Class::DoubleFree, !finding.unknown.is_empty());
        }
    }
}

#[test]
fn kernels_without_a_fault_have_no_report() {
    let text = log!("boots-of-14-kernels");
    assert!(text.len() > 200_000);
    assert_eq!(read(&text), Explanation::default());
}

/// The engine of this project prints the same form.
#[test]
fn the_engines_reports_are_read() {
    for (text, class) in [
        (
            include_str!("../../slabcore/tests/data/report-6.12-overflow.txt"),
            Class::Overflow,
        ),
        (
            include_str!("../../slabcore/tests/data/report-6.12-underflow.txt"),
            Class::Underflow,
        ),
        (
            include_str!("../../slabcore/tests/data/report-6.12-use-after-free.txt"),
            Class::UseAfterFree,
        ),
        (
            include_str!("../../slabcore/tests/data/report-6.12-double-free.txt"),
            Class::DoubleFree,
        ),
        (
            include_str!("../../slabcore/tests/data/report-6.12-bad-free.txt"),
            Class::InvalidFree,
        ),
        (
            include_str!("../../slabcore/tests/data/report-6.12-freeptr.txt"),
            Class::Freelist,
        ),
        (
            include_str!("../../slabcore/tests/data/report-6.12-leak.txt"),
            Class::Leak,
        ),
    ] {
        let found = read(text.as_bytes());
        assert_eq!(found.findings[0].class, class);
        assert!(
            found.findings[1..]
                .iter()
                .all(|f| f.consequence_of == Some(0))
        );
        if class != Class::InvalidFree {
            assert!(found.findings[0].allocated.is_some());
        }
    }
}
