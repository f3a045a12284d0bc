//! Words of the programs as counters, and the numbers that both sides share.

use super::*;

fn known(sheaves: Option<bool>) -> Known {
    Known {
        name: "filp".into(),
        index: 0,
        slabs: Some(10),
        sheaves,
    }
}

const fn told(era: Era) -> Told {
    Told {
        era,
        pages: true,
        slabs: true,
    }
}

fn words() -> [u64; WORDS] {
    let mut words = [0; WORDS];
    words[..9].copy_from_slice(&[70, 30, 50, 10, 7, 3, 5, 1, 4]);
    words
}

#[test]
fn words_of_programs_are_the_kernels_counters() {
    let list = counters(&words(), &known(None), Some(12), told(Era::CpuSlabs));
    let of = |id| list.total(id);
    assert_eq!(of(CounterId::AllocFastpath), Some(90));
    assert_eq!(of(CounterId::AllocSlowpath), Some(10));
    assert_eq!(of(CounterId::FreeFastpath), Some(54));
    assert_eq!(of(CounterId::FreeSlowpath), Some(6));
    assert_eq!(of(CounterId::FreeSlab), Some(4));
    // Two more than there were, and four came that are gone.
    assert_eq!(of(CounterId::AllocSlab), Some(6));
    assert_eq!(of(CounterId::AllocCpuSheaf), None);
}

#[test]
fn sheaves_count_apart_where_the_kernel_has_cpu_slabs_too() {
    let mixed = counters(&words(), &known(Some(true)), None, told(Era::Mixed));
    assert_eq!(mixed.total(CounterId::AllocCpuSheaf), Some(90));
    assert_eq!(mixed.total(CounterId::AllocFastpath), Some(0));
    assert_eq!(mixed.total(CounterId::AllocSlab), None, "not known");
    let later = counters(&words(), &known(Some(true)), None, told(Era::Sheaves));
    assert_eq!(later.total(CounterId::AllocFastpath), Some(90));
    assert_eq!(later.total(CounterId::AllocCpuSheaf), None);
}

#[test]
fn what_cannot_be_told_is_left_out() {
    let old = Told {
        slabs: false,
        ..told(Era::CpuSlabs)
    };
    let list = counters(&words(), &known(None), Some(12), old);
    assert_eq!(list.total(CounterId::FreeSlab), None);
    assert_eq!(list.total(CounterId::AllocSlab), None);
    let blind = Told {
        pages: false,
        ..told(Era::CpuSlabs)
    };
    let list = counters(&words(), &known(None), None, blind);
    assert_eq!(list.total(CounterId::FreeFastpath), None);
    assert_eq!(list.total(CounterId::AllocSlowpath), Some(10));
    // 7.0 and later have nothing fast but sheaves.
    let list = counters(&words(), &known(Some(false)), None, told(Era::Sheaves));
    assert_eq!(list.total(CounterId::AllocFastpath), Some(0));
    assert_eq!(list.total(CounterId::AllocSlowpath), Some(100));
    assert_eq!(list.total(CounterId::FreeSlowpath), Some(60));
}

#[test]
fn numbers_are_those_of_the_header() {
    let header = include_str!("../../../../bpf/slots.h");
    let enumerators = |name: &str| -> Vec<String> {
        let (_, rest) = header.split_once(&format!("enum {name} {{")).unwrap();
        let (body, _) = rest.split_once("};").unwrap();
        let lines = body
            .lines()
            .filter_map(|line| line.trim().split(',').next());
        lines.filter(|l| !l.is_empty()).map(str::to_owned).collect()
    };
    let counts = enumerators("count_word");
    assert_eq!(
        counts[..4].join(" "),
        "COUNT_ALLOC COUNT_KMALLOC COUNT_FREE COUNT_KFREE"
    );
    assert_eq!(
        (&*counts[SLOW], counts[5].contains("COUNT_SLOW + 4")),
        ("COUNT_SLOW", true)
    );
    assert!(counts[5].starts_with("COUNT_GONE") && SLOW + 4 == GONE);
    assert_eq!(counts.last().unwrap(), &format!("COUNT_WORDS = {WORDS}"));
    let here = enumerators("here_word");
    assert_eq!(here[ELSEWHERE], "HERE_ELSEWHERE");
    assert_eq!(here[2], "HERE_WORDS = HERE_ELSEWHERE + 4");
}

#[test]
fn what_the_kernel_missed_is_read_from_its_own_figure() {
    let text = "pos:\t0\nprog_type:\t17\nrecursion_misses:\t42\nverified_insns:\t9\n";
    assert_eq!(recursion(text), Some(42));
    assert_eq!(recursion("prog_type:\t17\n"), None);
}
