//! Tests of page runs: apart, aligned, bounded, given back.

use super::*;

fn pages(limit: u64, decommit: Decommit) -> Pages {
    Pages::new(64 << 20, limit, decommit).unwrap()
}

fn free(pages: &Pages, page: u32) {
    // SAFETY: the tests free each run once and do not use it afterwards.
    unsafe { pages.free(page, || ()) };
}

#[test]
fn runs_are_aligned_apart_and_reused() {
    let pages = pages(u64::MAX, Decommit::Immediate);
    let mut seen = std::collections::BTreeSet::new();
    let mut runs = vec![];
    for order in [0, 3, 0, 5, 9, 1, 10, 0] {
        let run = pages.alloc(order, state::LARGE, |_| ()).unwrap();
        assert_eq!(run.page % (1 << order), 0);
        assert!(run.page != NIL && run.clean);
        assert!((run.page..run.page + (1 << order)).all(|p| seen.insert(p)));
        runs.push(run.page);
    }
    let frontier = pages.frontier();
    for _ in 0..100 {
        runs.drain(..).for_each(|page| free(&pages, page));
        for order in [10, 9, 5, 3, 1, 0, 0, 0] {
            runs.push(pages.alloc(order, state::LARGE, |_| ()).unwrap().page);
        }
    }
    assert_eq!(pages.frontier(), frontier, "nothing leaks");
    // SAFETY: nothing of the range is used any more.
    unsafe { pages.release() };
}

#[test]
fn the_limit_is_a_clean_counted_failure() {
    let pages = pages(3 * PAGE as u64, Decommit::Immediate);
    let one = pages.alloc(1, state::LARGE, |_| ()).unwrap();
    assert_eq!(pages.alloc(1, state::LARGE, |_| ()), None);
    assert!(pages.alloc(0, state::LARGE, |_| ()).is_some());
    assert_eq!(pages.alloc(60, state::LARGE, |_| ()), None);
    assert_eq!(pages.failed(), 2);
    free(&pages, one.page);
    assert!(pages.alloc(1, state::LARGE, |_| ()).is_some());
    // SAFETY: nothing of the range is used any more.
    unsafe { pages.release() };
}

#[test]
fn a_used_up_range_fails_and_recovers() {
    let pages = pages(u64::MAX, Decommit::AfterMs(u64::MAX));
    let runs: Vec<_> = std::iter::from_fn(|| pages.alloc(8, state::LARGE, |_| ())).collect();
    assert_eq!(runs.len(), (64 - 2), "all but the first 2 MiB, in MiB");
    for run in &runs {
        free(&pages, run.page);
    }
    assert_eq!(pages.bytes()[1], 0);
    assert!(pages.alloc(12, state::LARGE, |_| ()).is_some());
    // SAFETY: nothing of the range is used any more.
    unsafe { pages.release() };
}

#[test]
fn memory_goes_back_after_two_ticks_and_reads_as_zero() {
    let pages = pages(u64::MAX, Decommit::AfterMs(u64::MAX));
    let run = pages.alloc(2, state::LARGE, |_| ()).unwrap();
    let byte = pages.address(run.page) as *mut u8;
    // SAFETY: the run is this test's.
    unsafe { byte.write(7) };
    free(&pages, run.page);
    assert_eq!(pages.tick(), 0);
    assert!(pages.tick() >= 4);
    let run = pages.alloc(2, state::LARGE, |_| ()).unwrap();
    assert!(run.clean);
    // SAFETY: as above.
    assert_eq!(unsafe { (pages.address(run.page) as *const u8).read() }, 0);
    // SAFETY: nothing of the range is used any more.
    unsafe { pages.release() };
}
