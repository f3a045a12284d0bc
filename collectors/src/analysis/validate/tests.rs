//! Validations replayed from real logs, and the false alarms of old kernels.

use std::io::Read as _;

use super::*;
use crate::parse::kernel_log::Scanner;

/// What was logged from the line `=== slabbug: TITLE` to the next such line.
fn section(log: &str, title: &str) -> String {
    let path = format!("{}/tests/data/log/{log}.txt.xz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    liblzma::read::XzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    let title = format!("=== slabbug: {title}");
    let mut lines = text.lines().skip_while(|line| !line.ends_with(&title));
    assert!(lines.next().is_some(), "{log} has no {title:?}");
    let lines: Vec<_> = lines.take_while(|line| !line.contains("] === ")).collect();
    lines.join("\n")
}

fn look(text: &str) -> Look {
    Look {
        answer: Validated::Done,
        reports: Scanner::new(text.as_bytes()).map(Result::unwrap).collect(),
        incomplete: None,
    }
}

fn examination(name: &str, kernel: &str) -> Examination {
    Examination::new(vec![name.to_owned()], Some(kernel), Some(4))
}

const KERNELS: [(&str, &str); 3] = [
    ("planted-6.1", "6.1.0-57-cloud-amd64"),
    ("planted-6.12", "6.12.117+deb12-cloud-amd64"),
    ("planted-7.3", "7.3.4+deb13-cloud-amd64"),
];

#[test]
fn planted_faults_are_told_with_their_cache_once_and_then_the_cache_is_clean() {
    for (log, kernel) in KERNELS {
        for (fault, code) in [
            ("overflow", "overflow"),
            ("underflow", "underflow"),
            ("uaf-first", "use-after-free"),
            ("uaf-mid", "use-after-free"),
        ] {
            let name = format!("sb-{fault}");
            let mut seen = examination(&name, kernel);
            assert!(seen.add(&look(&section(log, &format!("{fault} validate")))));
            assert!(!seen.add(&look(&section(log, &format!("{fault} validate again")))));
            assert_eq!(seen.verdict(), Verdict::Faults);
            assert_eq!((seen.passes, seen.elsewhere.len()), (2, 0), "{log}");
            let [one] = &seen.faults[..] else {
                panic!("{log} {fault}: {:#?}", seen.faults)
            };
            assert_eq!((&one.cache, one.code), (&name, code), "{log}");
            assert!(one.offset.is_some(), "{log} {fault}");
            assert_eq!((one.by_validation, one.pass), (Some(true), 1));
            assert!(one.node.is_some_and(|n| n < 2), "{log} {fault}");
            assert_eq!(one.repairs.len(), 1, "{log} {fault}");
            assert_eq!(one.false_positive, None);
            assert!(!one.message.contains(&name), "{}", one.message);
        }
        let mut healthy = examination("sb-healthy", kernel);
        assert!(!healthy.add(&look(&section(log, "healthy validate"))));
        assert_eq!((healthy.verdict(), healthy.passes), (Verdict::Clean, 1));
    }
}

#[test]
fn a_second_fault_that_has_only_its_bracket_line_is_one_more_fault_of_the_cache() {
    let mut seen = examination("sb-freeptr", "6.12.117");
    let again = seen.add(&look(&section("planted-6.12", "freeptr validate")));
    assert!(again);
    let list: Vec<_> = seen
        .faults
        .iter()
        .map(|f| (f.reason.as_deref().unwrap(), f.offset, f.follows))
        .collect();
    let expected = [
        ("Freechain corrupt", Some(160), false),
        (
            "Wrong object count. Counter is 10 but counted were 24",
            None,
            true,
        ),
        ("Object corrupt", Some(160), true),
        ("Right Redzone overwritten", Some(232), true),
    ];
    let reasons = |list: &[(&str, Option<u64>, bool)]| -> Vec<_> {
        list.iter().map(|(r, _, f)| ((*r).to_owned(), *f)).collect()
    };
    assert_eq!(reasons(&list), reasons(&expected));
    assert_eq!((list[2].1, list[3].1), (Some(160), Some(232)));
    assert!(seen.faults.iter().all(|f| f.cache == "sb-freeptr"));
    // The next objects behind the cut are consequences: looking on is of no use.
    assert!(!seen.add(&look(&section("planted-6.12", "freeptr validate again"))));
    assert_eq!(seen.verdict(), Verdict::Faults);
    assert!(seen.faults.iter().all(|f| f.false_positive.is_none()));
}

#[test]
fn counts_of_slabs_follow_from_a_damaged_list_and_from_nothing_else() {
    let counts = "SLUB: sb-freeptr 1 slabs counted but counter=2\n";
    let mut seen = examination("sb-freeptr", "6.12.117");
    seen.add(&look(
        &(section("planted-6.12", "freeptr validate") + "\n" + counts),
    ));
    let last = seen.faults.last().unwrap();
    assert_eq!((last.code, last.follows), ("counters", true), "{last:?}");
    let mut alone = examination("sb-freeptr", "6.12.117");
    alone.add(&look(counts));
    assert!(!alone.faults[0].follows);
}

#[test]
fn what_was_reported_of_other_caches_is_kept_apart() {
    let text = section("planted-6.12", "overflow validate");
    let mut seen = examination("dentry", "6.12.117");
    assert!(!seen.add(&look(&text)));
    assert_eq!((seen.verdict(), seen.faults.len()), (Verdict::Clean, 0));
    assert_eq!(seen.elsewhere[0].cache, "sb-overflow");
    let mut seen = examination("dentry", "6.12.117");
    seen.add(&look("usercopy: Kernel memory exposure attempt detected from SLUB object 'x' (offset 1, size 9)!\n"));
    assert_eq!((seen.others, seen.verdict()), (1, Verdict::Clean));
}

#[test]
fn a_log_with_gaps_is_never_a_clean_bill() {
    let mut gap = look("");
    gap.incomplete = Some("lines were lost".to_owned());
    let mut seen = examination("dentry", "6.12.117");
    seen.add(&gap);
    assert_eq!(
        seen.verdict(),
        Verdict::Unknown("lines were lost".to_owned())
    );
    // Nor when a later look is whole.
    seen.add(&look(""));
    assert!(matches!(seen.verdict(), Verdict::Unknown(_)));
    let mut refused = examination("dentry", "6.12.117");
    let answer = Validated::NotDebugged;
    assert!(!refused.add(&Look { answer, ..look("") }));
    assert_eq!((refused.verdict(), refused.passes), (Verdict::Refused, 0));
    assert!(matches!(
        examination("dentry", "6.12.117").verdict(),
        Verdict::Unknown(_)
    ));
}

/// A red zone report as 5.10 prints it.
fn zone(slab: u64, offset: u64, found: &str, expected: &str) -> String {
    let row = [found; 8].join(" ");
    format!(
        "[    7.1] =============================================================================\n\
         [    7.1] BUG filp (Not tainted): Right Redzone overwritten\n\
         [    7.1] -----------------------------------------------------------------------------\n\
         [    7.1] INFO: 0x000000001b3c2f00-0x000000001b3c2f07 @offset={offset}. First byte 0x{found} instead of 0x{expected}\n\
         [    7.1] INFO: Slab 0x00000000{slab:08x} objects=21 used=20 fp=0x0000000000000000 flags=0x200\n\
         [    7.1] INFO: Object 0x000000001b3c2e00 @offset={} fp=0x0000000000000000\n\
         [    7.1] Redzone  000000001b3c2f00: {row}                          ........\n\
         [    7.1]  check_object+0x1/0x2\n[    7.1]  validate_slab+0xfa/0x130\n\
         [    7.1] FIX filp: Restoring Right Redzone 0x000000001b3c2f00-0x000000001b3c2f07=0x{expected}\n",
        offset - 256
    )
}

fn count(counter: u64, found: u64) -> String {
    format!(
        "[    7.1] BUG filp (Not tainted): Wrong object count. Counter is {counter} but counted were {found}\n\
         [    7.1] INFO: Slab 0x0000000077777777 objects=21 used=20 fp=0x0000000000000000 flags=0x200\n\
         [    7.1]  validate_slab+0xfa/0x130\n[    7.1] FIX filp: Object count adjusted.\n"
    )
}

fn replay(kernel: &str, looks: &[String]) -> Examination {
    let mut seen = examination("filp", kernel);
    for (number, text) in looks.iter().enumerate() {
        let again = seen.add(&look(text));
        if number + 1 < looks.len() {
            assert!(again, "look {number} of {kernel}");
        }
    }
    seen.verdict();
    seen
}

#[test]
fn the_pair_of_marks_of_2022_is_likely_false_before_the_fix() {
    let pair = [
        zone(1, 512, "bb", "cc"),
        zone(1, 512, "cc", "bb"),
        String::new(),
    ];
    let seen = replay("5.10.0-30-amd64", &pair);
    assert_eq!((seen.faults.len(), seen.passes), (2, 3));
    for fault in &seen.faults {
        let why = fault.false_positive.as_deref().unwrap();
        assert!(why.contains("before Linux 6.1"), "{why}");
        assert!(why.ends_with("the last validation found nothing"), "{why}");
    }
    let counts = [count(12, 13), String::new()];
    let seen = replay("6.0.19", &counts);
    assert!(seen.faults[0].false_positive.is_some());
    let slabs = [
        "SLUB: filp 7 slabs counted but counter=8\n".to_owned(),
        String::new(),
    ];
    let seen = replay("4.19.0", &slabs);
    assert!(seen.faults[0].false_positive.is_some());
}

#[test]
fn what_only_looks_like_it_stays_a_fault() {
    let mark = || zone(1, 512, "bb", "cc");
    let overflow = zone(2, 900, "12", "cc");
    for (kernel, looks, why) in [
        ("6.1.0", vec![mark(), String::new()], "the fix is in"),
        ("custom", vec![mark(), String::new()], "an unknown version"),
        (
            "5.10.0",
            vec![mark() + &overflow, String::new()],
            "a real fault beside it",
        ),
        ("5.10.0", vec![mark(), mark()], "it comes back"),
        ("5.10.0", vec![count(3, 13)], "more than frees under way"),
        (
            "5.10.0",
            vec![mark().replacen("bb bb bb bb bb", "bb bb bb 41 41", 1)],
            "not the mark all along",
        ),
    ] {
        let seen = replay(kernel, &looks);
        assert!(
            seen.faults.iter().all(|f| f.false_positive.is_none()),
            "{why}: {:#?}",
            seen.faults
        );
    }
}

#[test]
fn looking_again_ends() {
    let mut seen = examination("filp", "6.12.0");
    let mut passes = 0;
    while seen.add(&look(&zone(passes, 512, "12", "cc"))) {
        passes += 1;
    }
    assert_eq!((seen.passes, seen.faults.len()), (MAX_PASSES, 5));
}

/// What a validation of a healthy machine with red zones prints on Linux 7.3.
const EARLY: &str = include_str!("../../../tests/data/log/early-node-7.3.txt");

#[test]
fn the_first_object_of_kmem_cache_node_is_a_false_alarm_that_does_not_come_back() {
    let mut seen = examination("kmem_cache_node", "7.3.4");
    assert!(seen.add(&look(EARLY)), "it is looked at again");
    assert!(!seen.add(&look("")));
    assert_eq!(seen.verdict(), Verdict::Faults);
    let why = seen.faults[0].false_positive.as_deref().unwrap();
    assert!(why.contains("at boot"), "{why}");
    // One that comes back is none, nor one of another cache, object or state.
    let mut again = examination("kmem_cache_node", "7.3.4");
    again.add(&look(EARLY));
    again.add(&look(EARLY));
    assert_eq!(again.verdict(), Verdict::Faults);
    assert_eq!(again.faults[0].false_positive, None);
    for (from, to) in [
        ("kmem_cache_node", "kmalloc-64"),
        ("@offset=64", "@offset=320"),
        ("ffff8c05c1041080: cc", "ffff8c05c1041080: bb"),
    ] {
        let other = EARLY.replace(from, to);
        assert_ne!(other, EARLY);
        let mut seen = examination("kmem_cache_node", "7.3.4");
        seen.add(&look(&other));
        seen.add(&look(""));
        seen.verdict();
        let all = seen.faults.iter().chain(&seen.elsewhere);
        for fault in all {
            assert_eq!(fault.false_positive, None, "{to}");
        }
    }
}

#[test]
fn explain_says_that_the_object_is_in_use_and_what_it_likely_is() {
    let report = Scanner::new(EARLY.as_bytes()).next().unwrap().unwrap();
    let finding = explain_report(&report);
    assert!(
        finding.headline.contains("an object in use"),
        "{}",
        finding.headline
    );
    let said = format!("{:?}", finding.conclusions);
    assert!(said.contains("A false alarm"), "{said}");
    let other = EARLY.replace("kmem_cache_node", "kmalloc-64");
    let report = Scanner::new(other.as_bytes()).next().unwrap().unwrap();
    let said = format!("{:?}", explain_report(&report).conclusions);
    assert!(!said.contains("false alarm"), "{said}");
}
