//! Tests of page runs: apart, aligned, bounded, given back.

use super::*;

fn pages(limit: u64, decommit: Decommit) -> Pages {
    Pages::new(64 << 20, limit, decommit, false).unwrap()
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
fn a_used_up_range_is_followed_by_others() {
    let pages = pages(200 << 20, Decommit::AfterMs(u64::MAX));
    let alloc = || pages.alloc(8, state::LARGE, |_| ());
    let runs: Vec<_> = std::iter::from_fn(alloc).collect();
    assert_eq!(
        (runs.len(), pages.failed()),
        (200, 1),
        "as the limit says, in MiB"
    );
    // 64, then as much as there was before: 64 and 128.
    assert_eq!((pages.nr_ranges(), pages.bytes()[0]), (3, 256 << 20));
    let mut places: Vec<_> = runs.iter().map(|run| pages.address(run.page)).collect();
    for (run, at) in runs.iter().zip(&places) {
        for offset in [0, PAGE, (1 << 20) - 1] {
            let page = pages.page_of(at + offset).unwrap();
            assert_eq!(pages.run_of(at + offset), (run.page, offset));
            assert_eq!(pages.head_entry(page).load(Relaxed), run.page);
            assert_eq!(pages.address(page), (at + offset) & !(PAGE - 1));
        }
    }
    places.sort_unstable();
    assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 1 << 20));
    let heads: std::collections::BTreeSet<_> = pages.heads().collect();
    assert_eq!(heads, runs.iter().map(|run| run.page).collect());
    for run in &runs {
        free(&pages, run.page);
    }
    assert_eq!((pages.bytes()[1], pages.heads().count()), (0, 0));
    assert!(
        runs.iter()
            .all(|run| pages.run_of(pages.address(run.page)).0 == NIL)
    );
    // Runs merge within a range only: more than one range holds is one more range.
    assert!(pages.alloc(14, state::LARGE, |_| ()).is_some());
    assert_eq!(pages.nr_ranges(), 3);
    // SAFETY: nothing of the ranges is used any more.
    unsafe { pages.release() };
}

#[test]
fn a_run_larger_than_all_ranges_gets_one_of_its_own() {
    let pages = pages(u64::MAX, Decommit::Immediate);
    let small = pages.alloc(0, state::LARGE, |_| ()).unwrap();
    let large = pages.alloc(17, state::LARGE, |_| ()).unwrap();
    assert_eq!(pages.run_bytes(large.page), 512 << 20);
    let next = pages.alloc(9, state::LARGE, |_| ()).unwrap();
    assert!(next.page < large.page, "the first range is used further");
    for run in [small, large, next] {
        free(&pages, run.page);
    }
    assert_eq!((pages.bytes()[1], pages.nr_ranges()), (0, 2));
    // SAFETY: nothing of the ranges is used any more.
    unsafe { pages.release() };
}

#[test]
fn addresses_of_no_range_are_foreign() {
    let pages = pages(u64::MAX, Decommit::Immediate);
    let local = 0;
    for address in [0, 1, PAGE, usize::MAX, std::ptr::from_ref(&local) as usize] {
        assert_eq!(
            (pages.page_of(address), pages.run_of(address).0),
            (None, NIL)
        );
    }
    let [first, end] = [pages.address(0), pages.address(0) + (64 << 20)];
    assert_eq!(pages.page_of(end), None);
    // Never made usable, but to be asked for.
    assert_eq!(
        (pages.page_of(first), pages.run_of(first).0),
        (Some(0), NIL)
    );
    assert_eq!(pages.run_of(end - 1).0, NIL);
    assert_eq!(pages.run_bytes(pages.page_of(end - 1).unwrap()), PAGE);
    // SAFETY: nothing of the range is used any more.
    unsafe { pages.release() };
}

/// Flags of the mapping that an address is in.
fn flags_of(address: usize) -> String {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut inside = false;
    for line in maps.lines() {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        if let Some((start, end)) = range
            && let Ok(start) = usize::from_str_radix(start, 16)
            && let Ok(end) = usize::from_str_radix(end, 16)
        {
            inside = (start..end).contains(&address);
        } else if inside && let Some(flags) = line.strip_prefix("VmFlags:") {
            return format!("{flags} ");
        }
    }
    panic!("no mapping at {address:#x}");
}

#[test]
fn huge_pages_fit_and_core_dumps_hold_what_is_used() {
    for huge in [false, true] {
        let pages = Pages::new(16 << 20, u64::MAX, Decommit::Immediate, huge).unwrap();
        for _ in 0..5 {
            // The first range holds three of them.
            let run = pages.alloc(10, state::LARGE, |_| ()).unwrap();
            let at = pages.address(run.page);
            assert!(at.is_multiple_of(sys::HUGE), "{at:#x}");
            assert_eq!(flags_of(at).contains(" hg "), huge);
            assert!(!flags_of(at).contains(" dd "));
            let desc = std::ptr::from_ref(pages.desc(run.page)) as usize;
            assert!(!flags_of(desc).contains(" dd "));
        }
        assert!(pages.nr_ranges() > 1);
        let unused = pages.ranges().last().and_then(Range::end).unwrap() - 1;
        assert!(unused >= pages.frontier());
        assert!(flags_of(pages.address(unused)).contains(" dd "));
        let desc = std::ptr::from_ref(pages.desc(unused)) as usize;
        assert!(flags_of(desc).contains(" dd "));
        // SAFETY: nothing of the ranges is used any more.
        unsafe { pages.release() };
    }
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
