//! Two captures of a kernel in which a module held a known number of objects
//! (tests/vm), seconds apart.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

mod support;

use collectors::analysis::sites::{By, changes, group};
use collectors::model::{SiteKind, Snapshot};
use collectors::source::{Demand, Source as _, capture};
use support::raw::kernel;

fn snapshot(name: &str) -> Snapshot {
    let mut source = capture::open(&kernel(name)).unwrap();
    source.sample(&Demand::everything()).unwrap()
}

#[test]
fn what_a_module_accumulated_is_found_by_its_stack() {
    let (before, after) = (snapshot("sited-before-7.3"), snapshot("sited-after-7.3"));
    let old = before.named("sited").next().unwrap();
    let new = after.named("sited").next().unwrap();
    for by in [By::Site, By::Stack] {
        let grown = changes(old, new, SiteKind::Alloc, by).unwrap();
        let [one] = &*grown else {
            panic!("one site: {grown:#?}");
        };
        assert_eq!((one.before, one.after, one.delta), (321, 400, 79));
        let site = one.group.symbol.as_deref().unwrap();
        assert!(site.starts_with("slabbug_alloc_one+"), "{site}");
        assert!(one.group.stack[2].starts_with("slabbug_write+"));
        assert_eq!(one.group.bytes, Some(400 * 160));
        assert_eq!((&*one.group.nodes, &*one.group.cpus), (&[1][..], &[3][..]));
    }
}

/// An object in its first life was never freed: nobody did it, at no time.
#[test]
fn a_first_life_has_no_age() {
    let after = snapshot("sited-after-7.3");
    for (cache, first_lives, others) in [("sited", 400, 0), ("cred", 89, 1)] {
        let cache = after.named(cache).next().unwrap();
        let freed = group(cache, SiteKind::Free, By::Site);
        let (known, unknown): (Vec<_>, Vec<_>) = freed.iter().partition(|g| g.symbol.is_some());
        assert_eq!((known.len(), unknown.len()), (others, 1));
        assert_eq!(unknown[0].count, first_lives);
        assert_eq!((unknown[0].age, unknown[0].pids), (None, None));
        assert!(known.iter().all(|g| g.age.is_some()));
    }
}
